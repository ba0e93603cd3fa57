import math

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.houses.house import BOX, House, ShapeBuilder, Shapes
from memenvs.houses.navigation.viewpoints import find_viewpoints
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.simulator import PixelCounter, head_camera_poses
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.env import ExtObjNav
from memenvs.objectnav.layout import MAX_OBJECTS, LayoutCheck, goal_categories, make_layout
from memenvs.objectnav.robot import FORWARD, STOP, pitch_of
from tests.objectnav.table_world import APPLE, BOWL, MUG, TableWorld, make_table_env


@pytest.fixture(scope="module")
def small() -> TrialVectorEnv:
    """Four small procedural homes."""
    env = TrialVectorEnv(
        ExtObjNav, 4, rooms=(2, 3), num_objects=(6, 10), obs_mode="symbolic", max_episode_steps=40, trial_steps=400
    )
    yield env
    env.close()


def test_rewards_and_metrics_of_random_paths(small):
    """The reward telescopes; SPL and soft SPL are those of their definitions, from distances and poses in `info`."""
    _, info = small.reset(seed=0)
    start, total = info["geodesic"].copy(), np.zeros(4)
    length, position = np.zeros(4), info["pose"][:, :2].astype(np.float64)
    rng = np.random.default_rng(0)
    finished = farther = 0
    resetting = np.zeros(4, bool)
    for _ in range(300):
        actions = rng.choice(6, size=4, p=[0.03, 0.45, 0.2, 0.2, 0.06, 0.06])
        _, reward, terminated, truncated, info = small.step(actions)
        moved = info["pose"][:, :2].astype(np.float64)
        total = np.where(resetting, 0.0, total + reward)
        start = np.where(resetting, info["geodesic"], start)
        length = np.where(resetting, 0.0, length + np.hypot(*(moved - position).T))
        position, done = moved, terminated | truncated
        assert np.array_equal(terminated, (actions == STOP) & ~resetting)
        assert np.array_equal(truncated, (info["num_steps"] == 40) & ~resetting)
        expected = start - info["geodesic"] - 0.001 * info["num_steps"] + 2.0 * info["success"]
        assert total[done] == pytest.approx(expected[done], abs=1e-5)
        efficiency = start / np.maximum(np.maximum(start, length), 1e-5)
        progress = np.maximum(0.0, 1.0 - info["geodesic"] / np.maximum(start, 1e-5))
        assert info["spl"] == pytest.approx(info["success"] * efficiency, abs=1e-4)
        assert info["soft_spl"] == pytest.approx(progress * efficiency, abs=1e-4)
        farther += (info["geodesic"] > start).sum()
        finished += done.sum()
        resetting = done
    assert finished > 20 and farther > 20
    assert (info["path_failures"] == 0).all()


def test_two_layouts_of_a_home_have_objects_at_other_places():
    """Layouts n and n + the number of homes are in the same home."""
    world = make_house_world("procedural", rooms=(2, 2))
    placed = []
    for number in (3, 3 + len(world)):
        env = TrialEnv(ExtObjNav, world=world, num_objects=(5, 5), obs_mode="symbolic")
        env.reset(seed=0, options={"layout": number})
        placed.append(env.unwrapped.task.layout(0))
    assert placed[0].house.name == placed[1].house.name
    assert set(placed[0].position[:, 0].round(3)).isdisjoint(placed[1].position[:, 0].round(3))


def test_failed_path_query_keeps_the_distance(monkeypatch):
    env = make_table_env()
    _, before = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": APPLE})
    monkeypatch.setattr(env.task._sim, "geodesic_distances", lambda: np.array([np.inf]))
    _, reward, _, _, info = env.step(FORWARD)
    assert reward == pytest.approx(-0.001)
    assert (info["geodesic"], info["path_failures"]) == (before["geodesic"], 1)


def test_categories_with_ten_objects_are_no_goals():
    category = np.array([APPLE] * MAX_OBJECTS + [MUG] * (MAX_OBJECTS - 1) + [BOWL])
    assert goal_categories(category).tolist() == [BOWL, MUG]


def test_invisible_objects_are_removed():
    # The second mug stands in a closed cupboard.
    class Cupboard(TableWorld):
        def make_house(self, index: int) -> House:
            house = super().make_house(index)
            builder = ShapeBuilder()
            for x in (7.1, 7.45):
                builder.add(BOX, (x, 2.2, 1.7), (0.01, 0.2, 1.0))
            for y in (2.0, 2.4):
                builder.add(BOX, (7.27, y, 1.7), (0.2, 0.01, 1.0))
            return House("toy", Shapes.concatenate([house.shapes, builder.build()]), house.rooms, (), (), ("building",))

    env = make_table_env(Cupboard(objects=((APPLE, 6.7, 2.0), (MUG, 7.27, 2.2))))
    env.reset(seed=0)
    layout = env.task.layout(0)
    assert layout.category.tolist() == [APPLE]
    assert layout.goals.tolist() == [APPLE]
    assert 2 not in layout.house.shapes.instance
    with pytest.raises(ValueError, match=r"option 'goal' must be .* of this layout, one of \['013_apple'\], got 18"):
        env.reset(options={"goal": MUG})


