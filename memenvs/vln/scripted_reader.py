"""A rule for R2R and CVDN that reads the text, sees the viewpoint and remembers nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.rules import Rule, RuleError
from memenvs.task import BatchTask, Observation
from memenvs.vln.env import GraphNavigation
from memenvs.vln.features.base import ANGLE_SIZE
from memenvs.vln.features.synthetic import name_codes
from memenvs.vln.worlds.base import ORACLE, TARGET
from memenvs.vln.worlds.procedural.houses import COLOURS, HALLWAY, ITEMS, ROOM_TYPES, Landmark
from memenvs.vln.worlds.procedural.texts import AHEAD, BACK, SubInstruction, read_clauses, turn_of

NAMES = (*ROOM_TYPES, HALLWAY, *ITEMS, *COLOURS, "door")
_INDEX = {name: k for k, name in enumerate(NAMES)}
#: Price of a weight, and steps of the descent that finds the weights.
_PRICE, _ITERATIONS = 0.02, 100
# Weights of names in an image feature, by `name_weights`: of the robot's own viewpoint at least 0.33 in 95 of 100
# cases, of a neighbour 0.12 to 0.3, of others below 0.02. Between the two numbers of a pair belief rises from 0 to 1.
_HERE = (0.1, 0.3)
_THERE = (0.05, 0.13)
_MORE_THAN_HERE = (0.0, 0.15)  # more weight than at the robot, of a name that is there too
#: Belief in a name of a neighbour that the robot's own viewpoint has too, at least.
_SHARED = 0.6
#: Belief that remains where what is seen does not fit, at least.
_DOUBT = 0.02
#: Prior belief: to be at the start, within a clause going straight on, and to turn otherwise than the clause says.
AT_START, BETWEEN, OTHER_TURN = 0.3, 0.4, 0.05
#: Belief, at least, in going straight on where its end is not yet seen.
END_UNSEEN = 0.3


@dataclass(frozen=True, eq=False)
class ReaderView:
    """View at a viewpoint, and the text that goes with it.

    Attributes:
        candidates: int64, (C,); actions of the C neighbours.
        angle: float64, (C,); direction of each neighbour relative to the camera, rad, positive to the right.
        weights: float64, (C, names); weight of each of `NAMES` in the view of each neighbour.
        clauses: Clauses of the text.
        target: Number in `NAMES` of the item that is sought, None without one.
    """

    candidates: np.ndarray
    angle: np.ndarray
    weights: np.ndarray
    clauses: tuple[SubInstruction, ...]
    target: int | None


class TextReader(Rule):
    """Base of the readers of procedural texts.

    It knows the grammar of the texts and the public codes of names in features.

    Attributes:
        stop: Number of the action that stops.

    Raises:
        RuleError: The task has other texts or features than those of the procedural world.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, GraphNavigation)
        config = task.config
        needed = {"world": "procedural", "features": "synthetic", "tokenizer": "words"}
        for name, value in needed.items():
            if getattr(config, name) != value:
                raise RuleError(f"{name} must be {value!r} for this rule, got {getattr(config, name)!r}")
        self.stop = task.stop
        self._size = task.observation_space["candidates"].shape[1] - ANGLE_SIZE  # type: ignore[index]
        sight = _sight(task.tokenizer.tokens, config.num_legs, self._size)
        self._read, self._view = sight.read, sight.view

    def views(self, observation: Observation) -> list[ReaderView]:
        """Views that the environments observe; equal observations give the same object."""
        views = []
        for i, instruction in enumerate(observation["instruction"]):
            mask = observation["candidate_mask"][i, : self.stop]
            rows = observation["candidates"][i, : self.stop][mask > 0]
            views.append(self._view(mask.tobytes(), rows[:, : self._size + 2].tobytes(), instruction.tobytes()))
        return views

    def seek(self, view: ReaderView) -> int:
        """Go to a neighbour with the target, else straight on; stop where it is."""
        if view.target is None or view.weights[:, view.target].min() > _HERE[1]:
            return self.stop
        seen = view.weights[:, view.target]
        return int(view.candidates[np.argmax((seen > _THERE[1]) * 10.0 * seen - np.abs(view.angle))])


class _Sight:
    """Views and texts of readers; all of a certificate share them, as they come by the same places.

    Args:
        tokens: Vocabulary.
        legs: Legs of a path.
        size: Numbers of a feature.
    """

    def __init__(self, tokens: Sequence[str], legs: int, size: int) -> None:
        self._tokens, self._legs, self._size = tokens, legs, size
        self._codes = name_codes(NAMES, size)
        self.read = lru_cache(maxsize=4096)(self._read_tokens)
        self.view = lru_cache(maxsize=32768)(self._view_of_bytes)
        self._weights = lru_cache(maxsize=32768)(self._weights_of_bytes)

    def _view_of_bytes(self, mask: bytes, rows: bytes, instruction: bytes) -> ReaderView:
        """See the view of a mask of candidates, their features with sine and cosine of their directions, and a text."""
        features = np.frombuffer(rows, np.float32).reshape(-1, self._size + 2)
        return ReaderView(
            np.flatnonzero(np.frombuffer(mask, np.int8)),
            np.arctan2(features[:, self._size], features[:, self._size + 1]),
            self._weights(features[:, : self._size].tobytes()),
            *self.read(instruction),
        )

    def _weights_of_bytes(self, features: bytes) -> np.ndarray:
        """Find the weights of names in features, whatever the text and the direction of the camera."""
        return name_weights(np.frombuffer(features, np.float32).reshape(-1, self._size), self._codes)

    def _read_tokens(self, instruction: bytes) -> tuple[tuple[SubInstruction, ...], int | None]:
        """Read a text: its clauses, of a dialogue those of the last answers, and the number of the target's name."""
        words = [self._tokens[k] for k in np.frombuffer(instruction, np.int64).tolist() if k != 0]
        target = words[-words[::-1].index(TARGET)] if TARGET in words else None
        answers = [k for k, word in enumerate(words) if word == ORACLE]
        if answers:  # those before are about what lies behind
            words = words[answers[-self._legs :][0] :]
        return read_clauses(words), None if target is None else _INDEX[target]


