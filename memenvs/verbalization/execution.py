"""Plans carried out: how long actions take, which fail, and where everything is afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.verbalization.episodes import Action, StartState, TaskStatus
from memenvs.verbalization.household_config import HouseholdConfig
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, VERBS, Goal
from memenvs.verbalization.task_planner import HouseholdState, Step


@dataclass(frozen=True)
class Execution:
    """Result of a plan: the fields of `Episode` that it decides."""

    goals: tuple[Goal, ...]
    outcomes: tuple[bool, ...]
    scene: StartState
    actions: tuple[Action, ...]
    status: TaskStatus


@lru_cache(maxsize=16)
def base_seconds(config: HouseholdConfig) -> dict[tuple[str, str], float]:
    """Draw how long each object takes, once for a house; (verb, object) -> seconds."""
    rng = np.random.default_rng([config.house_seed, 1])
    grasp = rng.uniform(*config.grasp_seconds, len(OBJECTS))
    putdown = rng.uniform(*config.putdown_seconds, len(OBJECTS))
    slow = rng.permutation(len(OBJECTS))[: config.slow_objects]
    putdown[slow] = rng.uniform(*config.slow_putdown_seconds, len(slow))
    seconds = {}
    for number, symbol in enumerate(OBJECTS):
        seconds["grasp", symbol] = float(grasp[number])
        seconds["putdown", symbol] = float(putdown[number])
    return seconds


def move_seconds(config: HouseholdConfig, origin: str, target: str) -> float:
    """Compute the mean duration of a move between two locations, seconds."""
    a, b = LOCATIONS[origin], LOCATIONS[target]
    return config.move_seconds + math.hypot(a.x - b.x, a.y - b.y) / 1000 / config.speed


def execute(
    config: HouseholdConfig,
    goals: Sequence[Goal],
    plan: Sequence[Step],
    house: HouseholdState,
    rng: np.random.Generator,
) -> Execution:
    """Carry out a plan until it is done or an action fails.

    Args:
        config: Settings.
        goals: Goal of the plan.
        plan: Its actions.
        house: Where everything is; changed to what it is afterwards.
        rng: Source of durations and failures.

    Returns:
        Actions up to the first that failed, and what they reached.
    """
    scene = house.scene()
    base = base_seconds(config)
    low, high = config.episode_speed
    factor = math.exp(rng.uniform(math.log(low), math.log(high)))
    noise = rng.normal(0.0, config.duration_noise, len(plan)).tolist()
    draws = rng.random((len(plan), 2)).tolist()  # of each action: does it fail, and when
    stop, ending = rng.random(2).tolist()
    last = int(rng.integers(1, len(plan))) if stop < config.incomplete and len(plan) > 1 else len(plan)
    status: TaskStatus = "success" if last == len(plan) else "abort"
    actions: list[Action] = []
    reached: set[tuple[str, str]] = set()
    now = 0
    for k, (verb, arguments) in enumerate(plan[:last]):
        mean = move_seconds(config, arguments[1], arguments[2]) if verb == "move" else base[verb, arguments[3]]
        failed = draws[k][0] < config.failure[VERBS.index(verb)]
        if failed:
            mean *= 0.5 + 0.7 * draws[k][1]
        end = now + max(1, round(mean * factor * math.exp(noise[k])))
        actions.append(Action(verb, arguments, now, end, "failure" if failed else "success"))
        now = end + config.gap_seconds
        if failed:
            status = "abort" if ending < config.abort_share else "failure"
            break
        _apply(house, verb, arguments, reached)
    outcomes = tuple((goal.object, goal.place) in reached for goal in goals)
    return Execution(tuple(goals), outcomes, scene, tuple(actions), status)


def _apply(house: HouseholdState, verb: str, arguments: tuple[str, ...], reached: set[tuple[str, str]]) -> None:
    """Change the house as a successful action does, and note what it reached: (object, location or hand)."""
    if verb == "move":
        house.robot = arguments[2]
        return
    _, hand, location, symbol = arguments
    if verb == "grasp":
        del house.objects[symbol]
        house.in_hand[symbol] = hand
        reached.add((symbol, hand))
    else:
        del house.in_hand[symbol]
        house.objects[symbol] = (location, house.free_slots(location)[0])
        reached.add((symbol, location))


def tidy(config: HouseholdConfig, house: HouseholdState, rng: np.random.Generator) -> None:
    """Empty the robot's hands between two episodes.

    A person puts each object that they hold to a free slot of a pick location.
    """
    for symbol in sorted(house.in_hand):
        free = [(place, slot) for place in config.pick_locations for slot in house.free_slots(place)]
        house.objects[symbol] = free[int(rng.integers(len(free)))]
    house.in_hand.clear()