def test_a_home_where_nothing_can_be_seen_is_named():
    with pytest.raises(ValueError, match=r"1 of 1 homes cannot be played in ExtObjNav: no visible object .* 'toy'"):
        make_table_env(TableWorld(objects=((APPLE, 40.0, 2.0),)))


def test_a_home_with_too_many_objects_of_every_category_is_named():
    apples = tuple((APPLE, 6.6 + 0.2 * (k % 5), 1.8 + 0.4 * (k // 5)) for k in range(MAX_OBJECTS))
    env = make_table_env(TableWorld(objects=apples))
    problem = r"no category can be a goal in house 'toy': .* at least 10; .* num_objects"
    with pytest.warns(UserWarning, match=problem), pytest.raises(ValueError, match=problem):
        env.reset(seed=0)
    make_table_env(TableWorld(objects=apples[1:])).reset(seed=0)


@pytest.mark.slow
def test_few_categories_for_many_objects_are_refused_when_it_is_made():
    with pytest.raises(ValueError, match=r"no category can be a goal in house .* or add categories"):
        TrialEnv(ExtObjNav, categories=[APPLE], num_objects=(60, 60), obs_mode="symbolic")


def test_pool_of_layouts():
    env = TrialVectorEnv(ExtObjNav, 2, world=TableWorld(), obs_mode="symbolic", layout_pool=3)
    _, info = env.reset(seed=0)
    seen = set(info["layout_id"].tolist())
    for _ in range(8):
        _, info = env.reset(options={"new_trial": True})
        seen.update(info["layout_id"].tolist())
    assert seen == {0, 1, 2}


TILTS = (20.0, *(36.8699 + 30 * k for k in range(3)), 100.0)


def reference_candidates(navmap, position, viewpoints) -> list[int]:
    """Of the viewpoints in each sixth of a circle that nearest to 1 m, the nearest to 1 m first."""
    best = {}
    for cell in viewpoints.tolist():
        x, y = navmap.points(np.array([cell]))[0] - position[:2]
        sixth = int(math.atan2(y, x) / (2 * math.pi) % 1.0 * 6)
        best[sixth] = min(best.get(sixth, (math.inf, -1)), (abs(math.hypot(x, y) - 1.0), cell))
    return [cell for _, cell in sorted(best.values())]


def reference_view_cell(navmap, scene, position, instance, viewpoints) -> int:
    """First candidate that passes the success test."""
    for cell in reference_candidates(navmap, position, viewpoints):
        point = navmap.points(np.array([cell]))
        heading = np.array([math.atan2(position[1] - point[0, 1], position[0] - point[0, 0])])
        pose = head_camera_poses(point, heading, np.zeros(1))
        elevation = math.atan2(position[2] - pose[0, 2], math.dist(position[:2], pose[0, :2]))
        pose[0, 4] = min(pitch_of(np.array(TILTS)), key=lambda pitch: abs(pitch - elevation))
        if PixelCounter().count(scene, pose, np.array([instance]))[0] >= 10:
            return cell
    return -1


def test_layouts_equal_the_reference():
    """Objects stay where some viewpoint passes the success test; the first that does is the view cell."""
    world = make_house_world("procedural", rooms=(2, 2))
    number, home = 4, world.home(4)
    categories = tuple(range(20))
    layout = make_layout(world, number, count_range=(9, 12), categories=categories, counter=PixelCounter())
    house, placed = world.place_objects(home.house, np.random.default_rng(number), (9, 12), categories)
    scene, expected = Scene.from_house(house), {}
    for item in placed:
        viewpoints = find_viewpoints(home.navmap, house.shapes, np.array(item.position), item.instance)
        cell = reference_view_cell(home.navmap, scene, item.position, item.instance, viewpoints)
        if cell >= 0:
            expected[item.instance] = (item.category, cell, viewpoints.tolist())
    columns = zip(layout.category.tolist(), layout.view_cells.tolist(), map(list, layout.viewpoints), strict=True)
    assert dict(zip(layout.instance, columns, strict=True)) == expected
    removed = {item.instance for item in placed} - expected.keys()
    assert set(layout.house.shapes.instance) == set(house.shapes.instance) - removed
    assert (layout.number, layout.home_index) == (4, 4)
    LayoutCheck((9, 12), categories)(world, 4)
