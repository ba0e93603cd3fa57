"""Episodes of Ballet3D in batches, for agents that learn to predict.

Views are drawn once for many episodes, because drawing costs more than learning. Each split has views of its own.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.ballet3d.episodes import CAPACITY, LOOP, NUM_STEPS, WALLS, DanceEpisodes
from memenvs.ballet3d.world import DanceWorld
from memenvs.query_task import SPLITS, PictureTask, QueryBatch, Split, rows_of
from memenvs.retention import STRATEGIES

BALLETS: dict[Split, int] = {"train": 1600, "validation": 100, "test": 200}
"""Episodes without a query that are drawn for each split, 90 views each; those for training have 3.2 GB."""


class DanceQueries(PictureTask):
    """Dancers in a room, then the six frames of the dance of one of them.

    Args:
        config: Settings of the environment.
    """

    pictures = "views"
    steps = NUM_STEPS
    capacity = CAPACITY
    n_places = len(WALLS)
    n_regions = len(WALLS)
    strategies = STRATEGIES
    answers = LOOP
    shows_answers = False

    def __init__(self, config: Ballet3DConfig) -> None:
        self.config = config
        names = STRATEGIES if config.strategy_task == "multi" else (config.strategy_task,)
        self._task_numbers = np.array([STRATEGIES.index(name) for name in names])
        self.tasks = tuple(STRATEGIES[number] for number in self._task_numbers)

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes, the tasks in turn; see `QueryTask.sample_batch`."""
        world, pool, views, rows = _ballets(self.config, split)
        chosen = rng.integers(len(pool), size=batch)
        task = np.arange(batch) % len(self.tasks)
        candidates = world.queried[self._task_numbers[task]]  # (B, S)
        rank = rng.integers(candidates.sum(1))
        query = (candidates.cumsum(1) > rank[:, None]).argmax(1)
        episodes = world.with_query(pool.select(chosen), query)
        front = world.front_views
        return QueryBatch(
            pictures=lambda numbers: rows_of(numbers, views, front),
            drawn=views,
            rows=rows[chosen],
            places=episodes.place.astype(np.int64),
            regions=episodes.place.astype(np.int64),
            tasks=task,
            answers=front[episodes.answer],
            query_rows=len(views) + episodes.query.astype(np.int64),
        )


@cache
def _ballets(config: Ballet3DConfig, split: Split) -> tuple[DanceWorld, DanceEpisodes, np.ndarray, np.ndarray]:
    """Make the dance world, its episodes, their views, and the row of the view of each step."""
    world = config.make_world()
    episodes = world.sample_batch(BALLETS[split], np.random.default_rng(SPLITS.index(split)))
    return world, episodes, *world.draw(episodes)
