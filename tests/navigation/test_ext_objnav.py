import math
import os

import gymnasium as gym
import numpy as np
import pytest

import memenvs  # noqa: F401  (registers the ids)
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.houses.classes import FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.house import BOX, House, Room, ShapeBuilder, Shapes
from memenvs.houses.objects import PlacedObject, object_height, object_shapes
from memenvs.houses.worlds import World
from memenvs.navigation import ext_objnav
from memenvs.navigation.config import ExtObjNavConfig, category_number
from memenvs.navigation.ext_objnav import ExtObjNav
from memenvs.navigation.layout import TOO_MANY, goal_categories
from memenvs.navigation.robot import DOWN, FORWARD, LEFT, RIGHT, STOP, UP, ladder_pitch, pitch_of, start_tilt, tilt
from memenvs.navigation.symbolic import RAY_RANGE

APPLE, MUG, BOWL = 10, 18, 17
DATA = os.environ.get("MEMENVS_DATA")


class ToyWorld(World):
    """A room of 8 x 4 m with tables of 0.7 m height, and things at given places on them.

    Args:
        tables: (x, y) of the middle of each table of 1 x 1 m.
        things: (category, x, y) of each thing.
    """

    def __init__(
        self,
        tables: tuple[tuple[float, float], ...] = ((7.0, 2.0),),
        things: tuple[tuple[int, float, float], ...] = ((APPLE, 6.7, 2.0), (MUG, 7.3, 2.3)),
    ) -> None:
        super().__init__()
        self._tables, self._things = tables, things

    def __len__(self) -> int:
        return 1

    def make_house(self, index: int) -> House:
        builder = ShapeBuilder()
        for x, y in self._tables:
            builder.add(BOX, (x, y, 0.35), (0.5, 0.5, 0.35))
        room = Room("other", np.array([[0, 0], [8, 0], [8, 4], [0, 4]], float), 0, (90, 90, 90))
        return House("toy", builder.build(), (room,), (), (), ("building",))

    def furnish(self, house, rng, count_range, categories):
        parts, placed = [], []
        for number, (category, x, y) in enumerate(self._things, start=1):
            shapes = object_shapes(category, (x, y, 0.7))
            shapes.instance[:] = number
            parts.append(shapes)
            middle = (x, y, 0.7 + object_height(category) / 2)
            placed.append(PlacedObject(category, middle, 0.0, number, 0))
        names = [f"{YCB_CLASSES[thing.category]}|{thing.instance}" for thing in placed]
        return house.with_objects(Shapes.concatenate(parts), names), tuple(placed)


def make_toy(world: World | None = None, **kwargs) -> TrialEnv:
    size = {} if kwargs.get("obs_mode") == "symbolic" else {"image_size": (24, 32)}
    return TrialEnv(ExtObjNav, world=world or ToyWorld(), **size | kwargs)


def go(env: TrialEnv, *actions: int) -> tuple:
    for action in actions:
        result = env.step(action)
    return result


# ---------------------------------------------------------------- a toy world by hand


def test_an_episode_by_hand():
    env = make_toy()
    observation, info = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": "013_apple"})
    assert observation["rgb"].shape == (24, 32, 3)
    assert observation["goal"].tolist() == np.eye(20)[APPLE].tolist()
    assert observation["gps"].tolist() == [1.0, 2.0]
    # Viewpoints lie at -0.125 + 0.1 k and within sqrt(3.9) m of the apple: the nearest is (4.775, 1.975).
    d_start = math.hypot(3.775, 0.025)
    assert info["geodesic"] == pytest.approx(d_start, rel=0.01)
    assert (info["goal"], info["goal_id"], info["place"], info["scene_id"]) == (APPLE, APPLE, 0, "toy")
    assert info["pose"].tolist() == [1.0, 2.0, 0.0]
    d = first = info["geodesic"]
    for step in range(1, 16):
        observation, reward, terminated, truncated, info = env.step(FORWARD)
        assert observation["gps"] == pytest.approx([1.0 + 0.25 * step, 2.0])
        assert reward == pytest.approx(-0.001 + d - info["geodesic"])
        assert not terminated and not truncated
        d = info["geodesic"]
    assert d == pytest.approx(math.hypot(0.025, 0.025), abs=0.02)  # at (4.75, 2.0)
    assert info["path_length"] == pytest.approx(3.75)
    _, reward, terminated, truncated, info = env.step(STOP)
    assert reward == pytest.approx(-0.001 + 2.0)
    assert terminated and not truncated and info["success"]
    assert info["spl"] == pytest.approx(first / max(first, 3.75))
    assert info["spl_fixed"] == info["spl"]
    assert info["soft_spl"] == pytest.approx(1.0, abs=0.03)
    assert (info["num_steps"], info["collisions"], info["path_failures"]) == (16, 0, 0)


