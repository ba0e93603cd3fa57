"""Explorers with their own maps: geometry of hand-made rooms, and cost of a wiped memory."""

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.exploration.carmine import CAMERA_AHEAD, frame_camera
from memenvs.exploration.drive import TURN
from memenvs.exploration.explorer import CoverageExplorer, RoamingExplorer, SearchExplorer
from memenvs.exploration.own_map import (
    OwnMaps,
    action_to_goal,
    cell_of,
    choose_goals,
    metres_of,
    stamp_obstacle,
    stamp_robot,
)
from memenvs.exploration.present_rule import PresentRule
from memenvs.exploration.window_rule import SixteenScans
from memenvs.rules import RuleError
from tests.exploration.toy_world import ToyWorld
from tests.rule_scores import actions_alone, actions_on_a_copy, play_each

CLASSES = {"roaming": RoamingExplorer, "coverage": CoverageExplorer, "search": SearchExplorer}
BOXES = (
    ("wall", (4.0, -0.1, 1.3), (4.2, 0.1, 1.3)),
    ("wall", (4.0, 4.1, 1.3), (4.2, 0.1, 1.3)),
    ("wall", (-0.1, 2.0, 1.3), (0.1, 2.2, 1.3)),
    ("wall", (8.1, 2.0, 1.3), (0.1, 2.2, 1.3)),
)


def make_env(task: str, num_envs: int = 1, **settings: object) -> TrialVectorEnv:
    """Make environments with depths, classes and poses, by default in a toy room with walls."""
    if "split" not in settings:
        settings = {"world": ToyWorld(boxes=BOXES), **settings}
    path = f"memenvs.exploration.{task}:{task.capitalize()}"
    settings = {"modalities": ("depth", "semantic", "pose"), "trial_episodes": 1, **settings}
    return TrialVectorEnv(path, num_envs, autoreset_mode="Disabled", **settings)  # type: ignore[arg-type]


def wall_observation(distance: float) -> dict[str, np.ndarray]:
    """Observation at the origin of a wall ahead: the depth of every pixel is the distance."""
    depth = np.full((1, 48, 64, 1), distance - CAMERA_AHEAD, np.float32)
    return {"depth": depth, "pose": np.zeros((1, 3), np.float32)}


def test_a_wall_blocks_a_strip_as_wide_as_the_robot_is_round() -> None:
    rule = CoverageExplorer(make_env("coverage").task)
    rule.start(np.ones(1, bool), np.ones(1, bool))
    rule.see(wall_observation(2.05))
    blocked = rule._maps.blocked[0] > 0
    middle = cell_of(0.0)
    columns = np.flatnonzero(blocked[middle])
    # cells whose middle is nearer than 0.3 m to x = 2.05: from 1.75 to 2.35
    np.testing.assert_allclose([metres_of(columns[0]), metres_of(columns[-1])], [1.85, 2.25], atol=0.11)
    assert blocked[middle, columns[0] : columns[-1] + 1].all()
    half_view = (2.05 - CAMERA_AHEAD) * (frame_camera((48, 64)).width / 2) / frame_camera((48, 64)).focal
    rows = np.flatnonzero(blocked.any(1))
    np.testing.assert_allclose(
        [metres_of(rows[0]), metres_of(rows[-1])], [-half_view - 0.3, half_view + 0.3], atol=0.15
    )


def test_floor_and_what_hangs_above_the_robot_do_not_block() -> None:
    rule = CoverageExplorer(make_env("coverage").task)
    camera = frame_camera((48, 64))
    drops = (np.arange(48) - camera.centre[1]) / camera.focal  # of rays, none of which is level
    for height in (0.0, 1.6):
        depth = (1.061 - height) / drops
        depth = np.where((depth > 0) & (depth <= 5), depth, 0)
        assert depth.any()
        observation = wall_observation(1.0)
        observation["depth"][:] = depth[None, :, None, None]
        rule.start(np.ones(1, bool), np.ones(1, bool))
        rule.see(observation)
        assert not (rule._maps.blocked > rule._born).any()


