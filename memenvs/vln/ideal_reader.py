"""A rule for R2R and CVDN that reads the text and remembers how much of it is done."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.rules import PREVIOUS_ACTION
from memenvs.task import PHASE, BatchTask, Observation
from memenvs.vln.env import GraphNavigation
from memenvs.vln.scripted_reader import (
    AT_START,
    BETWEEN,
    END_UNSEEN,
    OTHER_TURN,
    ReaderView,
    TextReader,
    belief_here,
    belief_there,
)
from memenvs.vln.worlds.procedural.texts import AHEAD, BACK, turn_of

#: Belief that the memory is wrong and the present view alone counts, after each move.
_ASTRAY = 1e-4
#: Belief from the present view alone that shows how much is done, at least.
_CERTAIN = 0.9
#: Clauses of a leg, on average.
_CLAUSES_PER_LEG = 3


class Evidence(NamedTuple):
    """Evidence of one view about the states of a text with K clauses; C neighbours are in view.

    There are S = 2 K + 1 states. State 2 k: clause k is next. State 2 k + 1: within clause k, going straight on to its
    end. State 2 K: all is done.

    Attributes:
        fresh: float64, (S,); belief in each state from this view alone, sum 1.
        first: float64, (K,); belief that the first viewpoint of each clause is here.
        last: float64, (K,); belief that its last viewpoint is here.
        is_one_move: bool, (K,); clauses whose first viewpoint is their last.
        moves: float64, (S, C); how well each neighbour fits what the state says to do next; 0 where all is done.
        ahead: float64, (S,); belief that some neighbour fits; 1 where all is done.
    """

    fresh: np.ndarray
    first: np.ndarray
    last: np.ndarray
    is_one_move: np.ndarray
    moves: np.ndarray
    ahead: np.ndarray


class IdealReader(TextReader):
    """Read the text and keep a belief over how much of it is done.

    It uses all views and own moves since `forget`.

    The belief is over the states of `Evidence`. A move takes a state on as far as the neighbour fits it, and what is
    seen at the new viewpoint weighs the states. An episode begins with the first clause. After `forget` within an
    episode all states are possible, so that with one view this is about the memoryless reader. A text without clauses
    is treated as that reader does.

    It has no map: it never goes back to where it lost the way.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        assert isinstance(task, GraphNavigation)
        self.bits = math.log2(1 + _CLAUSES_PER_LEG * task.config.num_legs)  # how many clauses are done
        self._beliefs = [np.zeros(0)] * task.num_envs
        self._views: list[ReaderView | None] = [None] * task.num_envs  # None: nothing is remembered
        self._is_start = np.zeros(task.num_envs, bool)
        self._steps_back = np.zeros(task.num_envs, np.int64)

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget everything; see `Rule`."""
        self._views = [None if gone else view for gone, view in zip(env_mask, self._views, strict=True)]
        self._is_start &= ~env_mask
        self._steps_back[env_mask] = 0

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Start with the first clause; see `Rule`."""
        self.forget(env_mask)
        self._is_start |= env_mask

    def see(self, observation: Observation) -> None:
        """Take in the views, and the moves that led to them; see `Rule`."""
        moves = observation[PREVIOUS_ACTION] - 1
        led = observation[PHASE] == 0 if PHASE in observation else np.zeros(len(moves), bool)
        for i, view in enumerate(self.views(observation)):
            if led[i]:  # to the start, where it begins anew
                self._views[i] = view
                continue
            evidence = weigh(view)
            self._beliefs[i] = self._believe(i, evidence, int(moves[i]))
            self._views[i] = view
            is_shown = self._is_start[i] or evidence.fresh.max() >= _CERTAIN
            self._steps_back[i] = 0 if is_shown else self._steps_back[i] + 1
        self._is_start = led

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        return np.array([self._action(i) for i in range(len(self._views))], np.int64)

    def steps_back(self) -> np.ndarray:
        """Steps since a view alone showed how much is done, or since the episode began.

        A view shows it with a belief of 0.9.
        """
        return self._steps_back.copy()

    def _action(self, i: int) -> int:
        """Choose the neighbour that fits the belief best, or stop where all is most likely done."""
        view, belief = self._views[i], self._beliefs[i]
        assert view is not None, "`see` comes first"
        if not view.clauses:
            return self.seek(view)
        moves = weigh(view).moves[:-1]
        scores = belief[:-1] @ (moves / moves.sum(1, keepdims=True))
        return self.stop if belief[-1] > scores.max() else int(view.candidates[scores.argmax()])

    def _believe(self, i: int, evidence: Evidence, move: int) -> np.ndarray:
        """Belief in each state after a move, float64, (S,)."""
        if self._is_start[i]:
            return np.eye(1, len(evidence.fresh))[0]
        before = self._views[i]
        if before is None or move not in before.candidates:
            return evidence.fresh
        taken = int(np.flatnonzero(before.candidates == move)[0])
        fits = self._beliefs[i] * weigh(before).moves[:, taken]
        begun, going = fits[:-1:2], fits[1::2]
        belief = np.zeros_like(fits)
        belief[1::2] = np.where(evidence.is_one_move, 0.0, begun * evidence.first + going * (1.0 - 0.9 * evidence.last))
        belief[2::2] = np.where(evidence.is_one_move, begun, going) * evidence.last
        belief *= evidence.ahead
        total = belief.sum()
        return (1.0 - _ASTRAY) * belief / total + _ASTRAY * evidence.fresh if total > 0.0 else evidence.fresh


@lru_cache(maxsize=32768)
def weigh(view: ReaderView) -> Evidence:
    """Weigh what a view says about each state of its text."""
    clauses, weights = view.clauses, view.weights
    count = len(clauses)
    fresh, moves, ahead = np.ones(2 * count + 1), np.zeros((2 * count + 1, len(view.angle))), np.ones(2 * count + 1)
    first = np.array([belief_here(weights, clause.first) for clause in clauses])
    last = np.array([belief_here(weights, clause.last) for clause in clauses])
    turns = np.array([turn_of(angle) for angle in view.angle.tolist()])
    is_straight = (turns == AHEAD) & (np.abs(view.angle) == np.abs(view.angle).min())
    for k, clause in enumerate(clauses):
        there = belief_there(weights, clause.first)
        moves[2 * k] = there * np.where(turns == clause.turn, 1.0, OTHER_TURN)
        moves[2 * k + 1] = np.where(is_straight, 1.0, OTHER_TURN / 2)
        moves[2 * k + 1] *= np.maximum(belief_there(weights, clause.last), END_UNSEEN)
        passed = max(float(first[k]), BETWEEN, float((there * (turns == BACK)).max()))
        fresh[2 * k] = AT_START if k == 0 else last[k - 1]
        fresh[2 * k + 1] = 0.0 if clause.first == clause.last else passed * (1.0 - 0.9 * last[k])
        fresh[2 * k + 2] = last[k]
    ahead[:-1] = moves[:-1].max(1)
    fresh *= ahead
    is_one_move = np.array([clause.first == clause.last for clause in clauses], bool)
    return Evidence(fresh / fresh.sum(), first, last, is_one_move, moves, ahead)