def test_stopping_far_away_ends_without_success_or_penalty():
    env = make_toy()
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": APPLE})
    _, reward, terminated, _, info = env.step(STOP)
    assert (reward, terminated, info["success"], info["spl"]) == (pytest.approx(-0.001), True, False, 0.0)


def test_no_heading_is_asked_for_but_pixels_are():
    # 1.7 m away. At 30 degrees the apple is in the picture, at 90 it is not.
    for heading, success in ((math.radians(30), True), (math.radians(90), False)):
        env = make_toy()
        env.reset(seed=0, options={"start": (5.0, 2.0, heading), "goal": APPLE})
        assert env.step(STOP)[4]["success"] is success


def test_distance_counts_from_the_robot_and_is_two_metres():
    for x, success in ((4.71, True), (4.69, False)):
        env = make_toy()
        env.reset(seed=0, options={"start": (x, 2.0, 0.0), "goal": APPLE})
        assert env.step(STOP)[4]["success"] is success


def test_success_needs_distance_and_pixels_of_the_same_thing():
    # One bowl 1.5 m behind the robot, one 2.5 m before it: near and seen, but not the same.
    world = ToyWorld(tables=((1.0, 2.0), (6.0, 2.0)), things=((BOWL, 1.45, 2.0), (BOWL, 5.55, 2.0)))
    env = make_toy(world)
    env.reset(seed=0, options={"start": (3.0, 2.0, 0.0), "goal": BOWL})
    behind, before = env.task._sim.count_pixels(np.array([True]), np.array([[1, 2]]))[0]
    assert behind == 0 and before >= 10
    assert not env.step(STOP)[4]["success"]
    env.reset(options={"start": (3.75, 2.0, 0.0), "goal": BOWL})
    assert env.step(STOP)[4]["success"]


def test_a_start_on_a_viewpoint_has_no_spl_but_a_fixed_one():
    env = make_toy()
    _, info = env.reset(seed=0, options={"start": (5.075, 2.075, 0.0), "goal": APPLE})
    assert info["geodesic"] == pytest.approx(0.0, abs=1e-6)
    info = env.step(STOP)[4]
    assert info["success"]
    assert info["spl"] == pytest.approx(0.0, abs=1e-3)
    assert info["spl_fixed"] == 1.0


def test_turns_and_tilts_by_hand():
    env = make_toy()
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    assert env.step(LEFT)[4]["pose"][2] == pytest.approx(math.radians(30))
    assert go(env, RIGHT, RIGHT)[4]["pose"][2] == pytest.approx(math.radians(330))
    env = make_toy(turn_deg=14.3239)
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    assert env.step(LEFT)[4]["pose"][2] == pytest.approx(0.25, abs=1e-6)


def test_the_picture_follows_the_tilt():
    env = make_toy()
    first, _ = env.reset(seed=0, options={"start": (4.0, 2.0, 0.0)})
    down = env.step(DOWN)[0]
    assert not np.array_equal(first["rgb"], down["rgb"])
    assert np.array_equal(env.step(UP)[0]["rgb"], first["rgb"])
    for _ in range(3):
        env.step(DOWN)
    env.reset()
    again, _ = env.reset(options={"start": (4.0, 2.0, 0.0)})
    assert np.array_equal(again["rgb"], first["rgb"])


def test_walls_deflect_and_are_counted():
    env = make_toy()
    env.reset(seed=0, options={"start": (0.5, 2.0, math.radians(135))})
    info = go(env, *[FORWARD] * 4)[4]
    assert info["collisions"] == 3
    assert info["pose"][0] == pytest.approx(0.3, abs=0.03)
    assert info["pose"][1] == pytest.approx(2.0 + 4 * 0.25 * math.sqrt(0.5), abs=1e-3)


