"""Moves between the episodes of a trial: a goal, or the objects of a home."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

#: Episodes that a reset may skip in a trial: what moved in them has to be drawn first.
MAX_SKIPPED = 10_000

State = TypeVar("State")


class Moves(Generic[State]):
    """State of each episode of a trial, where it changes between two episodes.

    It follows from the generator of the trial and the index of the episode alone, whatever was played before.

    Args:
        state: State in the first episode.
        advance: Draws the state of the next episode; None where nothing moves.
        rng: Generator of the trial, which this object keeps for itself.

    Attributes:
        moved: True if something has moved between the episode of the last `at` and the one before it.
    """

    def __init__(
        self, state: State, advance: Callable[[State, np.random.Generator], State] | None, rng: np.random.Generator
    ) -> None:
        self._first = state, deepcopy(rng)
        self._advance = advance
        self._state, self._rng, self._episode = state, rng, 0
        self.moved = False

    def at(self, episode: int) -> State:
        """Return the state in an episode.

        Args:
            episode: Its index in the trial.

        Raises:
            ValueError: It is too far ahead to draw all that moves before it.
        """
        if self._advance is None:
            return self._state
        if episode < self._episode:
            (self._state, first_rng), self._episode = self._first, 0
            self._rng, self.moved = deepcopy(first_rng), False
        if episode > self._episode + MAX_SKIPPED:
            raise ValueError(
                f"option 'episode_index' must be at most {self._episode + MAX_SKIPPED} with moves, as all that moves "
                f"before that episode has to be drawn, got {episode}"
            )
        while self._episode < episode:
            before, self._state = self._state, self._advance(self._state, self._rng)
            self.moved = self._state != before
            self._episode += 1
        return self._state


def check_moves(moves: Any) -> None:
    """Raise a ValueError unless the setting `moves` is a probability."""
    is_number = isinstance(moves, (int, float, np.number)) and not isinstance(moves, bool)
    if not is_number or not 0.0 <= moves <= 1.0:
        raise ValueError(f"moves must be a probability, 0 to 1, got {moves!r}")


def moving_goal(goal: int, count: int, moves: float, rng: np.random.Generator) -> Moves[int]:
    """Make the goals of the episodes of a trial: the last one, or one of the others.

    Args:
        goal: Number of the goal in the first episode.
        count: Number of goals; a single one stays.
        moves: Probability of a change between two episodes, 0 to 1; all others are as likely.
        rng: Generator of the trial.
    """
    return Moves(goal, partial(_move_goal, count=count, moves=moves) if moves else None, rng)


def _move_goal(goal: int, rng: np.random.Generator, *, count: int, moves: float) -> int:
    """Draw the number of the next goal."""
    moved, other = rng.random() < moves, int(rng.integers(max(1, count - 1)))
    return other + (other >= goal) if moved and count > 1 else goal
