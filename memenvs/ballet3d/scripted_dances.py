"""Answers of Ballet3D from the query alone, and from all views since the start."""

from __future__ import annotations

import math

import numpy as np

from memenvs.ballet3d.env import Ballet3D
from memenvs.ballet3d.episodes import (
    DANCE_POSITIONS,
    DANCES,
    LOOP,
    NUM_DANCERS,
    NUM_STEPS,
    POSITIONS,
    REST,
    TURN_DEG,
    TURNING,
    WATCHING,
    position_numbers,
)
from memenvs.ballet3d.room import STAGE_DISTANCE, VIEW_SIZE
from memenvs.box_rooms.room import FIELD_OF_VIEW_DEG
from memenvs.rules import AnswerRule
from memenvs.task import BatchTask, Observation

#: Rows that are searched for dancers: from the top of a dancer in the air to the highest row of the floor, which is as
#: grey as some dancers. A dancer in the air is above `_MIDDLE_ROW`, one on the floor below.
_ROWS = slice(33, 57)
_MIDDLE_ROW = 50.5
#: A pixel shows a dancer if its colour is as bright, within these factors, and has this cosine with the dancer's.
_BRIGHTNESS, _COSINE = (0.45, 1.8), 0.995
_MIN_PIXELS = 12
#: A box fills its bounding rectangle, a ball does not.
_BOX_FILL = 0.88
#: A dancer's shift of 1 m, degrees as seen from the robot, and the standard deviation of a turn as it is seen.
_SHIFT_DEG, _TURN_SD_DEG = math.degrees(math.atan(1 / STAGE_DISTANCE)), 1.6
#: Penalty, in squared standard deviations, of a height that another dance would have.
_HEIGHT_PENALTY = 16.0
#: Height and shift after t % 6 moves of each dance, int64, (5, 6, 2).
_BY_PHASE = np.roll(DANCE_POSITIONS, 1, axis=1)


class MeanDance(AnswerRule):
    """Answer with the mean of the five dances of the queried dancer, which the query shows."""

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Ballet3D)
        super().__init__(task)
        views = task.world.front_views.reshape(NUM_DANCERS, len(POSITIONS), *VIEW_SIZE, 3)
        self._views = views.astype(np.float32)

    def _answer(self, i: int, observation: Observation) -> np.ndarray:
        gaps = np.abs(self._views[:, REST] - observation["query"][i]).sum((1, 2, 3))
        dancer = int(gaps.argmin())
        dances = self._views[dancer][position_numbers(DANCE_POSITIONS)]  # (5, 6, 84, 84, 3)
        picture = np.tensordot(self._dance_odds(i, dancer), dances, 1)
        return np.clip(np.moveaxis(picture, 0, 2).reshape(-1) / 127.5 - 1, -1, 1)

    def _dance_odds(self, i: int, dancer: int) -> np.ndarray:
        """Probability of each dance, float32, (5,)."""
        return np.full(len(DANCES), 1 / len(DANCES), np.float32)