# ---------------------------------------------------------------- tilt


def test_the_ladder_has_the_published_pitches():
    angles = np.array([20, 36.87, 40, 50, 66.87, 70, 80, 96.87, 100])
    expected = [-8.1, -21.8, -23.7, -29.3, -38.2, -39.9, -45.1, -53.7, -55.3]
    assert np.degrees(ladder_pitch(angles)).round(1).tolist() == expected


@pytest.mark.parametrize(
    ("mode", "pitches"),
    [
        ("ladder", [-8.1, -8.1, -29.3, -45.1, -55.3, -55.3, -39.9]),
        ("nominal", [8.2, 10.0, -20.0, -50.0, -55.0, -55.0, -25.0]),
    ],
)
def test_tilting_up_twice_down_four_times_and_up(mode, pitches):
    state, seen = np.array([start_tilt(mode)]), []
    assert np.degrees(pitch_of(mode, state))[0] == pytest.approx(-21.8, abs=0.01)
    for up in (1, 1, -1, -1, -1, -1, 1):
        state = tilt(mode, state, np.array([up]))
        seen.append(np.degrees(pitch_of(mode, state))[0].round(1))
    assert seen == pitches


# ---------------------------------------------------------------- rules on random play


@pytest.fixture(scope="module")
def small() -> TrialVectorEnv:
    """Four small procedural homes."""
    env = TrialVectorEnv(
        ExtObjNav, 4, rooms=(2, 3), num_objects=(6, 10), obs_mode="symbolic", max_episode_steps=40, trial_steps=400
    )
    yield env
    env.close()


def test_the_reward_telescopes(small):
    _, info = small.reset(seed=0)
    start, total = info["geodesic"].copy(), np.zeros(4)
    rng = np.random.default_rng(0)
    finished = 0
    resetting = np.zeros(4, bool)
    for _ in range(300):
        actions = rng.choice(6, size=4, p=[0.03, 0.45, 0.2, 0.2, 0.06, 0.06])
        _, reward, terminated, truncated, info = small.step(actions)
        total = np.where(resetting, 0.0, total + reward)
        start = np.where(resetting, info["geodesic"], start)
        done = terminated | truncated
        assert np.array_equal(terminated, (actions == STOP) & ~resetting)
        assert np.array_equal(truncated, (info["num_steps"] == 40) & ~resetting)
        expected = start - info["geodesic"] - 0.001 * info["num_steps"] + 2.0 * info["success"]
        assert total[done] == pytest.approx(expected[done], abs=1e-5)
        finished += done.sum()
        resetting = done
    assert finished > 20
    assert (info["path_failures"] == 0).all()


def test_the_layout_stays_over_a_trial_and_changes_with_it(small):
    _, info = small.reset(seed=5)
    before = [small.task.layout(i) for i in range(4)]
    goals = set()
    for _ in range(6):
        _, info = small.reset()
        goals.update(info["goal"].tolist())
        assert [small.task.layout(i) for i in range(4)] == before
    assert len(goals) > 2
    _, info = small.reset(options={"new_trial": True})
    assert info["trial_id"].tolist() == [1] * 4
    assert all(small.task.layout(i).number != before[i].number for i in range(4))


def test_a_layout_is_a_function_of_its_number(small):
    kwargs = {"rooms": (2, 3), "num_objects": (6, 10), "obs_mode": "symbolic"}
    small.reset(seed=1, options={"layout": 123})
    other = TrialVectorEnv(ExtObjNav, 1, **kwargs)
    other.reset(seed=99, options={"layout": 123})
    one, two = small.task.layout(2), other.task.layout(0)
    assert np.array_equal(one.position, two.position)
    assert np.array_equal(one.category, two.category)
    assert one.house.name == two.house.name
    other.reset(seed=99, options={"layout": 124})
    assert not np.array_equal(one.position, other.task.layout(0).position)


