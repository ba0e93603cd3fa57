"""A history as lists of events with absolute times, from which every answer is computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.episodes import History
from memenvs.verbalization.language.facts import Clause, ClauseVerb
from memenvs.verbalization.language.times import TimeReference
from memenvs.verbalization.symbols import OBJECTS, SYMBOL_IDS, SYMBOLS, Goal

#: Stream of random numbers of questions, below the key of a history.
_STREAM = 101
#: Verb of clauses for each action of the planner: its "move" moves the robot.
ACTION_VERBS: dict[str, ClauseVerb] = {"move": "go", "grasp": "grasp", "putdown": "putdown"}


class Event(NamedTuple):
    """A finished action, or a sighting of an object.

    Attributes:
        verb: Verb of its clause; "see" is a sighting.
        object: Symbol of its object; None for "go".
        location: Where it happened, or where a move leads.
        hand: Symbol of the hand.
        start: Second since 2020-01-01 00:00:00.
        end: The same.
        success: True unless it failed.
        episode: Index of the episode.
    """

    verb: str
    object: str | None
    location: str | None
    hand: str | None
    start: int
    end: int
    success: bool
    episode: int


class Stay(NamedTuple):
    """Time that the robot is at a location, or on its move to it.

    Attributes:
        location: Symbol of the location.
        start: Second at which it arrives, or starts to move.
        end: Second at which it leaves, or at which the move or the episode ends.
        moving: True on a move.
        arrived: True if a move ended at `start`.
        episode: Index of the episode.
    """

    location: str
    start: int
    end: int
    moving: bool
    arrived: bool
    episode: int

    def overlaps(self, time: TimeReference) -> bool:
        """Return True if a time denotes a second of it."""
        return self.start < time.high and time.low < self.end


class Log:
    """Events of a history in the order of time.

    Args:
        history: The history.

    Attributes:
        history: The history.
        now: Second at which questions about it are put.
        starts: Second at which each episode starts.
        events: Its actions.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.now = history.question_time
        self.starts = history.starts
        self.events = [
            Event(
                ACTION_VERBS[action.verb],
                action.object,
                action.location,
                action.hand,
                start + action.start,
                start + action.end,
                action.status == "success",
                number,
            )
            for number, (start, episode) in enumerate(zip(history.starts, history.episodes, strict=True))
            for action in episode.actions
        ]

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def own(self) -> Log:
        """The log without distractor days; itself if there are none."""
        return Log(self.history.own) if self.history.distractors else self

    @property
    def oldest(self) -> int:
        """Second at which the first episode starts; that of the question if there is none."""
        return self.starts[0] if self.starts else self.now

    def generator(self, number: int) -> np.random.Generator:
        """Return the generator of question `number`, valid until the next call.

        It is the history's own, moved on, as seeding one for each question would take longer than the question.
        """
        bits = self._generator.bit_generator
        bits.state = self._first_state
        bits.advance(number << 20)  # type: ignore[attr-defined]  # a question draws fewer numbers than that
        return self._generator

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([*self.history.key, _STREAM]))

    @cached_property
    def _first_state(self) -> Mapping[str, object]:
        return self._generator.bit_generator.state

    @cached_property
    def failures(self) -> list[Event]:
        """Actions that failed."""
        return [event for event in self.events if not event.success]

    @cached_property
    def active_days(self) -> list[int]:
        """Days, since 2020-01-01, on which an episode starts."""
        return sorted({start // DAY for start in self.starts})

    @cached_property
    def failure_days(self) -> list[int]:
        """Days on which an action failed."""
        return sorted({event.end // DAY for event in self.failures})

    @cached_property
    def stays(self) -> list[Stay]:
        """Stays and moves of the robot, in the order of time."""
        stays: list[Stay] = []
        for number, (start, end) in enumerate(zip(self.starts, self.history.ends, strict=True)):
            place, since, arrived = self.history.episodes[number].scene.robot, start, False
            for event in self.events:
                if event.episode != number or event.verb != "go":
                    continue
                if event.start > since:
                    stays.append(Stay(place, since, event.start, False, arrived, number))
                stays.append(Stay(event.location or "", event.start, event.end, True, False, number))
                place, since, arrived = event.location or "", event.end, True
                if not event.success:
                    since = end
            if since < end:
                stays.append(Stay(place, since, end, False, arrived, number))
        return stays

    @cached_property
    def seen(self) -> list[str]:
        """Symbols of the objects that a key frame shows."""
        numbers = [np.unique(episode.frames.objects) for episode in self.history.episodes]
        symbols = {SYMBOLS[number] for number in set(np.concatenate(numbers).tolist())} if numbers else set()
        return [symbol for symbol in OBJECTS if symbol in symbols]

    def sightings(self, symbol: str) -> list[Event]:
        """List the first and the last sighting of an object in each episode."""
        sightings = []
        for number, (start, episode) in enumerate(zip(self.starts, self.history.episodes, strict=True)):
            rows = np.flatnonzero((episode.frames.objects == SYMBOL_IDS[symbol]).any(axis=1))
            times = episode.frames.time[rows[[0, -1]]].tolist() if len(rows) else []
            sightings += [Event("see", symbol, None, None, start + at, start + at, True, number) for at in times]
        return sightings

    def goals(self, episode: int) -> list[tuple[Goal, bool]]:
        """List the predicates of an episode's goal, and whether each was reached."""
        of_episode = self.history.episodes[episode]
        return list(zip(of_episode.goals, of_episode.outcomes, strict=True))

    def select(
        self, verb: str, object: str | None = None, location: str | None = None, *, success: bool | None = True
    ) -> list[Event]:
        """List actions.

        Args:
            verb: Their verb.
            object: Their object; None for any.
            location: Their location; None for any.
            success: Whether they succeeded; None for any.
        """
        return [
            event
            for event in self.events
            if event.verb == verb
            and (object is None or event.object == object)
            and (location is None or event.location == location)
            and (success is None or event.success == success)
        ]

    def holds(self, clause: Clause) -> bool:
        """Return True if something in the history is as a clause says.

        Slots that a clause does not say are any. A count or a duration holds with the verb alone.
        """
        if clause.outcome == "denial":
            return not self.events
        if clause.outcome == "success":
            return not self.failures
        if clause.verb == "move":
            return any(self._reached(clause, number) for number in range(len(self)))
        if clause.verb is None and clause.object is None and clause.location is not None:
            return any(
                stay.location == clause.location
                and not stay.moving
                and (clause.time is None or stay.overlaps(clause.time))
                for stay in self.stays
            )
        verb = "go" if clause.verb == "arrive" else clause.verb
        return any(
            (verb is None or event.verb == verb)
            and (clause.object is None or event.object == clause.object)
            and (clause.location is None or event.location == clause.location)
            and (clause.hand is None or event.hand == clause.hand)
            and event.success == (clause.outcome != "failure")
            and (clause.time is None or clause.time.contains(event.start) or clause.time.contains(event.end))
            for event in self.events
        )

    def _reached(self, clause: Clause, episode: int) -> bool:
        """True if a goal of an episode ended as a clause with the verb "move" says."""
        if clause.time is not None and not clause.time.contains(self.starts[episode]):
            return False
        return any(
            goal.predicate == "objectAt"
            and (clause.object is None or goal.object == clause.object)
            and (clause.location is None or goal.place == clause.location)
            and reached == (clause.outcome != "failure")
            for goal, reached in self.goals(episode)
        )
