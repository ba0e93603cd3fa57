"""One form for the tasks in which a query is answered from pictures in memory."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from memenvs.agents.algorithms.supervised_config import Split

Pictures = Literal["patches", "views"]
"""Size of what a step shows: a patch of 16 x 16 pixels of a picture, or a view of 84 x 84."""


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """B episodes of T steps, each with a query and its answer.

    Attributes:
        pictures: Function from numbers of pictures, int64, (P,), to these pictures, uint8, (P, H, W, 3). So only those
            that a memory keeps need to be drawn.
        drawn: uint8, (V, H, W, 3); pictures 0 ... V - 1, where a task has drawn them once for all batches; else None.
        rows: int64, (B, T); what each step shows: the number of a view; or, of patch c of picture p, `p * cells + c`.
        places: int64, (B, T); place of each step.
        regions: int64, (B, T); place that retention strategies count and chunks share. With patches it is a group of
            neighbouring places.
        tasks: int64, (B,); number of the task.
        answers: The truth: uint8, (B, A, h, w, 3), pictures, or int64, (B,), classes. In tasks with moves the picture
            at the start comes before the A others, which are the answers.
        answer_rows: int64, (B, A); row of `rows` that shows each answer, -1 for none; None where no step shows it. An
            answer is in memory if any step of its row is.
        moves: int64, (B, T); move that led to each step, -1 for none. None for tasks without moves.
        query_rows: int64, (B,); row that the query shows; None for a query that shows nothing.
        query_moves: int64, (B, A); moves from the query's picture on, one for each answer; None for no moves.
        query_places: int64, (B, 1 + A); places before and after these moves.
        query_vectors: float32, (B, G); query in numbers; None for a query that shows a picture.
    """

    pictures: Callable[[np.ndarray], np.ndarray]
    rows: np.ndarray
    places: np.ndarray
    regions: np.ndarray
    tasks: np.ndarray
    answers: np.ndarray
    drawn: np.ndarray | None = None
    answer_rows: np.ndarray | None = None
    moves: np.ndarray | None = None
    query_rows: np.ndarray | None = None
    query_moves: np.ndarray | None = None
    query_places: np.ndarray | None = None
    query_vectors: np.ndarray | None = None

    def __len__(self) -> int:
        """Number of episodes, B."""
        return len(self.rows)

    def select(self, index: slice | np.ndarray) -> PictureBatch:
        """Select some of the episodes, by a slice or an index, int or bool (B,)."""
        chosen = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in ("pictures", "drawn") and value is not None:
                chosen[each.name] = value[index]
        return replace(self, **chosen)


class PictureTask(abc.ABC):
    """Base of the tasks, with the sizes that a model needs.

    Attributes:
        pictures: Size of what a step shows.
        steps: T.
        capacity: Steps that the published protocol keeps; None for all.
        n_places: Number of places.
        columns: Columns of the grid of places; None where they are no grid.
        n_regions: Number of regions.
        tasks: Names of the tasks.
        strategies: Retention strategies that an allocator chooses from.
        answers: A; pictures that answer a query.
        classes: Number of classes; 0 where pictures are the answer.
        move_vectors: int64, (number of moves, 2); column and row step of each move; None for tasks without moves.
        query_dim: G; 0 where the query shows a picture.
    """

    pictures: Pictures
    steps: int
    capacity: int | None
    n_places: int
    columns: int | None = None
    n_regions: int
    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    answers: int = 1
    classes: int = 0
    move_vectors: np.ndarray | None = None
    query_dim: int = 0

    @abc.abstractmethod
    def sample(self, count: int, rng: np.random.Generator, split: Split = "train") -> PictureBatch:
        """Draw episodes.

        Args:
            count: B.
            rng: Generator of everything random.
            split: What the episodes are for; see `PredictionModel.sample`. Each has pictures of its own.
        """


def rows_of(numbers: np.ndarray, views: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Take rows of two arrays, the second of which continues the numbers of the first.

    Args:
        numbers: int, (R,); 0 ... V + W - 1.
        views: (V, ...).
        more: (W, ...); rows V, V + 1, ...

    Returns:
        (R, ...).
    """
    first = numbers < len(views)
    taken = np.empty((len(numbers), *views.shape[1:]), views.dtype)
    taken[first] = views[numbers[first]]
    taken[~first] = more[numbers[~first] - len(views)]
    return taken
