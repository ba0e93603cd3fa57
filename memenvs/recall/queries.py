"""Episodes of ColorRecall and ViewRecall in batches, for agents that learn to predict.

Views are drawn once for many episodes, because drawing costs more than learning. Each split has views of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from memenvs.query_task import SPLITS, PictureTask, QueryBatch, Split, rows_of
from memenvs.recall.color_recall import COLOURS, ColorRecall
from memenvs.recall.config import ColorRecallConfig, ViewRecallConfig
from memenvs.recall.env import RecallHomes
from memenvs.recall.pools import ColorPool, ViewPool
from memenvs.recall.turns import NUM_HEADINGS, NUM_PLACES, QUERY_HEADINGS
from memenvs.recall.view_recall import PANORAMA_HEADINGS

TOURS: dict[Split, int] = {"train": 256, "validation": 64, "test": 128}
"""Tours of ColorRecall that are drawn for each split. With more of them an agent sees more in others."""
POSITIONS: dict[Split, int] = {"train": 400, "validation": 100, "test": 200}
"""Positions of ViewRecall that are drawn for each split, 40 views each."""


class ColorQueries(PictureTask):
    """A square in the first view of a tour, then the question for its colour.

    Args:
        config: Settings of the environment.
    """

    pictures = "views"
    tasks = ("colour",)
    strategies = ("fifo", "mvfo")
    classes = len(COLOURS)

    def __init__(self, config: ColorRecallConfig) -> None:
        self.config = config
        self.steps = sum(config.steps)
        self.capacity = config.capacity
        rooms = RecallHomes(config, ColorRecall.__name__).max_rooms
        self.n_places = self.n_regions = int(_tours(config, "train")[0].place.max()) + 1 if rooms is None else rooms

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes; see `QueryTask.sample_batch`."""
        pool, views = _tours(self.config, split)
        episodes = pool.sample_batch(batch, rng)
        places = pool.place[episodes.tour].astype(np.int64)
        made = self._batch_of(views, episodes.tour, pool.first_images(episodes), places, episodes.colour)
        return replace(made, drawn=views)

    def episodes_of(self, task: Any) -> QueryBatch:
        """Draw the views of the tours of environments; see `QueryTask.episodes_of`."""
        views, first, places = task.tours()
        colours = task.info()["colour"].copy()
        return self._batch_of(views.reshape(-1, *views.shape[2:]), np.arange(len(views)), first, places, colours)

    def _batch_of(
        self, views: np.ndarray, tour: np.ndarray, first: np.ndarray, places: np.ndarray, colours: np.ndarray
    ) -> QueryBatch:
        """Put episodes together.

        Args:
            views: uint8, (tours * T, H, W, 3); without squares.
            tour: int64, (B,); number of the tour of each episode.
            first: uint8, (B, H, W, 3); the first views, with squares.
            places: int64, (B, T).
            colours: int64, (B,).
        """
        query_rows = tour * self.steps
        rows = query_rows[:, None] + np.arange(self.steps)
        rows[:, 0] = len(views) + np.arange(len(tour))  # the first view shows the square
        return QueryBatch(
            pictures=lambda numbers: rows_of(numbers, views, first),
            rows=rows,
            places=places,
            regions=places,
            tasks=np.zeros(len(tour), np.int64),
            answers=colours,
            answer_rows=rows[:, :1],
            query_rows=query_rows,
        )


class ViewQueries(PictureTask):
    """Views in many directions from one position, then the question for one between them.

    Args:
        config: Settings of the environment.
    """

    pictures = "views"
    n_places = NUM_PLACES
    n_regions = NUM_PLACES
    tasks = ("view",)
    strategies = ("fifo", "mvfo")
    query_dim = 2

    def __init__(self, config: ViewRecallConfig) -> None:
        self.config = config
        self.steps = sum(config.steps)
        self.capacity = self.steps // 2

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes; see `QueryTask.sample_batch`."""
        pool, views = _positions(self.config, split)
        episodes = pool.sample_batch(batch, rng)
        first_row = episodes.position[:, None] * len(PANORAMA_HEADINGS)
        angle = QUERY_HEADINGS[episodes.query]
        apart = PANORAMA_HEADINGS[:NUM_HEADINGS] - angle[:, None]  # (B, 30)
        nearest = np.cos(apart).argmax(1)
        places = episodes.place.astype(np.int64)
        return QueryBatch(
            pictures=lambda numbers: views[numbers],
            drawn=views,
            rows=first_row + episodes.heading,
            places=places,
            regions=places,
            tasks=np.zeros(batch, np.int64),
            answers=pool.targets(episodes)[:, None],
            answer_rows=first_row + nearest[:, None],
            query_vectors=np.column_stack([np.sin(angle), np.cos(angle)]).astype(np.float32),
        )


@cache
def _tours(config: ColorRecallConfig, split: Split) -> tuple[ColorPool, np.ndarray]:
    """Make the pool, and its views as rows."""
    pool = ColorPool(config, tours=TOURS[split], seed=SPLITS.index(split))
    return pool, pool.images.reshape(-1, *pool.images.shape[2:])


@cache
def _positions(config: ViewRecallConfig, split: Split) -> tuple[ViewPool, np.ndarray]:
    """Make the pool, and its views as rows."""
    pool = ViewPool(config, positions=POSITIONS[split], seed=SPLITS.index(split))
    return pool, pool.pictures.reshape(-1, *pool.pictures.shape[2:])