def test_an_environment_of_a_batch_equals_a_single_one(small):
    kwargs = {
        "rooms": (2, 3),
        "num_objects": (6, 10),
        "obs_mode": "symbolic",
        "max_episode_steps": 40,
        "trial_steps": 400,
    }
    single = TrialVectorEnv(ExtObjNav, 1, **kwargs)
    batch_observation, _ = small.reset(seed=3)
    observation, _ = single.reset(seed=5)
    rng = np.random.default_rng(1)
    for _ in range(60):
        assert all(np.array_equal(observation[key][0], batch_observation[key][2]) for key in observation)
        actions = rng.integers(6, size=4)
        batch_observation, batch_reward, *_ = small.step(actions)
        observation, reward, *_ = single.step(actions[2:3])
        assert reward[0] == batch_reward[2]


def test_a_failed_path_query_keeps_the_distance(monkeypatch):
    env = make_toy()
    _, before = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": APPLE})
    monkeypatch.setattr(env.task._sim, "geodesic", lambda: np.array([np.inf]))
    _, reward, _, _, info = env.step(FORWARD)
    assert reward == pytest.approx(-0.001)
    assert (info["geodesic"], info["path_failures"]) == (before["geodesic"], 1)


# ---------------------------------------------------------------- layouts


def test_categories_with_ten_things_are_no_goals():
    category = np.array([APPLE] * TOO_MANY + [MUG] * (TOO_MANY - 1) + [BOWL])
    assert goal_categories(category).tolist() == [BOWL, MUG]


def test_things_that_cannot_be_seen_are_taken_out():
    # The second mug stands in a closed cupboard.
    class Cupboard(ToyWorld):
        def make_house(self, index: int) -> House:
            house = super().make_house(index)
            builder = ShapeBuilder()
            for x, y, half_x, half_y in (
                (7.1, 2.2, 0.01, 0.2),
                (7.45, 2.2, 0.01, 0.2),
                (7.27, 2.0, 0.2, 0.01),
                (7.27, 2.4, 0.2, 0.01),
            ):
                builder.add(BOX, (x, y, 1.7), (half_x, half_y, 1.0))
            return House("toy", Shapes.concatenate([house.shapes, builder.build()]), house.rooms, (), (), ("building",))

    env = make_toy(Cupboard(things=((APPLE, 6.7, 2.0), (MUG, 7.27, 2.2))))
    env.reset(seed=0)
    layout = env.task.layout(0)
    assert layout.category.tolist() == [APPLE]
    assert layout.goals.tolist() == [APPLE]
    assert 2 not in layout.house.shapes.instance
    with pytest.raises(
        ValueError, match=r"option 'goal' must be a category of this layout, one of \['013_apple'\], got 18"
    ):
        env.reset(options={"goal": MUG})


def test_a_home_where_nothing_can_be_seen_is_named():
    env = make_toy(ToyWorld(things=((APPLE, 40.0, 2.0),)))
    with pytest.raises(RuntimeError, match="'toy'"):
        env.reset(seed=0)


def test_distances_are_zero_on_viewpoints_and_made_once(small):
    small.reset(seed=0)
    layout = small.task.layout(0)
    goal = int(layout.goals[0])
    field = layout.field(goal)
    assert layout.field(goal) is field
    for thing in layout.things(goal):
        points = layout.navmap.points(layout.viewpoints[thing])
        assert layout.navmap.distances(field, points) == pytest.approx(np.zeros(len(points)), abs=1e-6)
        assert (np.hypot(*(points - layout.position[thing, :2]).T) < math.sqrt(3.9)).all()


def test_a_pool_of_layouts(small):
    env = TrialVectorEnv(ExtObjNav, 2, rooms=(2, 2), num_objects=(3, 4), obs_mode="symbolic", layout_pool=3)
    seen = set()
    for _ in range(8):
        _, info = env.reset(options={"new_trial": True})
        seen.update(info["layout_id"].tolist())
    assert seen == {0, 1, 2}
    with pytest.raises(ValueError, match=r"option 'layout' must be an integer in 0 \.\.\. 2, got 3"):
        env.reset(options={"layout": 3})


