"""Rules for ExtObjNav: they stop at the goal, remember it, and see observations alone."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.objectnav.robot import FORWARD, LEFT, RIGHT, STOP
from memenvs.objectnav.scripted_finder import Finder, PresentFinder, Traveller, WindowFinder, ray_slopes
from memenvs.objectnav.symbolic import SYMBOLIC_SIZE
from memenvs.registry import environments
from memenvs.rules import PREVIOUS_ACTION, Rule, RuleError, make_rule
from memenvs.task import BatchTask
from tests.rule_scores import actions_alone

SMALL = next(spec for spec in environments() if spec.name == "ExtObjNav-Small-v0")
APPLE, CRACKER_BOX = 10, 1


def make_env(num_envs: int = 1, **settings: object) -> TrialVectorEnv:
    """Make environments of the small id, in homes of the training split."""
    return TrialVectorEnv(SMALL.task, num_envs, **{**SMALL.defaults, "split": "train", **settings})  # type: ignore


def started(cls: Callable[[BatchTask], Rule], **settings: object) -> Rule:
    """Make a rule for one environment, at the start of a trial."""
    rule = cls(make_env(**settings).task)
    rule.start(np.ones(1, bool), np.ones(1, bool))
    return rule


def observe(pose: tuple[float, float, float], area: float = 0.0, room: float = 10.0) -> dict[str, np.ndarray]:
    """Observation at a pose in an empty place; the goal is an apple with an area in view."""
    symbols = np.full((1, SYMBOLIC_SIZE), room / 10, np.float32)
    symbols[:, :20] = 0.0
    symbols[0, APPLE] = area
    goal = np.zeros((1, 20), np.float32)
    goal[0, APPLE] = 1.0
    gps, compass = np.array([pose[:2]], np.float32), np.array([[math.cos(pose[2]), math.sin(pose[2])]], np.float32)
    return {"symbolic": symbols, "goal": goal, "gps": gps, "compass": compass, PREVIOUS_ACTION: np.zeros(1, np.int64)}


def act(rule: Rule, observation: dict[str, np.ndarray]) -> int:
    """See and choose once."""
    rule.see(observation)
    return int(rule.choose(observation)[0])


def test_rays_span_the_field_of_view() -> None:
    slopes = ray_slopes()
    assert len(slopes) == 32 and slopes[0] == -slopes[-1]
    assert math.degrees(math.atan(slopes[0])) == pytest.approx(44.0, abs=0.5)  # half of 90 degrees, less half a ray


@pytest.mark.parametrize("cls", [Finder, PresentFinder])
def test_it_stops_where_the_goal_is_large(cls: type[Rule]) -> None:
    rule = started(cls)
    assert act(rule, observe((0, 0, 0), area=math.log(1 + 64) / math.log(65537))) == STOP  # 4 pixels
    assert act(rule, observe((0, 0, 0), area=math.log(1 + 16) / math.log(65537))) != STOP


def test_it_goes_back_in_a_later_episode_and_says_how_long_ago() -> None:
    rule = started(Finder)
    assert act(rule, observe((3.0, 0.0, 0.0), area=0.5)) == STOP
    rule.start(np.zeros(1, bool), np.ones(1, bool))
    for step in range(3):
        assert act(rule, observe((0.25 * step, 0.0, 0.0))) == FORWARD
        assert rule.steps_back()[0] == step + 1
    rule.start(np.ones(1, bool), np.ones(1, bool))
    assert act(rule, observe((0.75, 0.0, 0.0))) != STOP
    assert rule.steps_back()[0] < 2  # the sight is forgotten


def test_it_drives_towards_a_small_goal_in_view_until_it_is_blocked() -> None:
    rule = started(Finder)
    act(rule, observe((0.0, 0.0, math.pi), area=0.5))  # the plan: turn around, as it was seen large from there
    small = 0.26  # one pixel
    for step in range(1, 4):
        assert act(rule, observe((0.25 * step, 0.0, 0.0), area=small)) == FORWARD
    blocked = [act(rule, observe((0.75, 0.0, 0.0), area=small)) for _ in range(2)]
    assert blocked[0] == FORWARD and blocked[1] != FORWARD


def test_a_traveller_has_a_memory_for_each_home() -> None:
    """In A, and after a visit of B, it acts as a robot that saw A alone; in B as one that begins there."""
    settings = {"itinerary": "AABBAB", "leg_flag": True, "trial_steps": None, "autoreset_mode": "Disabled"}
    env = make_env(1, **settings)
    plain = [Finder(env.task) for _ in range(2)]
    traveller = Traveller(env.task)
    mixed = Finder(env.task)
    observation, info = env.reset(seed=1)
    begun, differs = [False, False], False
    for episode in range(6):
        home = "AB".index(info["letter"][0])
        traveller.start(np.array([episode == 0]), np.ones(1, bool))
        mixed.start(np.array([episode == 0]), np.ones(1, bool))
        plain[home].start(np.array([not begun[home]]), np.ones(1, bool))
        begun[home], done = True, False
        while not done:
            actions = traveller.actions(observation)
            np.testing.assert_array_equal(actions, plain[home].actions(observation))
            differs |= bool((actions != mixed.actions(observation)).any())
            observation, _, terminated, truncated, info = env.step(actions)
            done = bool(terminated[0] | truncated[0])
        if episode < 5:
            observation, info = env.reset()
    assert differs  # one map for two homes does not do
    env.close()


def test_environments_are_independent() -> None:
    batch, *alone = (make_env(count, autoreset_mode="Disabled") for count in (3, 1, 1, 1))
    actions_alone(batch, Finder, alone)


@pytest.mark.parametrize("turn_deg", [30.0, 60.0])
def test_it_turns_around_in_steps_of_the_robot_and_gives_up(turn_deg: float) -> None:
    rule = started(Finder, turn_deg=turn_deg)
    act(rule, observe((0.0, 0.0, 0.0), area=0.5))
    rule.start(np.zeros(1, bool), np.ones(1, bool))
    behind = [act(rule, observe((0.0, 0.0, math.radians(180 - k * turn_deg)))) for k in range(round(180 / turn_deg))]
    assert set(behind) <= {LEFT, RIGHT} and rule._turned[0] == 0  # it turns to the heading of the sight
    for _ in range(round(360 / turn_deg)):
        assert rule._area[0, APPLE].any()
        act(rule, observe((0.0, 0.0, 0.0)))
    assert not rule._area[0, APPLE].any()


@pytest.mark.parametrize("cls", [Finder, PresentFinder])
def test_it_comes_nearer_to_a_large_object(cls: type[Rule]) -> None:
    """A cracker box has 9 pixels at 2.3 m, from where a stop fails."""
    rule = started(cls, categories=None)
    symbols = observe((0.0, 0.0, 0.0))
    for pixels, x, expected in ((9, 0.0, FORWARD), (30, 0.25, STOP)):
        seen = observe((x, 0.0, 0.0))
        seen["goal"] = np.roll(symbols["goal"], CRACKER_BOX - APPLE, axis=1)
        seen["symbolic"][0, CRACKER_BOX] = math.log(1 + 16 * pixels) / math.log(65537)
        assert act(rule, seen) == expected, pixels


def test_with_a_window_it_turns_on_to_one_side_and_forgets_a_sight() -> None:
    rule = started(WindowFinder, turn_deg=30.0)

    def walls(left: float, right: float) -> dict[str, np.ndarray]:
        seen = observe((0.0, 0.0, 0.0))
        seen["symbolic"][0, 20:36], seen["symbolic"][0, 36:] = left / 10, right / 10
        return seen

    chosen = [rule.actions(walls(*sides))[0] for sides in ((0.7, 0.6), (0.6, 0.7), (3.0, 3.0), (0.6, 0.7))]
    assert chosen == [LEFT, LEFT, FORWARD, RIGHT]
    assert rule.actions(observe((0.5, 0.0, 0.0), area=0.5))[0] == STOP
    for step in range(20):  # the sight was 0.5 m to the front; a window of 16 has lost it in the end
        rule.actions(observe((0.25 * step, 3.0, math.pi / 2)))
    assert rule._rule._area.max() == 0.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "value"), [("obs_mode", "rgb"), ("compass", False)])
def test_settings_that_they_need(name: str, value: object) -> None:
    env = make_env(**{name: value})
    for path in SMALL.policies.values():
        with pytest.raises(RuleError, match=name):
            make_rule(path, env.task)
