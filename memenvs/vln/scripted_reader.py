"""A rule for R2R and CVDN that reads the text, sees the viewpoint and remembers nothing."""

from __future__ import annotations

import math
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
_AT_START, _BETWEEN, _OTHER_TURN = 0.3, 0.4, 0.05
#: Belief, at least, in going straight on where its end is not yet seen.
_END_UNSEEN = 0.3


class Reader(Rule):
    """Find out from the view alone which clause of the text comes next, and do what it says.

    It knows the grammar of the procedural texts and the public codes of the names in synthetic features, so that it
    reads the names of its own viewpoint and of the neighbours. A clause is likely to be next where its turn leads to
    its first viewpoint and the one before ends here. Of a dialogue it reads the last answer; without one it goes to
    the target where it sees it, else straight on.

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
        self._stop = task.stop
        self._tokens = task.tokenizer.tokens
        self._size = task.observation_space["candidates"].shape[1] - ANGLE_SIZE  # type: ignore[index]
        self._codes = name_codes(NAMES, self._size)
        self._read = lru_cache(maxsize=4096)(self._read_tokens)
        self._see = lru_cache(maxsize=4096)(self._see_bytes)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        rows = ({key: value[i] for key, value in observation.items()} for i in range(len(observation["candidates"])))
        return np.array([self._action(row) for row in rows], np.int64)

    # ------------------------------------------------------------------ private

    def _action(self, observed: Observation) -> int:
        """Choose the action of one environment."""
        candidates = np.flatnonzero(observed["candidate_mask"][: self._stop])
        features = observed["candidates"][candidates]
        angle = np.arctan2(features[:, self._size], features[:, self._size + 1])  # positive to the right
        weights = self._see(features[:, : self._size].tobytes())
        clauses, target = self._read(observed["instruction"].tobytes())
        chosen = self._seek(weights, angle, target) if not clauses else self._follow(weights, angle, clauses)
        return self._stop if chosen is None else int(candidates[chosen])

    def _follow(self, weights: np.ndarray, angle: np.ndarray, clauses: tuple[SubInstruction, ...]) -> int | None:
        """Choose the neighbour that most likely comes next, None to stop.

        Args:
            weights: float64, (C, names); of each of C neighbours.
            angle: float64, (C,); of its direction relative to the camera, rad, positive to the right.
            clauses: Those of the text.
        """
        turns = np.array([turn_of(each) for each in angle.tolist()])
        is_straight = (turns == AHEAD) & (np.abs(angle) == np.abs(angle).min())
        best, chosen = belief_here(weights, clauses[-1].last), None
        for k, clause in enumerate(clauses):
            first, last = belief_there(weights, clause.first), belief_there(weights, clause.last)
            begins = _AT_START if k == 0 else belief_here(weights, clauses[k - 1].last)
            beliefs = begins * first * np.where(turns == clause.turn, 1.0, _OTHER_TURN)
            if clause.last != clause.first:
                passed = max(belief_here(weights, clause.first), _BETWEEN, (first * (turns == BACK)).max())
                passed *= 1.0 - 0.9 * belief_here(weights, clause.last)
                straight = passed * np.where(is_straight, 1.0, _OTHER_TURN / 2) * np.maximum(last, _END_UNSEEN)
                beliefs = np.maximum(beliefs, straight)
            if beliefs.max() > best:
                best, chosen = float(beliefs.max()), int(beliefs.argmax())
        return chosen

    def _seek(self, weights: np.ndarray, angle: np.ndarray, target: int | None) -> int | None:
        """Go to a neighbour with the target, else straight on; None to stop."""
        if target is None or weights[:, target].min() > _HERE[1]:
            return None
        return int(np.argmax((weights[:, target] > _THERE[1]) * 10.0 * weights[:, target] - np.abs(angle)))

    def _read_tokens(self, instruction: bytes) -> tuple[tuple[SubInstruction, ...], int | None]:
        """Read a text: its clauses, of a dialogue those of the last answer, and the number of the target's name."""
        words = [self._tokens[k] for k in np.frombuffer(instruction, np.int64).tolist() if k != 0]
        target = words[-words[::-1].index(TARGET)] if TARGET in words else None
        if ORACLE in words:
            words = words[-words[::-1].index(ORACLE) :]
        return read_clauses(words), None if target is None else _INDEX[target]

    def _see_bytes(self, features: bytes) -> np.ndarray:
        """Weights of the names in the views of all neighbours, (C, names)."""
        return name_weights(np.frombuffer(features, np.float32).reshape(-1, self._size), self._codes)


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
    gram = codes @ codes.T / codes.shape[1]
    step = 1.0 / float(np.linalg.eigvalsh(gram)[-1])
    target = features @ codes.T / codes.shape[1] - _PRICE
    weights = ahead = np.zeros_like(target)
    speed = 1.0
    for _ in range(_ITERATIONS):
        new = np.maximum(ahead - step * (ahead @ gram - target), 0.0)
        next_speed = (1.0 + math.sqrt(1.0 + 4.0 * speed**2)) / 2.0
        ahead = new + (speed - 1.0) / next_speed * (new - weights)
        weights, speed = new, next_speed
    return weights


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
