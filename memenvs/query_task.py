"""Tasks in which one watches, then answers: one form of their episodes in batches.

An episode is a stream of steps, a query and an answer. Where the environment decides all steps, agents learn such a
task from batches, without acting. `BatchTask.query_task` names this form of an environment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from memenvs.plugins import load_class
from memenvs.registry import find_environment

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
"""What episodes are for: to learn from, to choose settings by, to evaluate."""
Pictures = Literal["patches", "views", "frames"]
"""What a step shows: a patch of 16 x 16 pixels of a picture, a view of 84 x 84, or a frame of Room Ballet, 45 x 45."""


class Episodes:
    """Base of frozen dataclasses of arrays with a row for each of B episodes.

    Attributes:
        shared: Names of fields that all episodes share.
    """

    shared: ClassVar[tuple[str, ...]] = ()

    def select(self, index: slice | np.ndarray) -> Self:
        """Select some of the episodes, by a slice or an index, int or bool (B,)."""
        chosen = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name not in self.shared and value is not None:
                chosen[field.name] = value.select(index) if isinstance(value, Episodes) else value[index]
        return replace(self, **chosen)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class QueryBatch(Episodes):
    """B episodes of T steps, each with a query and its answer.

    Attributes:
        pictures: Function from numbers of pictures, int64, (P,), to these pictures, uint8, (P, H, W, 3). So only those
            that a memory keeps need to be drawn.
        drawn: uint8, (V, H, W, 3); pictures 0 ... V - 1, where a task has drawn them once for all batches; else None.
        rows: int64, (B, T); what each step shows: the number of a picture; or, of patch c of picture p, `p * cells +
            c`.
        places: int64, (B, T); place of each step.
        regions: int64, (B, T); place that retention strategies count and chunks share. With patches it is a group of
            neighbouring places.
        tasks: int64, (B,); number of the task.
        answers: The truth: uint8, (B, A, h, w, 3), pictures, or int64, (B,), classes. Where the query has moves, the
            picture at the start comes before the A others, which are the answers.
        answer_rows: int64, (B, A); row of `rows` that shows each answer, -1 for none; None where no step shows it. An
            answer is in memory if any step of its row is.
        moves: int64, (B, T); move that led to each step, -1 for none. None for tasks without moves.
        query_rows: int64, (B,); row that the query shows; None for a query that shows nothing.
        query_moves: int64, (B, A); moves from the query's picture on, one for each answer; None for no moves.
        query_places: int64, (B, 1 + A); places before and after these moves.
        query_vectors: float32, (B, G); query in numbers; None for a query that shows a picture.
        query_classes: int64, (B,); class of what the query itself shows, where the answer is that of something else.
        episodes: The same episodes in the form of their environment, for its observers; None where it has no other.
    """

    shared = ("pictures", "drawn")

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
    query_classes: np.ndarray | None = None
    episodes: Any = None

    def __len__(self) -> int:
        """Number of episodes, B."""
        return len(self.rows)


class QueryTask(ABC):
    """Base of the tasks."""

    @classmethod
    def of(cls, task: type[Any], settings: Mapping[str, Any]) -> QueryTask:
        """Make it for a `BatchTask` with these settings; by default of the task's config."""
        return cls(task.config_type(**settings))  # type: ignore[call-arg]

    @abstractmethod
    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> Episodes:
        """Draw episodes.

        Args:
            batch: B, >= 1.
            rng: Generator of everything random.
            split: What the episodes are for. Where pictures are drawn once or read from files, each split has its own.
        """

    def episodes_of(self, task: Any) -> Episodes:
        """Return the present episodes of environments, from their first step to the answer.

        Args:
            task: The `BatchTask` of N environments after their reset, with the settings of this task.

        Returns:
            N episodes.

        Raises:
            NotImplementedError: The task does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define episodes_of, the episodes of environments")


class PictureTask(QueryTask):
    """Base of the tasks whose steps show pictures, with the sizes that a model needs.

    Attributes:
        pictures: What a step shows.
        steps: T.
        visit_steps: Steps that a memory keeps or evicts together.
        capacity: Visits that the published protocol keeps (steps, where a visit is one); None for all.
        n_places: Number of places.
        columns: Columns of the grid of places; None where they are no grid.
        n_regions: Number of regions.
        tasks: Names of the tasks.
        is_mixed: True if a batch has episodes of several tasks.
        strategies: Retention strategies that an allocator chooses from.
        answers: A; pictures that answer a query.
        classes: Number of classes; 0 where pictures are the answer.
        shows_answers: True if steps show the answers (`QueryBatch.answer_rows`).
        has_query_classes: True if queries have classes of their own (`QueryBatch.query_classes`).
        move_vectors: int64, (number of moves, 2); column and row step of each move; None for tasks without moves.
        query_dim: G; 0 where the query shows a picture.
    """

    pictures: Pictures
    steps: int
    visit_steps: int = 1
    capacity: int | None
    n_places: int
    columns: int | None = None
    n_regions: int
    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    answers: int = 1
    classes: int = 0
    shows_answers: bool = True
    has_query_classes: bool = False
    move_vectors: np.ndarray | None = None
    query_dim: int = 0

    @property
    def is_mixed(self) -> bool:
        """True if a batch has episodes of several tasks."""
        return len(self.tasks) > 1

    @abstractmethod
    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes; see `QueryTask.sample_batch`."""

    def descriptions(self, split: int, part: Literal["train", "held_out"]) -> Sequence[Sequence[str]]:
        """Return descriptions of each task in words.

        Args:
            split: Number of the split of the descriptions into two parts.
            part: The part.

        Raises:
            ValueError: There is no such split, or the tasks have no descriptions.
        """
        raise ValueError(f"task must be one with descriptions in words, got one of {', '.join(self.tasks)}")

    def ideal(
        self,
        batch: QueryBatch,
        strategies: np.ndarray,
        capacity: int | None,
        *,
        uses_places: bool = True,
        uses_moves: bool = False,
    ) -> np.ndarray | None:
        """Compute the expected score of the best answer from the same memory.

        Args:
            batch: B episodes.
            strategies: int, (B,); number of the retention strategy of each.
            capacity: Visits that are kept; None for all.
            uses_places: Whether the observer knows the place of each step.
            uses_moves: Whether it knows the moves between them.

        Returns:
            float64, (B,); None where it is not known.
        """
        return None


def make_query_task(env: str, settings: Mapping[str, Any]) -> QueryTask:
    """Make the episodes of an environment in batches.

    Args:
        env: Its id.
        settings: Its settings.

    Raises:
        ValueError: It has no such form, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    path = find_environment(env).task
    task = None if path is None else load_class(path)
    if task is None or task.query_task is None:
        raise ValueError(f"env must be one in which one watches, then answers (query_task), got {env!r}")
    return load_class(task.query_task).of(task, settings)


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