def test_fields_of_a_long_trial_are_made_beside_it():
    """All goals of the layout get theirs after three of them were asked for, the same as when they are asked for."""
    env = TrialEnv(ExtObjNav, rooms=(2, 2), num_objects=(12, 14), obs_mode="symbolic", trial_steps=None)
    env.reset(seed=0)
    task = env.task
    layout = task.layout(0)
    goals = layout.goals.tolist()
    assert len(goals) > 4
    for goal in goals[:3]:
        env.reset(options={"goal": goal})
    task._background.submit(int).result()  # comes after what was asked for before
    env.close()
    assert set(layout._fields) == set(goals)
    again = task._world.home(layout.home_index).navmap
    for goal in goals:
        cells = np.unique(np.concatenate([layout.viewpoints[k] for k in layout.things(goal)]))
        np.testing.assert_array_equal(layout._fields[goal], again.field(cells))


# ---------------------------------------------------------------- settings


def test_a_fixed_goal_stays_over_the_trial():
    env = make_toy(fixed_goal_per_trial=True)
    goals = [env.reset(seed=4)[1]["goal"]] + [env.reset()[1]["goal"] for _ in range(6)]
    assert len(set(goals)) == 1
    trials = {env.reset(options={"new_trial": True})[1]["goal"] for _ in range(20)}
    assert trials == {APPLE, MUG}


def test_start_poses_can_be_few():
    env = make_toy(max_start_poses=2)
    starts = {tuple(env.reset(seed=0)[1]["start"])} | {tuple(env.reset()[1]["start"]) for _ in range(20)}
    assert len(starts) == 2


@pytest.mark.parametrize(("frame", "began"), [("layout", 0.5), ("episode", 0.0)])
def test_the_compass_turns_with_the_robot(frame, began):
    env = make_toy(compass=True, gps_frame=frame)
    observation, _ = env.reset(seed=0, options={"start": (1.0, 2.0, 0.5)})
    assert env.observation_space.contains(observation)
    assert observation["compass"] == pytest.approx([math.cos(began), math.sin(began)])
    turned = began + 2 * math.pi / 6
    assert go(env, LEFT, LEFT)[0]["compass"] == pytest.approx([math.cos(turned), math.sin(turned)])


def test_gps_from_the_start_of_the_episode():
    env = make_toy(gps_frame="episode")
    observation, _ = env.reset(seed=0, options={"start": (2.0, 2.0, math.pi / 2)})
    assert observation["gps"] == pytest.approx([0.0, 0.0])
    assert env.step(FORWARD)[0]["gps"] == pytest.approx([0.25, 0.0])
    assert go(env, LEFT, LEFT, LEFT, FORWARD)[0]["gps"] == pytest.approx([0.25, 0.25])


def test_sensors_choose_the_images():
    env = make_toy(sensors=["depth", "semantic"])
    observation, _ = env.reset(seed=0)
    assert set(observation) == {"depth", "semantic", "goal", "gps"}
    assert observation["depth"].shape == (24, 32, 1)
    assert observation["semantic"].shape == (24, 32)


