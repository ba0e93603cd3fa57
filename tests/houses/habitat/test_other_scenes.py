"""Scenes that memenvs has not written, with the recorded stand-in for habitat-sim."""

import json
import math
import struct
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from memenvs.houses.classes import CLASS_INDEX, CLASSES
from memenvs.houses.habitat import description, navmesh, package, simulation, surfaces
from memenvs.houses.habitat.dataset import Dataset
from memenvs.houses.habitat.furniture import MarkedSurface
from memenvs.houses.habitat.glb import check_glb, glb_size
from memenvs.houses.habitat.labels import object_class, room_type
from memenvs.houses.habitat.splits import split_scenes
from memenvs.houses.house import BOX, PlacedObject, ShapeBuilder
from memenvs.houses.navigation.viewpoints import candidate_cells, find_viewpoints
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.worlds import make_house_world
from memenvs.houses.ycb import object_footprint, object_height
from tests.houses.habitat import fake_habitat_sim
from tests.houses.habitat.scenes import install_fake, make_house, write_objects, write_scene, write_stage
from tests.rollouts import digest
from tests.side_files import put_side_files
from tests.vln.toys import write_json

trimesh = pytest.importorskip("trimesh", reason="needs the extra export")
SCENES = ("102344022", "102344529", "104862474_172226496")  # of HSSD: train, validation and test


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of scenes, and the package that is not there."""
    install_fake(monkeypatch)
    yield tmp_path
    simulation.simulation.cache_clear()


def unpacked(content: bytes) -> tuple[dict, bytes]:
    """The JSON document of a .glb file, and what follows it."""
    (size,) = struct.unpack_from("<I", content, 12)
    return json.loads(content[20 : 20 + size]), content[20 + size :]


def packed(document: dict, rest: bytes) -> bytes:
    """The .glb file of a JSON document and what follows it."""
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    header = struct.pack("<4sII", b"glTF", 2, 20 + len(text) + len(rest))
    return header + struct.pack("<I4s", len(text), b"JSON") + text + rest


def test_a_scene_with_furniture_is_described(folder):
    """The description equals the home that the scene was made of."""
    for name in SCENES:
        path = write_scene(make_house(name), folder)
    world = make_house_world("habitat", habitat_dataset=path, split="validation")
    assert len(world) == 1
    home = world.home(0)
    house = home.house
    assert house.name == "102344529"
    assert house.instances == ("building", "dining_table|1")
    assert house.height == pytest.approx(2.7, abs=1e-3)
    assert [room.type for room in house.rooms] == ["kitchen", "study"]
    (receptacle,) = house.receptacles
    assert receptacle.centre == pytest.approx((2.0, 2.0, 0.8), abs=2e-3)
    assert receptacle.half == pytest.approx((0.8, 0.4), abs=0.0251)
    assert receptacle.clearance == pytest.approx(1.9, abs=0.03)
    assert house.shapes.half[0] == pytest.approx([0.8, 0.4, 0.4], abs=1e-3)
    assert home.navmap.island_areas[0] == pytest.approx(7.4 * 3.4, rel=1e-3)
    # The ray from a camera over the table's near edge: floor, table, wall and ceiling.
    renderer = world.make_renderer(Camera(height=9, width=9, hfov_deg=120), 1)
    renderer.set_scene(0, home.make_scene(house))
    semantic, instance = np.zeros((1, 9, 9), np.uint8), np.zeros((1, 9, 9), np.uint16)
    renderer.render(np.array([[0.3, 2.0, 1.2, 0.0, 0.0]]), semantic=semantic, instance=instance)
    column = [CLASSES[number] for number in semantic[0, :, 4]]
    assert column == ["ceiling"] * 4 + ["wall"] + ["dining_table"] * 3 + ["floor"]
    assert instance[0, :, 4].tolist() == [0] * 5 + [1] * 3 + [0]
    relabelled = home.make_scene(house).relabel(np.arange(256) + 1)
    assert relabelled.building.tolist() == (description.BUILDING_CLASSES + 1).tolist()


def test_viewpoints_are_those_of_exact_rays(folder):
    """Depth pictures find the cells that rays through a turned table find, but for some at its edges."""
    world = make_house_world("habitat", habitat_dataset=write_scene(make_house("a", yaw=0.3), folder))
    home = world.home(0)
    (receptacle,), shapes = home.house.receptacles, home.house.shapes
    assert (receptacle.yaw, shapes.yaw[0]) == pytest.approx((0.3, 0.3), abs=1e-4)
    assert receptacle.centre == pytest.approx((2.0, 2.0, 0.8), abs=0.014)
    assert receptacle.half == pytest.approx((0.8, 0.4), abs=0.0376)
    assert shapes.half[0] == pytest.approx([0.8, 0.4, 0.4], abs=1e-3)
    for target in ((2.0, 3.0, 0.5), (2.0, 2.0, 0.85), (3.2, 0.9, 0.1)):
        placed = PlacedObject(0, target, 0.0, 9, 0)
        viewpoints = home.find_viewpoints(home.house, placed)
        expected = find_viewpoints(home.navmap, home.house.shapes, np.array(target), 9)
        differing = len(np.setxor1d(viewpoints, expected))
        assert differing <= 0.03 * len(expected) and len(expected) > 100
        assert target[2] > 0.8 or len(expected) < 0.97 * len(candidate_cells(home.navmap, np.array(target)))


def finder_of(*islands: tuple[float, float, float, float]) -> SimpleNamespace:
    """Mesh of a triangle for each island: x and z of its corner, its short sides, its area."""

    def vertices(k: int) -> list[np.ndarray]:
        x, z, side, _ = islands[k]
        return [np.array([x + dx, 0.05, z + dz]) for dx, dz in ((0, 0), (side, 0), (0, side))]

    return SimpleNamespace(
        num_islands=len(islands),
        island_area=lambda k: islands[k][3],
        build_navmesh_vertices=vertices,
        build_navmesh_vertex_indices=lambda k: [0, 1, 2],
    )


def test_robots_are_on_the_main_island(folder, monkeypatch):
    """It is island 0, also where another one is larger."""
    monkeypatch.setattr(navmesh.NavmeshMap, "pathfinder", finder_of((0.5, -3.5, 3.0, 4.5), (5.0, -2.5, 2.0, 2.0)))
    for main, areas in ((None, [4.5, 2.0]), (1, [2.0, 4.5])):
        navmap = navmesh.NavmeshMap(make_house("a"), b"", 0.0, main)
        assert navmap.island_areas.tolist() == areas
        x = navmap.points(navmap._largest)[:, 0]
        assert (x > 4.5).all() if main else (x < 4.5).all()


def test_objectnav_in_a_scene_with_furniture(folder):
    """Objects of a data set stand on the table; the oracle finds them; an episode is a function of its numbers."""
    path = write_scene(make_house(SCENES[0]), folder)
    files = {"habitat_dataset": path, "habitat_objects": write_objects(folder / "ycb", (1, 13))}
    settings = {"obs_mode": "symbolic", "num_objects": (4, 5), "categories": [1, 13]}
    env = gym.make("memenvs/ExtObjNav-v0", world="habitat", **files, **settings)
    runs = []
    for _ in range(2):
        runs.append([env.reset(seed=1)])
        done = False
        while not done:
            runs[-1].append(env.step(env.unwrapped.oracle_action()))
            *_, terminated, truncated, info = runs[-1][-1]
            done = terminated or truncated
        assert info["success"] and info["scene_id"] == SCENES[0] and info["place"] in (0, 1)
    assert digest(runs[0]) == digest(runs[1])
    task = env.unwrapped.task
    simulation.simulation().enter(task.layout(0).scene.name)  # without small objects
    assert len(simulation.simulation()._simulator.get_rigid_object_manager().placed) == 1
    placed = task.layout(0).house.objects
    assert placed
    world = task._homes.world
    for item in placed:
        x, y, z = item.position
        assert abs(x - 2) < 0.8 and abs(y - 2) < 0.4
        assert z - object_height(item.category) / 2 == pytest.approx(0.8, abs=2e-3)
        model = world._model(item.category)
        assert (model.width, model.depth) == pytest.approx(object_footprint(item.category), abs=0.012)
        assert model.height == pytest.approx(object_height(item.category), abs=2e-3)


def test_a_stage_alone(folder):
    """Tasks that need no classes play it; the others say what is missing."""
    upright = write_stage(make_house("scan"), folder / "scan.glb", y_up=True)
    stage = write_stage(make_house("other"), folder / "other.glb")
    maps = [make_house_world("habitat", habitat_dataset=path).home(0).navmap for path in (upright, stage)]
    assert maps[0].origin == pytest.approx(maps[1].origin) and (maps[0].free == maps[1].free).all()
    settings = {"world": "habitat", "habitat_dataset": stage}
    for task in ("Roaming", "Coverage"):
        env = gym.make(f"memenvs/{task}-v0", modalities=["pose"], **settings)
        env.reset(seed=0)
        assert sum(env.step(env.unwrapped.oracle_action())[1] for _ in range(20)) > 0
    for task, more, message in (
        ("Roaming", {}, "home 'other' has no object classes, which modality 'semantic' shows; name the other ones"),
        ("Coverage", {"obs_mode": "scan"}, "'scan_class' shows"),
        ("Search", {}, "home 'other' has no object category of the task: television, refrigerator, bookshelf"),
        ("ExtObjNav", {}, "objects need receptacles, but home 'other' has none"),
        ("ColorRecall", {}, "house 'other' must have two places"),
        ("Roaming", {"modalities": ["pose"], "threads": 2}, "threads must be 1 in world 'habitat'.*got 2.*'spawn'"),
    ):
        with pytest.raises(ValueError, match=message):
            gym.make(f"memenvs/{task}-v0", **settings, **more)


def test_a_stage_on_its_side_is_refused(folder):
    """A mesh is shortest along an axis that the package does not take for up; a config that says up is believed."""
    upright = write_stage(make_house("scan"), folder / "scan.glb", y_up=True)
    make = lambda path: make_house_world("habitat", habitat_dataset=path)  # noqa: E731
    with pytest.raises(ValueError, match=r"scan\.glb seems to have y up, as its sides are 8\.\d x 2\.\d x 4") as error:
        make(folder / "scan.glb")
    advice = json.loads("{" + str(error.value).split("{")[1].split("}")[0] + "}")
    assert advice == json.loads(upright.read_text())
    lying = write_stage(make_house("other"), folder / "other.glb").with_suffix(".stage_config.json")
    write_json(lying, {"render_asset": "other.glb"})
    with pytest.raises(ValueError, match=r"other\.glb seems to have z up.*takes y unless other\.stage_config\.json"):
        make(lying)
    write_json(lying, {"render_asset": "other.glb", "up": [0, 1, 0]})
    make(lying)
    # not clear where it is about as high as wide
    tower = folder / "tower.glb"
    for sides, is_clear in (((8, 4, 9), True), ((8, 4, 4.3), False), ((3, 4, 9), False)):
        trimesh.creation.box(sides).export(tower)
        with pytest.raises(ValueError, match="y up") if is_clear else nullcontext():
            make(tower)


def test_the_size_of_a_mesh_is_that_of_its_placed_parts(tmp_path):
    rng, scene, path = np.random.default_rng(0), trimesh.Scene(), tmp_path / "a.glb"
    parent = scene.graph.base_frame
    for number in range(4):  # each below the one before
        placed = trimesh.transformations.random_rotation_matrix(rng.random(3))
        placed[:3, 3] = rng.normal(size=3)
        box = trimesh.creation.box(1 + rng.random(3))
        scene.add_geometry(box, node_name=str(number), parent_node_name=parent, transform=placed)
        parent = str(number)
    path.write_bytes(scene.export(file_type="glb"))
    np.testing.assert_allclose(glb_size(path), scene.extents, rtol=1e-5)
    trimesh.creation.box((2, 1, 3)).export(path)
    document, rest = unpacked(path.read_bytes())
    half = math.sqrt(0.5)  # twice as long, then a quarter turn about z
    document["nodes"] = [{"mesh": 0, "scale": [2, 1, 1], "rotation": [0, 0, half, half], "translation": [5, 6, 7]}]
    path.write_bytes(packed(document, rest))
    np.testing.assert_allclose(glb_size(path), (1, 4, 3), rtol=1e-6)
    del document["accessors"][document["meshes"][0]["primitives"][0]["attributes"]["POSITION"]]["max"]
    path.write_bytes(packed(document, rest))
    assert glb_size(path) is None


def test_surfaces_are_level_and_free(folder):
    """A book on a marked board leaves the largest rectangles beside it; leaning or tiny boards are none."""
    house = make_house("a")
    simulation.simulation().enter(Dataset(write_scene(house, folder)).scene("a"))
    board = np.eye(4)
    marked = MarkedSurface("b", board, np.array([0.5, 0.2, -3.5]), np.array([3.5, 0.2, -0.5]))
    free = surfaces.free_surfaces(marked, 7, 0.0)  # more than the table is the floor around it
    assert 2 <= len(free) <= 4 and {surface.instance for surface in free} == {7}
    for surface in free:
        assert surface.centre[2] == pytest.approx(0.0, abs=1e-3) and surface.clearance == pytest.approx(2.7, abs=1e-3)
        low, high = (np.array(surface.centre[:2]) + sign * np.array(surface.half) for sign in (-1, 1))
        assert (low > 0.49).all() and (high < 3.51).all()
        assert (high[0] < 1.23 or low[0] > 2.77) or (high[1] < 1.63 or low[1] > 2.37)  # not in the table
    slope = board.copy()
    slope[:3, :3] = [[1, 0, 0], [0, 0.9, -0.436], [0, 0.436, 0.9]]
    for other in (
        MarkedSurface("b", slope, marked.low, marked.high),
        MarkedSurface("b", board, marked.low, marked.low + np.array([0.05, 0, 3])),
        MarkedSurface("b", board, marked.low - 20.0, marked.high - 20.0),
    ):
        assert surfaces.free_surfaces(other, 1, 0.0) == []
    triangle = np.array([[(0.5, 0.2, -3.5), (3.5, 0.2, -3.5), (0.5, 0.2, -0.5)]])
    part = MarkedSurface("b", board, marked.low, marked.high, triangle)
    for surface in surfaces.free_surfaces(part, 1, 0.0):
        x, y = np.array(surface.centre[:2]) + np.array(surface.half) * (1, -1)
        assert (x - 0.5) + (3.5 - y) < 3.06  # within the triangle


def test_a_shelf_is_seen_from_below_the_next_one(folder):
    """The camera stays below what is above a surface."""
    builder = ShapeBuilder()
    builder.add(BOX, (2, 2, 0.55), (0.8, 0.4, 0.05), semantic=CLASS_INDEX["shelf"], instance=1)
    house = replace(make_house("a"), shapes=builder.build(), receptacles=())
    simulation.simulation().enter(Dataset(write_scene(house, folder)).scene("a"))
    marked = MarkedSurface("b", np.eye(4), np.array([1.3, 0.0, -2.3]), np.array([2.7, 0.0, -1.7]))
    (surface,) = surfaces.free_surfaces(marked, 1, 0.0)
    assert surface.centre == pytest.approx((2.0, 2.0, 0.0), abs=2e-3)
    assert surface.clearance == pytest.approx(0.5, abs=1e-3)
    assert surface.half == pytest.approx((0.7, 0.3), abs=0.026)


def test_the_floor_is_indoors(monkeypatch):
    """The largest island with something above it; in the open the largest one."""
    finder = finder_of((10.0, 0.0, 1.0, 50.0), (-10.0, 0.0, 1.0, 60.0), (20.0, 0.0, 1.0, 20.0))  # room, yard, room
    heights = {description.UP: lambda eye: 2.0 if eye[0] > 0 else np.inf, description.DOWN: lambda eye: eye[2] + 0.1}
    monkeypatch.setattr(description, "free_height", lambda eye, pitch: heights[pitch](eye))
    number, floor, ceiling = description._find_floor(finder, "a")
    assert number == 0 and (floor, ceiling) == pytest.approx((-0.1, 2.55))
    heights[description.UP] = lambda eye: np.inf
    number, floor, ceiling = description._find_floor(finder, "a")
    assert number == 1 and (floor, ceiling) == pytest.approx((-0.1, 2.6))
    finder.num_islands = 0
    with pytest.raises(ValueError, match="house 'a' has no floor in habitat-sim where the robot can be"):
        description._find_floor(finder, "a")


def test_floor_between_rooms_belongs_to_the_nearest():
    room = np.array([[-1] * 7, [-1, 0, -1, -1, -1, 1, -1], [-1, -1, -1, -1, 2, -1, -1], [-1] * 7], np.int16)
    free = np.zeros(room.shape, bool)
    free[1:3, 1:6] = True
    navmesh._fill(room, free)
    assert (room[free] >= 0).all()
    assert room[1, 1:3].tolist() == [0, 0] and room[1, 5] == 1 and room[2, 3:5].tolist() == [2, 2]


def test_the_largest_rectangle():
    rng = np.random.default_rng(0)
    for _ in range(40):
        free = rng.random(tuple(rng.integers(1, 7, 2))) < 0.7
        (i0, i1), (j0, j1) = surfaces.largest_rectangle(free)
        assert free[i0:i1, j0:j1].all()
        rows, columns = free.shape
        areas = [
            (b - a) * (d - c)
            for a in range(rows)
            for b in range(a + 1, rows + 1)
            for c in range(columns)
            for d in range(c + 1, columns + 1)
            if free[a:b, c:d].all()
        ]
        assert (i1 - i0) * (j1 - j0) == max(areas, default=0)


def test_names_of_other_data_sets():
    expected = {
        "frl_apartment_chair_01_:0000": "chair", "frl_apartment_tvstand": "tv_stand", "couch": "sofa",
        "bath_sink": "sink", "table_lamp": "lamp", "coffee table": "coffee_table", "d92c": "other", "Bed": "bed",
    }  # fmt: skip
    for name, label in expected.items():
        assert object_class(name) == CLASS_INDEX[label], name
    rooms = {"Living room": "living_room", "bedroom_2": "bedroom", "office": "study", "spa": "other"}
    assert {name: room_type(name) for name in rooms} == rooms


def test_splits_of_known_data_sets():
    replica = [f"v3_sc{k}_staging_{j:02}" for k in range(5) for j in range(21)]
    assert [len(split_scenes(replica, split)) for split in ("train", "validation", "test", "all")] == [63, 21, 21, 105]
    hssd = [*SCENES, "109999999"]
    assert [split_scenes(hssd, split) for split in ("train", "validation", "test")] == [[scene] for scene in SCENES]
    assert split_scenes(hssd, "all") == hssd
    assert split_scenes(["a", "b", "c", "d"], "validation") == ["d"]
    with pytest.raises(ValueError, match="unknown split 'test'"):
        split_scenes(["a"], "test")
    with pytest.raises(ValueError, match="unknown split 'half'"):
        split_scenes(hssd, "half")


def test_bad_scenes_are_named(folder, monkeypatch):
    """Faults that would end the process are found before; the message names the file."""
    path = write_scene(make_house("a"), folder)
    scene, config = folder / "scenes" / "a.scene_instance.json", folder / "objects" / "a_1.object_config.json"
    regions = folder / "semantics" / "scenes" / "a.semantic_config.json"
    good = {file: file.read_bytes() for file in (path, scene, config, regions)}

    def refuse(message: str) -> None:
        simulation.simulation().close()  # it has read the files before
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            make_house_world("habitat", habitat_dataset=path, split="all").home(0)

    document, table = json.loads(good[scene]), {"render_asset": "a_1.glb", "semantic_id": 1}
    without_scale = {"receptacle_aabb_x": {"position": [0, 0, 0]}}
    without_mesh = {"receptacle_mesh_x": {"position": [0, 0, 0], "scale": [1, 1, 1], "mesh_filepath": "no.glb"}}
    instances = [{"template_name": "nothing"}]
    for file, value, message in (
        (scene, {**document, "object_instances": instances}, r"template_name must be in test\.scene_.*got 'nothing'"),
        (scene, {**document, "stage_instance": {}}, r"a\.scene_.*: stage_instance\.template_name is missing"),
        (scene, {**document, "object_instances": 3}, r"object_instances must be a list, got 3"),
        (config, {}, r"a_1\.object_config\.json: render_asset is missing"),
        (config, {"render_asset": "no.glb"}, r"a_1\.object_config\.json: names 'no\.glb'"),
        (config, {**table, "user_defined": without_scale}, "receptacle_aabb_x must have position and scale"),
        (config, {**table, "user_defined": without_mesh}, r"no\.glb"),
        (regions, {"region_annotations": [{"label": "x"}]}, r"region_annotations\[0\]\.poly_loop is missing"),
        (path, {"scene_instances": {"paths": {".json": ["nowhere"]}}}, r"there is no scene\n.*memenvs house .*\.md"),
    ):
        write_json(file, value)
        refuse(message)
        file.write_bytes(good[file])
    with pytest.raises(
        FileNotFoundError, match=r"habitat_objects: there is no file .*002_master_chef_can.*\n.*uids ycb"
    ):
        make_house_world("habitat", habitat_dataset=path, habitat_objects=folder)
    with pytest.raises(ValueError, match=r"\(\*\.scene_dataset_config\.json\) or a stage .*\*\.glb\), got 'x\.txt'"):
        (folder / "x.txt").touch()
        make_house_world("habitat", habitat_dataset=folder / "x.txt")
    monkeypatch.setattr(fake_habitat_sim, "built_with_bullet", False)
    refuse("has objects, which need a habitat-sim that was built with Bullet")
    stage = write_stage(make_house("s"), folder / "s.glb")
    monkeypatch.setattr(fake_habitat_sim.PathFinder, "build", lambda *_: False)
    with pytest.raises(ValueError, match=r"finds no floor in .*s\.glb.* a \.glb alone is read with z up"):
        make_house_world("habitat", habitat_dataset=stage).home(0)


def test_ids_of_classes_are_whole_numbers(tmp_path):
    path = tmp_path / "test.scene_dataset_config.json"
    write_json(path, {"stages": {"paths": {".glb": ["a.glb"]}}})
    (tmp_path / "a.glb").touch()
    lexicon = tmp_path / "semantics" / "a_semantic_lexicon.json"
    write_json(lexicon, {"classes": [{"id": -1, "name": "void"}, {"id": 7, "name": "chair"}]})
    put_side_files(tmp_path)
    assert Dataset(path).class_names == {-1: "void", 7: "chair"}
    for wrong in (7.5, 7.0, True, "7", 2**31):
        write_json(lexicon, {"classes": [{"id": 3, "name": "void"}, {"id": wrong, "name": "chair"}]})
        allowed = "must be a whole number from -2147483648 to 2147483647"
        with pytest.raises(ValueError, match=rf"a_semantic_lexicon\.json: classes\[1\]\.id {allowed}, got {wrong!r}$"):
            _ = Dataset(path).class_names


def test_what_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    """Without the package, and without a device that draws, an environment is refused with one line."""
    path = write_scene(make_house("a"), tmp_path)
    monkeypatch.setattr(package, "choose_gpu", lambda: -1)
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda name: None)
    make = lambda: gym.make("memenvs/Roaming-v0", world="habitat", habitat_dataset=path)  # noqa: E731
    with pytest.raises(
        ImportError, match=r"world 'habitat' needs the package habitat-sim; .*conda install .*MIT licence"
    ):
        make()
    assert not capsys.readouterr().err
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(package, "import_module", lambda name: fake_habitat_sim)
    package.import_habitat()
    assert "memenvs: starting habitat-sim" in capsys.readouterr().err  # which takes long
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_habitat_sim)
    package.import_habitat()
    assert not capsys.readouterr().err
    install_fake(monkeypatch)
    monkeypatch.setattr(simulation, "check_drawing", package.check_drawing)
    no_device = "Traceback\nOSError: EGL is installed, but none of its 2 devices draws; try: x"
    for code, stderr, message in ((1, no_device, "of its 2 devices draw"), (-6, "", r"driver ends the process \(-6\)")):
        package.check_drawing.cache_clear()
        done = SimpleNamespace(returncode=code, stderr=stderr)
        monkeypatch.setattr(package.subprocess, "run", lambda *_, done=done, **__: done)
        with pytest.raises(ImportError, match=rf"world 'habitat' draws with EGL: .*{message}"):
            make()
    package.check_drawing.cache_clear()
    simulation.simulation.cache_clear()


def test_broken_meshes_are_named(tmp_path):
    """A broken .glb ends the process of habitat-sim; each break is found and named."""
    good = write_stage(make_house("a"), tmp_path / "a.glb")
    check_glb(good)
    content = good.read_bytes()
    document, rest = unpacked(content)
    size = len(content) - len(rest) - 20

    def changed(part: str, key: str, value: object, inner: str | None = None) -> bytes:
        copy = json.loads(json.dumps(document))
        target = copy[part][0] if inner is None else copy[part][0][inner][0]
        target[key] = value
        return packed(copy, rest)

    check = tmp_path / "b.glb"
    indices = next(primitive["indices"] for mesh in document["meshes"] for primitive in mesh["primitives"])
    view = document["bufferViews"][document["accessors"][indices]["bufferView"]]
    broken = len(content) - len(rest) + 8 + view.get("byteOffset", 0)
    for made, message in (
        (b"", "must be a whole .glb file, got 0 bytes"),
        (b"hello world" * 10, "do not begin as one"),
        (content[: len(content) // 2], r"of \d+ bytes"),
        (content[:20] + b"x" * size + rest, "not valid JSON|JSON"),
        (packed({"asset": {"version": "2.0"}}, rest), "it has no mesh"),
        (changed("bufferViews", "byteOffset", 10**8), r"bufferViews\[0\]\.byteOffset"),
        (changed("accessors", "count", 10**8), r"accessors\[0\]\.count"),
        (changed("accessors", "componentType", 7), r"componentType must be one of"),
        (changed("accessors", "bufferView", 9999), r"bufferView must be a whole number"),
        (changed("meshes", "indices", 9999, "primitives"), r"indices must be a whole number"),
        (changed("meshes", "attributes", {}, "primitives"), r"POSITION is missing"),
        (content[:broken] + b"\xff" * 4 + content[broken + 4 :], r"indices must be an accessor of numbers below"),
    ):
        check.write_bytes(made)
        with pytest.raises(ValueError, match=message) as error:
            check_glb(check)
        assert "b.glb" in str(error.value)
    with pytest.raises(FileNotFoundError, match="no such file"):
        check_glb(tmp_path / "none.glb")