class DanceObserver(MeanDance):
    """Answer with the dance of the queried dancer, as far as the views since `forget` show it.

    A view shows a dancer's height, and where it is to the left or right. Steps are counted back from the query, so the
    moves of each dance at each step are known. From step to step the direction of a dancer changes by its move and by
    the turn of the robot, 5 degrees but for a deviation, or none while it watches. The answer is the mean over the
    dances, weighed by their probabilities. `steps_back` counts the steps since the queried dancer was seen.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Ballet3D)
        super().__init__(task)
        dancers = task.world.num_dancers  # the query may be about each of them
        self.bits = math.log2(math.comb(NUM_DANCERS, dancers)) + dancers * math.log2(len(DANCES))
        background = np.median(self._views[:, REST], 0)
        is_dancer = (np.abs(self._views[:, REST] - background) > 10).any(-1)  # (12, 84, 84)
        self._colours = np.stack([np.median(self._views[k, REST][is_dancer[k]], 0) for k in range(NUM_DANCERS)])
        self._frames = np.zeros((task.num_envs, NUM_STEPS, *self._views[0, 0][_ROWS].shape), np.uint8)
        self._steps = np.zeros(task.num_envs, np.int64)  # views since `forget`, of the present episode

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the views; see `Rule`."""
        self._steps[env_mask] = 0

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the views of the episode before; see `Rule`."""
        self._steps[env_mask] = 0

    def see(self, observation: Observation) -> None:
        """Keep the view; see `Rule`."""
        watching = np.flatnonzero(observation["phase"] == 0)
        self._frames[watching, self._steps[watching] % NUM_STEPS] = observation["rgb"][watching, _ROWS]
        self._steps[watching] += 1

    def _dance_odds(self, i: int, dancer: int) -> np.ndarray:
        count = min(int(self._steps[i]), NUM_STEPS)
        steps = np.arange(NUM_STEPS - count, NUM_STEPS)
        order = (self._steps[i] - count + np.arange(count)) % NUM_STEPS
        is_seen, height, bearing = self._find(self._frames[i, order], dancer)
        if is_seen.any():
            self._steps_back[i] = NUM_STEPS - steps[is_seen].max()
        t, height, bearing = steps[is_seen], height[is_seen], bearing[is_seen]
        up, shift = _BY_PHASE[:, t % LOOP, 0], _BY_PHASE[:, t % LOOP, 1]  # (5, K)
        penalty = _HEIGHT_PENALTY * (up != height).sum(1)
        follows = np.diff(t) == 1
        after = t[1:]
        turn = np.where((after >= TURNING) & (after < TURNING + WATCHING), 0.0, np.mean(TURN_DEG))
        change = np.diff(bearing) + turn - _SHIFT_DEG * np.diff(shift, axis=1)  # to the right, (5, K - 1)
        penalty = penalty + ((change / _TURN_SD_DEG) ** 2)[:, follows].sum(1)
        odds = np.exp(-0.5 * (penalty - penalty.min()))
        return (odds / odds.sum()).astype(np.float32)

    def _find(self, frames: np.ndarray, dancer: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find a dancer in views.

        Args:
            frames: uint8, (K, R, W, 3); some rows of them.
            dancer: Number of the dancer.

        Returns:
            bool (K,), True where it is seen whole; its height, int64 (K,), 0 or 1; and its direction to the right of
            the middle, float64 (K,), degrees.
        """
        colours = frames.astype(np.float32)
        own = self._colours[dancer].astype(np.float32)
        length, own_length = np.linalg.norm(colours, axis=-1), np.linalg.norm(own)
        low, high = _BRIGHTNESS
        is_own = (colours @ own > _COSINE * length * own_length) & (length > low * own_length)
        is_own &= length < high * own_length
        count = is_own.sum((1, 2))
        by_row, by_column = is_own.any(2), is_own.any(1)
        filled = count / np.maximum(by_row.sum(1) * by_column.sum(1), 1)
        is_whole = (count >= _MIN_PIXELS) & ~by_column[:, 0] & ~by_column[:, -1]
        is_box = dancer < NUM_DANCERS // 2
        is_seen = is_whole & ((filled > _BOX_FILL) == is_box)
        rows, columns = np.arange(frames.shape[1]) + _ROWS.start + 0.5, np.arange(frames.shape[2]) + 0.5
        per = np.maximum(count, 1)
        row = (is_own.sum(2) * rows).sum(1) / per
        column = (is_own.sum(1) * columns).sum(1) / per
        focal = VIEW_SIZE[0] / 2 / math.tan(math.radians(FIELD_OF_VIEW_DEG / 2))
        return is_seen, (row < _MIDDLE_ROW).astype(np.int64), np.degrees(np.arctan((column - VIEW_SIZE[1] / 2) / focal))
