"""Base class of ColorRecall and ViewRecall: homes, cameras, and the phase of the query."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from memenvs.caches import RecentlyUsed
from memenvs.episode_keys import KEY_LIMIT, key_option
from memenvs.houses.playable import PlayableHomes
from memenvs.houses.rendering.viewer import (
    VIEW_SIDE,
    MapOverlay,
    draw_house_map,
    draw_view_and_map,
    house_map_pixels,
)
from memenvs.recall.config import RecallConfig
from memenvs.recall.homes import Cameras, RecallHome
from memenvs.task import Options
from memenvs.watch_task import WatchTask

#: Homes to keep in memory; each takes about 2 MB.
HOME_CACHE_SIZE = 256
MAP_SCALE = 40.0  # pixels per metre


class RecallHomes:
    """The homes that a task can play, by layout.

    Args:
        config: Settings of the task.
        task: Its name, for messages.
    """

    def __init__(self, config: RecallConfig, task: str) -> None:
        self._homes: PlayableHomes = config.playable_homes(task)
        self._kept: RecentlyUsed[int, RecallHome] = RecentlyUsed(HOME_CACHE_SIZE)

    def __len__(self) -> int:
        """Number of homes."""
        return len(self._homes)

    def cameras(self, config: RecallConfig, num_observers: int) -> Cameras:
        """Make cameras for these homes."""
        return Cameras(
            num_observers,
            config.image_size,
            config.hfov_deg,
            threads=config.threads,
            make_renderer=self._homes.world.make_renderer,
        )

    @property
    def max_rooms(self) -> int | None:
        """Number of rooms of the largest home; None if unknown."""
        return self._homes.world.max_rooms

    def load(self, layout: int) -> RecallHome:
        """Return the home of a layout."""
        return self._kept.get(layout, lambda: self._homes.load(layout, self._make))

    def _make(self, number: int) -> RecallHome:
        home = RecallHome(number, self._homes.world.home(number))
        home.scene  # noqa: B018  (raises where it cannot be drawn)
        return home


class Recall(WatchTask):
    """Base class of both tasks: T steps decided by the environment, then query and answer.

    A subclass draws the poses of an episode and checks its answer.
    """

    config: RecallConfig
    config_type: ClassVar[type[RecallConfig]]

    def __init__(self, num_envs: int, steps: int) -> None:
        super().__init__(num_envs, steps)
        self._homes = RecallHomes(self.config, type(self).__name__)
        self.num_layouts = len(self._homes)
        self._home: list[RecallHome | None] = [None] * num_envs
        self._key = np.zeros(num_envs, np.int64)
        self._pose = np.zeros((num_envs, steps, 3))
        self._place = np.zeros((num_envs, steps), np.int64)
        self._move = np.zeros((num_envs, steps), np.int64)
        self._scene_id = np.full(num_envs, "", object)  # of any length

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Move the observer into a home."""
        self._home[i] = home = self._homes.load(layout)
        self._scene_id[i] = home.name

    def home(self, i: int) -> RecallHome:
        """Return the home of environment `i`.

        Raises:
            RuntimeError: Before its first reset.
        """
        home = self._home[i]
        if home is None:
            raise RuntimeError("home was called before reset")
        return home

    def render(self, i: int) -> np.ndarray:
        """Render the image that is observed, and a map with the path so far; 384 x 768."""
        view = _enlarged(self._picture(i))
        path = self._pose[i, : self._path_step()[i] + 1]
        return draw_view_and_map(view, self.home(i).house, path, self._overlay(i))

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the home from above with a path."""
        return draw_house_map(self.home(i).house, path, self._overlay(i), pixels_per_metre=MAP_SCALE)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map."""
        return house_map_pixels(self.home(i).house, poses, pixels_per_metre=MAP_SCALE)

    @abstractmethod
    def _picture(self, i: int) -> np.ndarray:
        """Image that environment `i` observes, for people; uint8, (H, W, 3)."""

    @abstractmethod
    def _overlay(self, i: int) -> MapOverlay:
        """Additions to the map of environment `i`."""


def draw_key(rng: np.random.Generator, options: Options) -> int:
    """Draw the number of an episode, or take that of the option `key`.

    Raises:
        ValueError: The option is no number from 0 on.
    """
    drawn, key = int(rng.integers(KEY_LIMIT)), key_option(options)
    return drawn if key is None else key


def _enlarged(image: np.ndarray) -> np.ndarray:
    """Fit an image into the square for people, without smoothing; uint8, (384, 384, 3)."""
    height, width, _ = image.shape
    index = np.arange(VIEW_SIDE) * max(height, width) // VIEW_SIDE
    out = np.zeros((VIEW_SIDE, VIEW_SIDE, 3), np.uint8)
    rows, columns = index[index < height], index[index < width]
    top, left = (VIEW_SIDE - len(rows)) // 2, (VIEW_SIDE - len(columns)) // 2
    out[top : top + len(rows), left : left + len(columns)] = image[rows][:, columns]
    return out
