"""Histories written out by hand for the tests of the language."""

from datetime import datetime

import numpy as np

from memenvs.verbalization.dates import as_seconds
from memenvs.verbalization.episodes import Action, Episode, Frames, History, StartState
from memenvs.verbalization.symbols import AGENT, SYMBOL_IDS, Goal

LEFT, RIGHT = "handleft3a", "handright3a"


def second(*date: int) -> int:
    """Second since 2020-01-01 of year, month, day, hour, minute (, second)."""
    return as_seconds(datetime(*date))


def make_episode(goals, outcomes, steps, seen=(), start="roomcenter") -> Episode:
    """Make an episode of goals (predicate, object, place), which are reached or not.

    Steps are actions of the left hand: (verb, location, object or None, start, end, success). A sighting in `seen` is
    (second, object).
    """
    actions, place = [], start
    for verb, location, symbol, begin, end, success in steps:
        arguments = (AGENT, place, location) if verb == "move" else (AGENT, LEFT, location, symbol)
        actions.append(Action(verb, arguments, begin, end, "success" if success else "failure"))
        place = location if verb == "move" else place
    count = len(seen)
    objects = np.zeros((count, 2), np.int16)
    objects[:, 0] = [SYMBOL_IDS[symbol] for _, symbol in seen]
    times = np.array([at for at, _ in seen], np.int32)
    none = np.zeros((count, 0), np.int16)
    frames = Frames(times, none, none, none, objects, none, none)
    end = max(action.end for action in actions)
    status = "success" if all(action.status == "success" for action in actions) else "failure"
    named = tuple(Goal(*goal) for goal in goals)
    return Episode(named, tuple(outcomes), StartState(start, {}), tuple(actions), status, end, frames)


def three_episodes() -> History:
    """Monday morning, Monday afternoon and Tuesday noon; the question on Tuesday at 15:00."""
    cup_to_sink = make_episode(
        [("objectAt", "greencup", "sink")],
        [True],
        [
            ("move", "sideboard", None, 0, 12, True),
            ("grasp", "sideboard", "greencup", 13, 47, True),
            ("move", "sink", None, 48, 60, True),
            ("putdown", "sink", "greencup", 61, 300, True),
        ],
        seen=[(5, "corn"), (12, "greencup"), (50, "greencup")],
    )
    two_goals = make_episode(
        [("objectAt", "corn", "roundtable"), ("objectAt", "oil", "smalltable")],
        [True, False],
        [
            ("move", "countertop", None, 0, 20, True),
            ("grasp", "countertop", "corn", 21, 80, True),
            ("move", "roundtable", None, 81, 100, True),
            ("putdown", "roundtable", "corn", 101, 160, True),
            ("grasp", "roundtable", "oil", 161, 200, False),
        ],
        seen=[(20, "corn"), (100, "oil")],
    )
    grasp = make_episode(
        [("grasped", "greencup", LEFT)],
        [True],
        [("move", "sink", None, 0, 30, True), ("grasp", "sink", "greencup", 31, 155, True)],
        seen=[(30, "greencup")],
    )
    starts = (second(2021, 7, 5, 9, 12), second(2021, 7, 5, 16, 40), second(2021, 7, 6, 12, 20))
    return History((cup_to_sink, two_goals, grasp), starts, second(2021, 7, 6, 15, 0), (3,))


def ambiguous_day() -> History:
    """Two episodes of the same afternoon, in which different objects were grasped."""
    move = ("move", "sink", None, 0, 9, True)
    first, last = (
        make_episode([("grasped", symbol, LEFT)], [True], [move, ("grasp", "sink", symbol, 10, 60, True)])
        for symbol in ("corn", "oil")
    )
    return History((first, last), (second(2021, 7, 5, 14, 10), second(2021, 7, 5, 14, 20)), second(2021, 7, 6, 9, 0))
