"""Episodes of FFHQ-world in batches, for agents that learn to predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memenvs.faces.config import FacesConfig, LongStayConfig
from memenvs.faces.episodes import GRID, MOVES, NO_ACTION, NUM_CELLS
from memenvs.query_task import SPLITS, PictureTask, QueryBatch, Split

LONG_STAY_CAPACITY = 256
"""Steps that a memory keeps of the long stay's 512."""


class FaceQueries(PictureTask):
    """Patches of a picture along a path, then those along another path over the same picture.

    A place is a cell of the picture; regions are the places of the environment, cells or clusters of them.

    Args:
        config: Settings of the environment. With `split` "train", validation and test draw from all pictures of their
            own splits; with another one, all episodes draw from its pictures.

    Raises:
        ValueError: A folder of pictures cannot be used, or has none of a split.
    """

    pictures = "patches"
    n_places = NUM_CELLS
    columns = GRID
    tasks = ("faces",)
    strategies = ("fifo", "mvfo")
    move_vectors = MOVES

    def __init__(self, config: FacesConfig) -> None:
        self.world = config.make_world()
        self._worlds = dict.fromkeys(SPLITS, self.world)
        if config.split == "train":
            for split in ("validation", "test"):
                self._worlds[split] = replace(config, split=split, num_images=None).make_world()
        self.steps = self.world.num_steps
        self.capacity = LONG_STAY_CAPACITY if isinstance(config, LongStayConfig) else None
        self.n_regions = self.world.num_places
        self.answers = self.world.query_moves

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes; see `QueryTask.sample_batch`."""
        world = self._worlds[split]
        episodes = world.sample_batch(batch, rng)
        first_row = episodes.picture.astype(np.int64)[:, None] * NUM_CELLS
        query_rows = first_row + episodes.query_cell
        return QueryBatch(
            pictures=lambda numbers: np.stack([world.pictures.read(int(number)) for number in numbers]),
            rows=first_row + episodes.cell,
            places=episodes.cell.astype(np.int64),
            regions=episodes.place.astype(np.int64),
            tasks=np.zeros(batch, np.int64),
            answers=world.patches(episodes.picture, episodes.query_cell),
            answer_rows=query_rows[:, 1:],
            moves=np.where(episodes.action == NO_ACTION, -1, episodes.action).astype(np.int64),
            query_rows=query_rows[:, 0],
            query_moves=episodes.query_action.astype(np.int64),
            query_places=episodes.query_cell.astype(np.int64),
        )
