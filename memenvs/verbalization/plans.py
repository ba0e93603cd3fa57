"""Goals of the household, plans that reach them, and how plans are carried out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from memenvs.verbalization.episodes import Action, StartState, TaskStatus
from memenvs.verbalization.household_config import GOAL_KINDS, HOUSE_SEED, HouseholdConfig
from memenvs.verbalization.symbols import AGENT, FAMILIES, HANDS, LOCATIONS, OBJECTS, PLACE_LOCATIONS, VERBS, Goal, Verb

SLOTS = 4
#: Bounds of the seconds that it takes to grasp an object, to put it down, and to put down one of the slow objects.
GRASP_SECONDS, PUTDOWN_SECONDS, SLOW_PUTDOWN_SECONDS = (20.0, 70.0), (50.0, 85.0), (100.0, 130.0)
SLOW_OBJECTS = 2
#: Constant part of the duration of a move, s, and speed of the platform, m/s.
MOVE_SECONDS, SPEED = 4.0, 0.4
#: Seconds between the end of an action and the start of the next.
GAP_SECONDS = 1
_FAMILY = {symbol: number for number, family in enumerate(FAMILIES) for symbol in family}
_OBJECT_NUMBER = {symbol: number for number, symbol in enumerate(OBJECTS)}
_PLACE_NUMBER = {symbol: number for number, symbol in enumerate(PLACE_LOCATIONS)}
Step = tuple[Verb, tuple[str, ...]]


def is_held_out(object: str, location: str) -> bool:
    """Return True if goals with this object and destination are held out; a fifth of all are."""
    return (_OBJECT_NUMBER[object] + 2 * _PLACE_NUMBER[location]) % 5 == 0


@dataclass
class HouseholdState:
    """Places of robot and objects now.

    Attributes:
        robot: Location of the robot.
        objects: Object -> (location, slot) of those that lie somewhere.
        in_hand: Object -> hand of those in a hand.
    """

    robot: str
    objects: dict[str, tuple[str, int]]
    in_hand: dict[str, str] = field(default_factory=dict)

    def scene(self) -> StartState:
        """Return a copy as the start scene of an episode; nothing may be in a hand."""
        return StartState(self.robot, dict(self.objects))

    def free_slots(self, location: str) -> list[int]:
        """List the slots of a location that have no object."""
        taken = {slot for place, slot in self.objects.values() if place == location}
        return [slot for slot in range(SLOTS) if slot not in taken]


def draw_house(config: HouseholdConfig, need: int, rng: np.random.Generator) -> HouseholdState:
    """Draw the state in which an episode starts.

    Args:
        config: Settings.
        need: Fewest objects that the goal needs.
        rng: Source of randomness.

    Returns:
        Objects at distinct slots of the pick locations, and the robot at its start.
    """
    low, high = config.scene_objects
    count = int(rng.integers(max(low, need), high + 1))
    chosen: list[str] = []
    for number in rng.permutation(len(config.objects)).tolist():
        symbol = config.objects[number]
        same = sum(_FAMILY[other] == _FAMILY[symbol] for other in chosen)
        if len(chosen) < count and not (config.max_per_family and same >= config.max_per_family):
            chosen.append(symbol)
    spots = [(location, slot) for location in config.pick_locations for slot in range(SLOTS)]
    order = rng.permutation(len(spots)).tolist()
    robot = "roomcenter" if config.start == "roomcenter" else _choose(config.locations, rng)
    return HouseholdState(robot, {symbol: spots[order[k]] for k, symbol in enumerate(chosen)})


def draw_goal_kind(config: HouseholdConfig, rng: np.random.Generator, objects: int | None = None) -> str:
    """Draw the kind of a goal; one that needs at most this many objects, if a number is given."""
    weights = np.array(
        [weight * (objects is None or sum(GOAL_KINDS[kind]) <= objects) for kind, weight in config.goal_mixture]
    )
    if not weights.any():
        raise ValueError(f"goal_mixture has no goal for a scene of {objects} objects, got {config.goal_mixture}")
    return config.goal_mixture[_weighted(weights, rng)][0]


def draw_goals(config: HouseholdConfig, kind: str, house: HouseholdState, rng: np.random.Generator) -> tuple[Goal, ...]:
    """Draw the predicates of a goal.

    Each object is brought to another location than its own, to one with a free slot.

    Args:
        config: Settings.
        kind: One of `GOAL_KINDS`.
        house: Places of robot and objects.
        rng: Source of randomness.
    """
    moves, grasps = GOAL_KINDS[kind]
    order = [list(house.objects)[number] for number in rng.permutation(len(house.objects)).tolist()]
    goals: list[Goal] = []
    free = {location: len(house.free_slots(location)) for location in config.place_locations}
    base = np.array(
        [
            weight
            for place, weight in zip(PLACE_LOCATIONS, config.place_weights, strict=True)
            if place in config.place_locations
        ]
    )
    for symbol in order[:]:
        if len(goals) == moves:
            break
        allowed = np.array(
            [
                place != house.objects[symbol][0]
                and free[place] > 0
                and (config.pairs == "all" or is_held_out(symbol, place) == (config.pairs == "unseen"))
                and (config.equal_destinations or all(place != goal.place for goal in goals))
                for place in config.place_locations
            ]
        )
        if allowed.any():
            place = config.place_locations[_weighted(base * allowed, rng)]
            free[place] -= 1
            goals.append(Goal("objectAt", symbol, place))
            order.remove(symbol)
    hands = [list(HANDS)[number] for number in rng.permutation(2).tolist()]
    goals += [Goal("grasped", symbol, hand) for symbol, hand in zip(order[:grasps], hands, strict=False)]
    return tuple(goals)


def make_plan(goals: Sequence[Goal], house: HouseholdState, rng: np.random.Generator) -> list[Step]:
    """Plan the actions that reach a goal.

    Two objects are fetched before they are delivered, one in each hand. A move to where the robot is already is left
    out.

    Args:
        goals: Predicates; those with "grasped" come last.
        house: The scene.
        rng: Chooses hands.

    Returns:
        Verb and arguments of each action.
    """
    steps: list[Step] = []
    robot = house.robot

    def go(location: str) -> None:
        nonlocal robot
        if location != robot:
            steps.append(("move", (AGENT, robot, location)))
            robot = location

    moves = [goal for goal in goals if goal.predicate == "objectAt"]
    for first in range(0, len(moves), 2):
        hands = [list(HANDS)[number] for number in rng.permutation(2).tolist()]
        load = list(zip(moves[first : first + 2], hands, strict=False))
        for goal, hand in load:
            go(house.objects[goal.object][0])
            steps.append(("grasp", (AGENT, hand, robot, goal.object)))
        for goal, hand in load:
            go(goal.place)
            steps.append(("putdown", (AGENT, hand, robot, goal.object)))
    for goal in goals:
        if goal.predicate == "grasped":
            go(house.objects[goal.object][0])
            steps.append(("grasp", (AGENT, goal.place, robot, goal.object)))
    return steps


def _choose(values: Sequence[str], rng: np.random.Generator) -> str:
    return values[int(rng.integers(len(values)))]


def _weighted(weights: np.ndarray, rng: np.random.Generator) -> int:
    bounds = weights.cumsum()
    return int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))


@dataclass(frozen=True)
class Execution:
    """Result of a plan: the fields of `Episode` that it decides."""

    goals: tuple[Goal, ...]
    outcomes: tuple[bool, ...]
    scene: StartState
    actions: tuple[Action, ...]
    status: TaskStatus


@cache
def base_seconds() -> dict[tuple[str, str], float]:
    """Draw how long each object takes, once for all houses; (verb, object) -> seconds."""
    rng = np.random.default_rng([HOUSE_SEED, 1])
    grasp = rng.uniform(*GRASP_SECONDS, len(OBJECTS))
    putdown = rng.uniform(*PUTDOWN_SECONDS, len(OBJECTS))
    slow = rng.permutation(len(OBJECTS))[:SLOW_OBJECTS]
    putdown[slow] = rng.uniform(*SLOW_PUTDOWN_SECONDS, len(slow))
    seconds = {}
    for number, symbol in enumerate(OBJECTS):
        seconds["grasp", symbol] = float(grasp[number])
        seconds["putdown", symbol] = float(putdown[number])
    return seconds


def move_seconds(origin: str, target: str) -> float:
    """Compute the mean duration of a move between two locations, seconds."""
    a, b = LOCATIONS[origin], LOCATIONS[target]
    return MOVE_SECONDS + math.hypot(a.x - b.x, a.y - b.y) / 1000 / SPEED


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
    base = base_seconds()
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
        mean = move_seconds(arguments[1], arguments[2]) if verb == "move" else base[verb, arguments[3]]
        failed = draws[k][0] < config.failure[VERBS.index(verb)]
        if failed:
            mean *= 0.5 + 0.7 * draws[k][1]
        end = now + max(1, round(mean * factor * math.exp(noise[k])))
        actions.append(Action(verb, arguments, now, end, "failure" if failed else "success"))
        now = end + GAP_SECONDS
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