def test_symbolic_numbers_are_those_of_the_image():
    options = {"start": (4.775, 2.0, 0.0), "goal": APPLE}
    symbolic = make_toy(obs_mode="symbolic").reset(seed=0, options=options)[0]["symbolic"]
    images = make_toy(sensors=("depth", "semantic"), image_size=(64, 64)).reset(seed=0, options=options)[0]
    semantic, depth = images["semantic"], images["depth"][..., 0]
    for category in range(20):
        area = 16 * (semantic == FIRST_YCB_CLASS + category).sum()
        assert symbolic[category] == pytest.approx(math.log(1 + area) / math.log(1 + 65536), abs=1e-6)
    assert symbolic[APPLE] > 0 and symbolic[MUG] > 0
    for ray in range(32):
        strip = (slice(None), slice(2 * ray, 2 * ray + 2))
        in_way = ~np.isin(semantic[strip], [0, 1, 2])  # outside, floor, ceiling
        nearest = depth[strip][in_way].min(initial=RAY_RANGE)
        assert symbolic[20 + ray] == pytest.approx(nearest / RAY_RANGE, abs=1e-6)
    assert (symbolic[20:] < 1).any()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"obs_mode": "words"}, r"unknown obs_mode 'words'; choose from \['rgb', 'symbolic'\]"),
        ({"tilt_mode": "x"}, "unknown tilt_mode 'x'"),
        ({"gps_frame": "x"}, "unknown gps_frame 'x'"),
        ({"world": 5}, r"world must be one of \['procedural', 'procthor'\] or a World, got 5"),
        ({"world": ToyWorld(), "houses": "x"}, "houses must be None with a World"),
        ({"sensors": ("rgb", "sound")}, r"sensors must be a list of some of \['rgb', 'depth', 'semantic'\]"),
        ({"sensors": ()}, "sensors must be"),
        ({"sensors": "rgb"}, "sensors must be a list of .*, got 'rgb'"),
        ({"sensors": ("rgb", "rgb")}, "sensors must be a list of .*, each once"),
        ({"sensors": 5}, "sensors must be"),
        ({"sensors": [["rgb"]]}, "sensors must be"),
        ({"rooms": (0, 3)}, "rooms must be a range"),
        ({"rooms": 5}, "rooms must be two integers, fewest and most, got 5"),
        ({"rooms": "67"}, "rooms must be two integers"),
        ({"num_objects": (5, 4)}, "num_objects must be a range"),
        ({"num_objects": (5.0, 6)}, r"num_objects must be two integers, fewest and most, got \(5.0, 6\)"),
        ({"categories": ["018_banana"]}, "unknown category '018_banana'; choose from"),
        ({"categories": [20]}, "unknown category 20"),
        ({"categories": []}, "categories must be None or a list of at least one"),
        ({"categories": "025_mug"}, "categories must be None or a list .*, got '025_mug'"),
        ({"categories": 3}, "categories must be"),
        ({"turn_deg": 0}, "turn_deg must be"),
        ({"turn_deg": math.nan}, "turn_deg must be"),
        ({"turn_deg": "30"}, "turn_deg must be .*, got '30'"),
        ({"world": ToyWorld(), "split": "train"}, "split must be None with a World, which has its own, got 'train'"),
        ({"world": ToyWorld(), "rooms": (2, 3)}, r"rooms must be None with a World, which has its own, got \(2, 3\)"),
        ({"obs_mode": "symbolic", "sensors": ["rgb"]}, r"sensors must be None in obs_mode 'symbolic', got \['rgb'\]"),
        (
            {"obs_mode": "symbolic", "image_size": (8, 8)},
            r"image_size must be None in obs_mode 'symbolic', got \(8, 8\)",
        ),
        ({"turn_deg": None}, "turn_deg must be above 0 and at most 180 degrees, got None"),
        ({"image_size": (0, 4)}, "height must be"),
        ({"image_size": 5}, "image_size must be two integers, rows and columns, got 5"),
        ({"image_size": (4, 4, 3)}, "image_size must be two integers"),
        ({"image_size": (4.0, 4.0)}, "image_size must be two integers"),
        ({"fixed_goal_per_trial": 1}, "fixed_goal_per_trial must be True or False, got 1"),
        ({"compass": "yes"}, "compass must be True or False, got 'yes'"),
        ({"layout_pool": 0}, "layout_pool must be an integer of at least 1 or None, got 0"),
        ({"max_start_poses": 0}, "max_start_poses must be an integer of at least 1 or None, got 0"),
        ({"threads": 0}, "threads must be an integer of at least 1, got 0"),
        ({"threads": None}, "threads must be an integer"),
        ({"max_episode_steps": 0}, "max_episode_steps must be an integer of at least 1, got 0"),
    ],
)
def test_settings_are_checked(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ExtObjNavConfig(**kwargs)


def test_categories_by_name_or_number():
    assert ExtObjNavConfig(categories=["025_mug", 10, 10]).categories == (APPLE, MUG)
    assert category_number(np.int64(3)) == 3
    with pytest.raises(ValueError, match="unknown category True"):
        category_number(True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": (1.0, 2.0)}, "option 'start' must be three finite numbers"),
        ({"start": (1.0, 2.0, np.nan)}, "option 'start' must be three finite numbers"),
        ({"start": "here"}, "option 'start' must be three finite numbers"),
        (
            {"start": (7.0, 2.0, 0.0)},
            r"largest navigable island of 'toy', got \(7.0, 2.0, 0.0\); the nearest point there is",
        ),
        ({"goal": "013_pineapple"}, "unknown category '013_pineapple'"),
        ({"goal": BOWL}, r"option 'goal' must be a category of this layout, one of \['013_apple', '025_mug'\], got 17"),
    ],
)
def test_options_are_checked(options, message):
    env = make_toy()
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0, options=options)