def test_a_way_leads_around_a_wall() -> None:
    maps = OwnMaps.empty(1)
    for y in np.arange(-1.0, 3.0, 0.05):
        stamp_obstacle(maps, 0, 1.0, y, 1)  # a wall ahead, whose right end is at y = -1
    stamp_obstacle(maps, 0, 2.7, 0.0, 1)  # ways do not lead far beyond what was observed
    targets = np.array([[2.0, 0.0]])
    pose = np.zeros(3)
    stamp_robot(maps, 0, pose, False, 1)
    action, length = action_to_goal(maps, 0, 0, pose, maps.done[0], targets, 0.3, TURN, 0)
    assert action == 2  # right
    # to (0.8, -1.3) and back to within 0.3 m of (2, 0): between the straight line and a generous bound
    assert 2.2 < length * 0.1 < 6.5
    straight_on, _ = action_to_goal(maps, 0, 1, pose, maps.done[0], targets, 0.3, TURN, 1)  # with the wall forgotten
    assert straight_on == 0


def test_floor_of_earlier_episodes_is_searched_again_where_objects_move() -> None:
    """A closed room, of which the left part was seen at stamp 1 and the rest in this episode."""
    maps = OwnMaps.empty(1)
    for side in np.arange(-1.5, 1.55, 0.05):
        for x, y in ((side, -1.5), (side, 1.5), (-1.5, side), (1.5, side)):
            stamp_obstacle(maps, 0, x, y, 1)
    pose = np.array([[0.5, 0.0, np.pi]])
    maps.done[:], maps.passed[:] = 5, 5
    maps.done[0, :, : cell_of(0.0)] = 1
    stamp_robot(maps, 0, pose[0], False, 5)
    nothing, born, reach = np.zeros((1, 0, 2)), np.zeros(1, np.int64), np.zeros(1)
    for stale, expected in ((0, -1), (1, 0)):  # shut in, or forward
        actions, needed = np.zeros(1, np.int64), np.zeros(1, np.int64)
        choose_goals(maps, born, pose, nothing, reach, TURN, np.array([stale]), actions, needed)
        assert actions.tolist() == [expected]


def test_forgetting_equals_a_new_rule() -> None:
    env = make_env("coverage")
    observation, _ = env.reset(seed=3)
    rng = np.random.default_rng(0)
    used = CoverageExplorer(env.task)
    used.start(np.ones(1, bool), np.ones(1, bool))
    for _ in range(30):
        used.actions(observation)
        observation, *_ = env.step(rng.integers(3, size=1))
    fresh = CoverageExplorer(env.task)
    for rule in (used, fresh):
        rule.start(np.ones(1, bool), np.zeros(1, bool))
    for _ in range(30):
        chosen = used.actions(observation)
        np.testing.assert_array_equal(chosen, fresh.actions(observation))
        np.testing.assert_array_equal(used.steps_back(), fresh.steps_back())
        observation, *_ = env.step(chosen)


@pytest.mark.parametrize("task", ["roaming", "search"])
def test_environments_are_independent(task: str) -> None:
    batch, *alone = (make_env(task, count) for count in (3, 1, 1, 1))
    actions_alone(batch, CLASSES[task], alone)


def test_an_empty_room_is_covered() -> None:
    env = make_env("coverage", max_episode_steps=900)
    share = play_each(env, CoverageExplorer(env.task), "coverage")
    assert share[0] > 0.84  # cells begin in the walls: of those along them a narrow strip can be entered


def test_rules_see_observations_alone() -> None:
    """Made for another task, which was never reset, a rule chooses the same from recorded observations."""
    for cls in (SearchExplorer, CoverageExplorer, SixteenScans):
        actions_on_a_copy(make_env("search", 2), cls, make_env("search", 2).task)


@pytest.mark.parametrize("task", CLASSES)
def test_missing_observations_are_named(task: str) -> None:
    env = make_env(task, modalities=("rgb",))
    with pytest.raises(RuleError, match="depth"):
        CLASSES[task](env.task)
    if task == "search":
        with pytest.raises(RuleError, match="semantic"):
            SearchExplorer(make_env(task, modalities=("depth", "pose")).task)
    with pytest.raises(RuleError, match="depth"):
        PresentRule(env.task)


def test_scans_do_as_well() -> None:
    env = make_env("coverage", obs_mode="scan", modalities=("scan", "pose"), max_episode_steps=300)
    assert play_each(env, CoverageExplorer(env.task), "coverage")[0] > 0.6
    assert play_each(env, PresentRule(env.task), "cells")[0] > 0


def test_search_goes_to_what_it_has_seen() -> None:
    table = ("dining_table", (7.0, 2.0, 0.4), (0.5, 0.4, 0.4))
    env = make_env("search", 4, world=ToyWorld(boxes=(*BOXES, table)), max_episode_steps=120)
    assert (play_each(env, SearchExplorer(env.task), "ratio") == 1).all()
