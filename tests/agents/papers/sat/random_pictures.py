"""A task of random pictures and moves, small enough for tests."""

import numpy as np

from memenvs.query_task import SPLITS, PictureTask, QueryBatch, Split

MOVES = np.array([[1, 0], [-1, 0], [0, -1], [0, 1]])


class RandomPictures(PictureTask):
    """Patches of random pictures at random cells; with `classes` no moves."""

    pictures = "patches"
    steps = 9
    capacity = 5
    n_places = 100
    columns = 10
    n_regions = 4
    tasks = ("one", "two")
    strategies = ("fifo", "mvfo")
    answers = 3
    move_vectors = MOVES

    def __init__(self, classes: int = 0) -> None:
        self.classes = classes
        if classes:
            self.move_vectors = None

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        drawn = rng.integers(256, size=(batch + SPLITS.index(split), 88, 88, 3)).astype(np.uint8)
        cells = rng.integers(100, size=(batch, self.steps))
        cells[:, 1] = cells[:, 0]  # a place that is seen twice
        queries = rng.integers(100, size=(batch, 1 + self.answers))
        queries[:, 1] = cells[:, -1]
        first_row = 100 * np.arange(batch)[:, None]
        parts = {
            "pictures": lambda numbers: drawn[numbers],
            "rows": first_row + cells,
            "places": cells,
            "regions": cells % 4,
            "tasks": np.arange(batch) % 2,
            "query_rows": first_row[:, 0] + queries[:, 0],
        }
        if self.classes:
            return QueryBatch(**parts, answers=rng.integers(self.classes, size=batch))
        return QueryBatch(
            **parts,
            answers=rng.integers(256, size=(batch, 1 + self.answers, 16, 16, 3)).astype(np.uint8),
            answer_rows=first_row + queries[:, 1:],
            moves=np.concatenate([np.full((batch, 1), -1), rng.integers(4, size=(batch, self.steps - 1))], 1),
            query_moves=rng.integers(4, size=(batch, self.answers)),
            query_places=queries,
        )
