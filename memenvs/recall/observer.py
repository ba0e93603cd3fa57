"""Answers of ViewRecall: the mean picture, and the observed view.

The second one follows from the pictures that were observed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from memenvs.recall.config import ViewRecallConfig
from memenvs.recall.pools import ViewPool
from memenvs.recall.turns import NO_MOVE, NUM_HEADINGS, NUM_PLACES, OBSERVED_HEADINGS, QUERY_HEADINGS, TURN
from memenvs.recall.view_recall import ViewRecall
from memenvs.rules import AnswerRule
from memenvs.task import BatchTask, Observation

#: Positions of the mean picture: three in each of the 37 training houses.
_POSITIONS = 111


class MeanView(AnswerRule):
    """Answer with the mean picture of the training split.

    The queried heading counts from a start that is drawn, so it says nothing about the view.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, ViewRecall)
        super().__init__(task)
        self._config = task.config

    def _answer(self, i: int, observation: Observation) -> np.ndarray:
        cos, sin = observation["heading"][i].tolist()
        query = round(math.atan2(sin, cos) * NUM_PLACES / (2 * math.pi) - 0.5) % NUM_PLACES
        picture = self._view(i, QUERY_HEADINGS[query], mean_view(self._config))
        return np.clip(picture.ravel() / 127.5 - 1, -1, 1)

    def _view(self, i: int, query: float, mean: np.ndarray) -> np.ndarray:
        """Picture to answer, float, (H, W, 3), 0 to 255, for a queried heading (rad)."""
        return mean


class ViewObserver(MeanView):
    """Answer with the view that follows from the pictures since `forget`.

    Where they end, it answers with the mean picture.

    An observer that turns on the spot can compute the view in a new direction from pictures in other directions, as far
    as these show it (`stitch`). `steps_back` counts the steps since the oldest picture that the view needed.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._pictures = np.zeros((task.num_envs, NUM_HEADINGS, *self._config.image_size, 3), np.uint8)
        self._age = np.full((task.num_envs, NUM_HEADINGS), -1)  # steps since each was observed; -1 for never

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the pictures; see `Rule`."""
        self._age[env_mask] = -1

    def see(self, observation: Observation) -> None:
        """Keep the picture in this heading; see `Rule`."""
        self._age += self._age >= 0
        watching = observation["phase"] == 0
        self._age[watching & (observation["move"] == NO_MOVE)] = -1  # another position
        cos, sin = observation["heading"].T
        rows = np.flatnonzero(watching & (np.hypot(cos, sin) > 0.5))  # not in the blank steps of a gap
        heading = np.rint(np.arctan2(sin[rows], cos[rows]) / TURN).astype(np.int64) % NUM_HEADINGS
        self._pictures[rows, heading] = observation["rgb"][rows]
        self._age[rows, heading] = 0

    def _view(self, i: int, query: float, mean: np.ndarray) -> np.ndarray:
        observed = np.flatnonzero(self._age[i] >= 0)
        if not len(observed):
            return mean
        view, source = stitch(self._pictures[i, observed], OBSERVED_HEADINGS[observed], query, self._config.hfov_deg)
        used = np.unique(source[source >= 0])
        self._steps_back[i] = self._age[i, observed[used]].max(initial=0)
        return np.where(np.isnan(view), mean, view)


@lru_cache(8)
def mean_view(config: ViewRecallConfig) -> np.ndarray:
    """Compute the mean picture, float64, (H, W, 3), 0 to 255.

    It is that of the training split, or of all homes of a `HouseWorld`. It takes a second or two with
    the default settings.
    """
    training = replace(config, split="train") if isinstance(config.world, str) else config
    mean = ViewPool(training, positions=_POSITIONS).pictures.mean((0, 1))
    mean = (mean + mean[:, ::-1]) / 2  # homes have no left and right
    mean.flags.writeable = False
    return mean


def stitch(pictures: np.ndarray, headings: np.ndarray, query: float, hfov_deg: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute the view in a direction from pictures in other directions.

    Args:
        pictures: uint8 or float, (K, H, W, 3); K >= 1.
        headings: float, (K,); rad.
        query: Heading of the view, rad.
        hfov_deg: Horizontal field of view of all pictures, degrees.

    Returns:
        The view, float64, (H, W, 3): each pixel from the picture nearest to the direction that shows it, with linear
        interpolation; NaN where none does. And the number of that picture, int64, (H, W); -1 where there is none.
    """
    _, height, width, _ = pictures.shape
    focal = width / 2 / math.tan(math.radians(hfov_deg) / 2)
    row, column = np.indices((height, width))
    to_right = np.arctan((column + 0.5 - width / 2) / focal)  # angle of each pixel's ray from the middle, rad
    down = (row + 0.5 - height / 2) / focal * np.cos(to_right)  # of the ray, per horizontal metre
    view, source = np.full((height, width, 3), np.nan), np.full((height, width), -1)
    gaps = (np.asarray(headings) - query + math.pi) % (2 * math.pi) - math.pi
    for k in np.argsort(np.abs(gaps), kind="stable").tolist():
        angle = to_right + gaps[k]
        ahead = np.cos(angle)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            u = np.tan(angle) * focal + width / 2 - 0.5  # column and row in picture k
            v = down / ahead * focal + height / 2 - 0.5
        is_seen = (ahead > 0) & (u > -0.5) & (u < width - 0.5) & (v > -0.5) & (v < height - 0.5)
        new = is_seen & (source < 0)
        view[new] = _interpolated(pictures[k], v[new], u[new])
        source[new] = k
    return view, source


def _interpolated(picture: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Colours of a picture (H, W, 3) between pixels, (Q, 3)."""
    height, width, _ = picture.shape
    top = np.clip(np.floor(row).astype(int), 0, height - 2)
    left = np.clip(np.floor(column).astype(int), 0, width - 2)
    down = np.clip(row - top, 0, 1)[:, None]
    right = np.clip(column - left, 0, 1)[:, None]
    upper = picture[top, left] * (1 - right) + picture[top, left + 1] * right
    lower = picture[top + 1, left] * (1 - right) + picture[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down
