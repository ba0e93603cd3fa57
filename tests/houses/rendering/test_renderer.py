"""The renderer against rays cast one by one, closed forms, and itself without culling."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX, MATERIALS
from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, House, Room, ShapeBuilder, polygon_area
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.rendering.renderer import Camera, Frame, Renderer, Scene, render_frame
from memenvs.houses.rendering.scene import floor_pieces
from tests.houses.rendering.ray_caster import cast

L_SHAPE = np.array([(0, 0), (6, 0), (6, 3), (3, 3), (3, 6), (0, 6)], float)
SQUARE = np.array([(0, 0), (10, 0), (10, 10), (0, 10)], float)


def make_house(builder: ShapeBuilder, *polygons: np.ndarray) -> House:
    rooms = tuple(
        Room("bedroom", polygon, MATERIAL_INDEX["planks"], (160, 120, 80)) for polygon in polygons or (SQUARE,)
    )
    shapes = builder.build()
    names = ("building", *(f"object|{k}" for k in range(int(shapes.instance.max(initial=0)))))
    return House("toy", shapes, rooms, (), (), names, 2.7)


def random_house(seed: int) -> House:
    """An L-shaped room and one beside it, two walls up to the ceiling and some solids at random."""
    rng = np.random.default_rng(seed)
    builder = ShapeBuilder()
    builder.add(BOX, (3.0, 4.0, 1.35), (0.05, 2.0, 1.35), material=1, semantic=CLASS_INDEX["wall"])
    builder.add(BOX, (1.0, 3.0, 1.35), (1.2, 0.06, 1.35), yaw=0.3, material=1, semantic=CLASS_INDEX["wall"])
    for instance in range(1, 25):
        half = rng.uniform(0.03, 0.5, 3)
        kind = int(rng.integers(3))
        if kind == CYLINDER:
            half[1] = half[0]
        centre, yaw = (*rng.uniform(0.0, 6.0, 2), half[2] + rng.uniform(0, 1.5)), rng.uniform(-4, 4)
        material, colour = int(rng.integers(len(MATERIALS))), rng.integers(0, 256, 3)
        semantic = int(rng.integers(6, len(CLASSES)))
        finish = {"material": material, "colour": colour, "semantic": semantic}
        builder.add(kind, centre, half, yaw=yaw, instance=instance, **finish)
    return make_house(builder, L_SHAPE, np.array([(3, 3), (6, 3), (6, 6), (3, 6)], float))


def random_pose(rng: np.random.Generator, *, pitch: float) -> tuple[float, ...]:
    return (*rng.uniform(0.3, 5.7, 2), rng.uniform(0.2, 2.5), rng.uniform(-7, 7), rng.uniform(-pitch, pitch))


def blank_images(camera: Camera, num_envs: int) -> dict[str, np.ndarray]:
    size = (num_envs, camera.height, camera.width)
    return {
        "rgb": np.zeros((*size, 3), np.uint8),
        "depth": np.zeros((*size, 1), np.float32),
        "semantic": np.zeros(size, np.uint8),
        "instance": np.zeros(size, np.uint16),
    }


def assert_same(frame: Frame, other: Frame) -> None:
    for name in ("rgb", "depth", "semantic", "instance"):
        np.testing.assert_array_equal(getattr(frame, name), getattr(other, name), err_msg=name)


def unculled(home: House | Scene, camera: Camera, pose: tuple[float, ...]) -> Frame:
    renderer = Renderer(camera, 1, cull=False)
    renderer.set_scene(0, home if isinstance(home, Scene) else Scene.from_house(home))
    images = blank_images(camera, 1)
    renderer.render(np.array([pose]), **images)
    return Frame(*(image[0] for image in images.values()))


@pytest.mark.slow
def test_agrees_with_rays_cast_one_by_one() -> None:
    rng = np.random.default_rng(5)
    for camera, pitch in (
        (Camera(height=48, width=64), 0.0),
        (Camera(height=37, width=53, hfov_deg=58.3), 0.7),
        (Camera(height=64, width=20, hfov_deg=40.0), 1.5),
        (Camera(height=48, width=64, sample_of=(480, 640), hfov_deg=58.27), 0.3),
        (Camera(height=1, width=1), 1.0),
    ):
        shares = []
        for seed in range(6):
            house = random_house(seed)
            for _ in range(2):
                pose = random_pose(rng, pitch=pitch)
                frame = render_frame(house, camera, pose)
                truth = cast(house, camera, pose)
                aside = [cast(house, camera, pose, (di, dj)) for di in (-0.02, 0.02) for dj in (-0.02, 0.02)]
                sure = np.all([other[..., 3] == truth[..., 3] for other in aside], 0)  # not on the edge of a solid
                shares.append(sure.mean())
                np.testing.assert_array_equal(frame.semantic[sure], truth[sure][:, 1])
                np.testing.assert_array_equal(frame.instance[sure], truth[sure][:, 2])
                slack = 1e-4 + np.max([abs(other[..., 0] - truth[..., 0]) for other in aside], 0)[sure]  # grazing rays
                assert (abs(frame.depth[sure, 0] - truth[sure][:, 0]) <= slack + 1e-4 * truth[sure][:, 0]).all()
        assert np.mean(shares) > 0.75


def test_nothing_is_hit_outside() -> None:
    frame = render_frame(make_house(ShapeBuilder()), Camera(height=48, width=64), (-1, 5, 1.2, math.pi, 0))
    assert (frame.depth == 0).all()
    assert (frame.semantic == CLASS_INDEX["outside"]).all()
    assert frame.rgb[40, 0, 1] > frame.rgb[40, 0, 2]  # grass below
    assert frame.rgb[0, 0, 2] > frame.rgb[0, 0, 0]  # sky above


def test_solids_are_not_seen_from_inside() -> None:
    for kind in (BOX, CYLINDER, ELLIPSOID):
        builder = ShapeBuilder()
        builder.add(kind, (5, 5, 1.2), (0.5, 0.5, 0.5), instance=1)
        frame = render_frame(make_house(builder), Camera(height=48, width=64), (5.1, 5, 1.2, 0.2, 0.1))
        assert (frame.instance == 0).all(), kind


def test_walls_hide_nothing_that_can_be_seen() -> None:
    for seed in range(4):
        house = procedural_house(seed)
        scene = Scene.from_house(house)
        rng = np.random.default_rng(seed)
        low, high = house.bounds
        for step in range(30):
            pitch = 0.0 if step % 2 else rng.uniform(-1.5, 1.5)
            pose = (*rng.uniform(low - 0.5, high + 0.5), rng.uniform(-0.2, 3.0), rng.uniform(-4, 4), pitch)
            height, width = (int(number) for number in rng.integers(1, (70, 90)))
            camera = Camera(height=height, width=width, hfov_deg=rng.uniform(20, 140))
            assert_same(render_frame(scene, camera, pose), unculled(scene, camera, pose))


def test_bits_depend_on_neither_threads_nor_neighbours_nor_what_else_is_drawn() -> None:
    camera = Camera(height=30, width=41)
    rng = np.random.default_rng(1)
    scenes = [Scene.from_house(random_house(seed)) for seed in range(5)]
    poses = np.array([random_pose(rng, pitch=0.4) for _ in scenes])
    singles = [render_frame(scene, camera, pose) for scene, pose in zip(scenes, poses, strict=True)]
    for threads in (1, 2, 7):
        renderer = Renderer(camera, len(scenes), threads=threads)
        for env, scene in enumerate(scenes):
            renderer.set_scene(env, scene)
        renderer = pickle.loads(pickle.dumps(renderer))
        images = blank_images(camera, len(scenes))
        renderer.render(poses, **images)
        for env, single in enumerate(singles):
            assert_same(Frame(*(image[env] for image in images.values())), single)
        for name, image in images.items():
            alone = np.zeros_like(image)
            renderer.render(poses, **{name: alone})
            np.testing.assert_array_equal(alone, image)
        renderer.close()


def test_homes_can_be_changed_for_larger_and_smaller_ones() -> None:
    camera, pose = Camera(height=20, width=20), (5.0, 5.0, 1.2, 0.3, 0.0)
    renderer = Renderer(camera, 2)
    empty, full = make_house(ShapeBuilder()), random_house(0)
    poses = np.array([[np.nan] * 5, pose])
    for home in (empty, full, empty):
        renderer.set_scene(1, Scene.from_house(home))
        images = blank_images(camera, 2)
        renderer.render(poses, env_mask=np.array([False, True]), **images)  # what is not drawn needs no home
        assert not any(image[0].any() for image in images.values())
        assert_same(Frame(*(image[1] for image in images.values())), render_frame(home, camera, pose))


def test_wrong_arguments_are_named() -> None:
    camera = Camera(height=4, width=6)
    renderer = Renderer(camera, 2)
    poses = np.zeros((2, 5))
    with pytest.raises(RuntimeError, match=r"without a home: \[0, 1\]"):
        renderer.render(poses)
    scene = Scene.from_house(make_house(ShapeBuilder()))
    for env in range(2):
        renderer.set_scene(env, scene)
    with pytest.raises(ValueError, match="env must be 0 to 1, got 2"):
        renderer.set_scene(2, scene)
    for values, message in (
        ({"poses": np.zeros((2, 3))}, r"poses must have shape \(2, 5\), got \(2, 3\)"),
        ({"poses": poses * np.nan}, "poses must be finite"),
        ({"rgb": np.zeros((2, 4, 6, 3))}, r"rgb must be an array of uint8 \(2, 4, 6, 3\), got float64 \(2, 4, 6, 3\)"),
        ({"depth": np.zeros((2, 4, 6), np.float32)}, r"depth must be .* float32 \(2, 4, 6, 1\), got .* \(2, 4, 6\)"),
        ({"semantic": np.zeros((2, 4, 12), np.uint8)[..., ::2]}, "semantic must be C-contiguous"),
        ({"env_mask": [True, False]}, r"env_mask must be an array of bool \(2,\), got list"),
    ):
        with pytest.raises(ValueError, match=message):
            renderer.render(**{"poses": poses, **values})  # type: ignore[arg-type]
    for name in ("num_envs", "threads"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            Renderer(camera, **{"num_envs": 1, "threads": 1, name: 0})


def test_wrong_cameras_are_refused() -> None:
    for settings_, message in (
        ({"height": 0}, "height must be between 1 and 4096 pixels, got 0"),
        ({"hfov_deg": 180.0}, "hfov_deg must be between 1 and 170 degrees, got 180"),
        ({"height": 48, "width": 64, "sample_of": (480, 320)}, r"sample_of must be \(k \* 48, k \* 64\)"),
        ({"principal_point": (np.nan, 0.0)}, "principal_point must be finite"),
        ({"sample_of": (128, 128), "principal_point": (0.0, 0.0)}, "principal_point must be None with sample_of"),
    ):
        with pytest.raises(ValueError, match=message):
            Camera(**settings_)


def test_homes_that_cannot_be_drawn_are_refused() -> None:
    for name in ("kind", "material", "semantic"):
        house = random_house(0)
        getattr(house.shapes, name)[3] = 200
        with pytest.raises(ValueError, match=rf"shapes\.{name} of toy must be 0 to \d+, got 200"):
            Scene.from_house(house)
    house = random_house(0)
    house.shapes.half[2, 1] = 0
    with pytest.raises(ValueError, match=r"shapes\.half of toy must be > 0 m, got 0"):
        Scene.from_house(house)
    house.shapes.half[2, 1] = np.nan
    with pytest.raises(ValueError, match="must be finite"):
        Scene.from_house(house)
    with pytest.raises(ValueError, match="counter-clockwise"):
        Scene.from_house(make_house(ShapeBuilder(), SQUARE[::-1]))


@settings(max_examples=60, deadline=None)
@given(radii=st.lists(st.floats(0.3, 3.0), min_size=3, max_size=14), turn=st.floats(0, 6))
def test_floors_are_cut_into_convex_pieces(radii: list[float], turn: float) -> None:
    angles = turn + np.arange(len(radii)) / len(radii) * 2 * math.pi
    polygon = np.array(radii)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    pieces, corners, rooms = floor_pieces((Room("other", polygon, 0, (9, 9, 9)),) * 2)
    areas = []
    for piece, count in zip(pieces, corners, strict=True):
        points = piece[:count]
        steps = np.roll(points, -1, 0) - points
        after = np.roll(steps, -1, 0)
        assert (steps[:, 0] * after[:, 1] - steps[:, 1] * after[:, 0] >= -1e-9).all()
        areas.append(polygon_area(points))
    assert sum(areas) == pytest.approx(2 * polygon_area(polygon))
    assert set(rooms) == {0, 1}