@lru_cache(maxsize=4)
def _sight(tokens: tuple[str, ...], legs: int, size: int) -> _Sight:
    return _Sight(tokens, legs, size)


class Reader(TextReader):
    """Find out from the view alone which clause of the text comes next, and do what it says.

    A clause is likely to be next where its turn leads to its first viewpoint and the one before ends here. Of a
    dialogue it reads the last answer; without one it goes to the target where it sees it, else straight on.

    Raises:
        RuleError: The task has other texts or features than those of the procedural world.
    """

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        views = self.views(observation)
        return np.array([self._follow(view) if view.clauses else self.seek(view) for view in views], np.int64)

    def _follow(self, view: ReaderView) -> int:
        """Choose the neighbour that most likely comes next, or stop."""
        weights, clauses = view.weights, view.clauses
        turns = np.array([turn_of(angle) for angle in view.angle.tolist()])
        is_straight = (turns == AHEAD) & (np.abs(view.angle) == np.abs(view.angle).min())
        best, chosen = belief_here(weights, clauses[-1].last), self.stop
        for k, clause in enumerate(clauses):
            first, last = belief_there(weights, clause.first), belief_there(weights, clause.last)
            begins = AT_START if k == 0 else belief_here(weights, clauses[k - 1].last)
            beliefs = begins * first * np.where(turns == clause.turn, 1.0, OTHER_TURN)
            if clause.last != clause.first:
                passed = max(belief_here(weights, clause.first), BETWEEN, (first * (turns == BACK)).max())
                passed *= 1.0 - 0.9 * belief_here(weights, clause.last)
                straight = passed * np.where(is_straight, 1.0, OTHER_TURN / 2) * np.maximum(last, END_UNSEEN)
                beliefs = np.maximum(beliefs, straight)
            if beliefs.max() > best:
                best, chosen = float(beliefs.max()), int(view.candidates[beliefs.argmax()])
        return chosen


def name_weights(features: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Find the weights of names of which a feature is the sum.

    Args:
        features: float32, (C, D).
        codes: float64, (K, D).

    Returns:
        float64, (C, K); at least 0, with the least squared error plus a small price for each weight.

    Source:
        Beck and Teboulle, "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems", 2009.
    """
    gram, step = _gram(codes.tobytes(), codes.shape[1])
    target = features @ codes.T / codes.shape[1] - _PRICE
    weights = ahead = np.zeros_like(target)
    speed = 1.0
    for _ in range(_ITERATIONS):
        new = np.maximum(ahead - step * (ahead @ gram - target), 0.0)
        next_speed = (1.0 + math.sqrt(1.0 + 4.0 * speed**2)) / 2.0
        ahead = new + (speed - 1.0) / next_speed * (new - weights)
        weights, speed = new, next_speed
    return weights


@lru_cache(maxsize=16)
def _gram(codes: bytes, size: int) -> tuple[np.ndarray, float]:
    """Products of the codes, float64, (K, K), and the length of a step of the descent."""
    table = np.frombuffer(codes, np.float64).reshape(-1, size)
    gram = table @ table.T / size
    return gram, 1.0 / float(np.linalg.eigvalsh(gram)[-1])


def belief_here(weights: np.ndarray, landmark: Landmark) -> float:
    """Compute the belief, 0.02 to 1, that a landmark is the present viewpoint.

    Args:
        weights: float64, (C, names); weight of each name in the view towards each neighbour.
        landmark: Rooms and item of a viewpoint.
    """
    least = weights.min(0)[_names(landmark)].min()
    return float(_rising(least, _HERE))


def belief_there(weights: np.ndarray, landmark: Landmark) -> np.ndarray:
    """Compute the belief that a landmark is each of C neighbours; float64, (C,), 0.02 to 1."""
    seen = weights[:, _names(landmark)]
    here = seen.min(0)  # of the present viewpoint
    more = _SHARED + (1.0 - _SHARED) * _rising(seen - here, _MORE_THAN_HERE)
    return np.maximum(np.where(here < _HERE[1] - 0.1, _rising(seen, _THERE), more).prod(1), _DOUBT)


def _rising(value: np.ndarray, between: tuple[float, float]) -> np.ndarray:
    """Rise from 0.02 to 1 between two values."""
    low, high = between
    return _DOUBT + (1.0 - _DOUBT) * np.clip((value - low) / (high - low), 0.0, 1.0)


def _names(landmark: Landmark) -> list[int]:
    """Numbers of the names that features have at a viewpoint with this description."""
    return [_INDEX[name] for name in (*landmark.rooms, *(landmark.item or ("door",)))]