# ---------------------------------------------------------------- the two ends


def play_oracle(env: TrialVectorEnv, episodes: int) -> np.ndarray:
    """Success, spl and steps of the first episodes of each environment, float64, (N * episodes, 3)."""
    counts, rows = np.zeros(env.num_envs, int), []
    while (counts < episodes).any():
        _, _, terminated, truncated, info = env.step(env.oracle_actions())
        for i in np.flatnonzero((terminated | truncated) & (counts < episodes)):
            counts[i] += 1
            rows.append([info[key][i] for key in ("success", "spl", "num_steps")])
    return np.array(rows, float)


@pytest.mark.parametrize("kwargs", [{}, {"turn_deg": 14.3239}, {"tilt_mode": "nominal"}])
def test_the_oracle_succeeds_in_procedural_homes(kwargs):
    env = TrialVectorEnv(ExtObjNav, 4, obs_mode="symbolic", **kwargs)
    env.reset(seed=0)
    success, spl, _ = play_oracle(env, 5).mean(0)
    assert success >= 0.95
    assert spl >= 0.8


@pytest.mark.skipif(not DATA, reason="MEMENVS_DATA is not set")
def test_the_oracle_succeeds_in_procthor_homes():
    env = TrialVectorEnv(ExtObjNav, 7, obs_mode="symbolic", world="procthor", split="all")
    env.reset(seed=0)
    assert play_oracle(env, 3)[:, 0].mean() >= 0.95


def test_the_oracle_stops_where_a_thing_is_hard_to_see():
    env = make_toy(ToyWorld(things=((9, 7.0, 2.0),)))  # a strawberry in the middle of the table
    env.reset(seed=0, options={"start": (1.0, 3.5, 2.0)})
    for _ in range(100):
        _, _, terminated, _, info = env.step(env.oracle_action())
        if terminated:
            break
    assert info["success"]


def test_the_picture_for_people_shows_view_and_way():
    env = make_toy(render_mode="rgb_array")
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": APPLE})
    first = env.render()
    env.step(FORWARD)
    second = env.render()
    assert first.dtype == np.uint8
    assert not np.array_equal(first[:, :384], second[:, :384])
    assert not np.array_equal(first[:, 384:], second[:, 384:])
    assert np.array_equal(env.render(), second)
    plan = env.task.draw_map(0, np.array([[1.0, 2.0, 0.0], [1.25, 2.0, 0.0]]))
    assert plan.shape == (40 * 4.6, 40 * 8.6, 3)


def test_made_by_id_it_is_the_same_task():
    env = gym.make("memenvs/ExtObjNav-v0", world=ToyWorld(), image_size=(16, 16), render_mode="rgb_array")
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.render().shape == (384, 768, 3)
    assert info["trial_start"] and info["episode_index"] == 0
    env.close()


def test_pictures_show_the_way_of_this_episode_only(monkeypatch):
    ways = []
    monkeypatch.setattr(ext_objnav, "draw_picture", lambda view, house, way, goals: ways.append(way.copy()))
    env = TrialVectorEnv(
        ExtObjNav, 2, world=ToyWorld(), image_size=(24, 32), max_episode_steps=4, render_mode="rgb_array"
    )
    _, info = env.reset(seed=0)
    poses = [[pose] for pose in info["pose"]]
    for step in range(23):
        _, _, _, _, info = env.step(np.array([STOP if step % 4 == 2 else FORWARD, LEFT]))
        for own, pose, steps in zip(poses, info["pose"], info["num_steps"], strict=True):
            own[:] = [*own, pose] if steps else [pose]
        ways.clear()
        env.render()
        for way, own in zip(ways, poses, strict=True):
            np.testing.assert_allclose(way, own, atol=1e-5)
