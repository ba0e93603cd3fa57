"""Episodes of Room Ballet in batches, for agents that learn to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from memenvs.query_task import PictureTask, QueryBatch, Split
from memenvs.retention import STRATEGIES
from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import DANCES
from memenvs.room_ballet.descriptions import STRATEGY_TASKS, load_descriptions
from memenvs.room_ballet.episodes import NO_ACTION, BalletEpisodes
from memenvs.room_ballet.frames import frame_table
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places
from memenvs.room_ballet.tasks import make_ballet


class BalletQueries(PictureTask):
    """Visits to rooms with dancers, then the question for a dance.

    A memory keeps or evicts visits. Regions are rooms.

    Args:
        ballet: The task.
    """

    pictures = "frames"
    tasks = STRATEGY_TASKS
    strategies = STRATEGIES
    classes = len(DANCES)

    @classmethod
    def of(cls, task: type[Any], settings: Mapping[str, Any]) -> BalletQueries:
        """Make it for settings of `make_ballet`, not of observations; see `QueryTask.of`."""
        return cls(make_ballet(task.ballet_name, **settings))

    def __init__(self, ballet: BalletTask) -> None:
        self.ballet = ballet
        self.steps = ballet.steps
        self.visit_steps = ballet.visit_steps
        self.capacity = ballet.capacity
        self.n_places = self.n_regions = ballet.rooms
        self.shows_answers = not ballet.queries_rooms
        self.has_query_classes = ballet.queries_rooms

    @property
    def is_mixed(self) -> bool:
        """True if a batch has episodes of several tasks."""
        return len(self.ballet.query_rules) > 1

    def sample_batch(self, batch: int, rng: np.random.Generator, split: Split = "train") -> QueryBatch:
        """Draw episodes, those of several tasks in turn; see `QueryTask.sample_batch`."""
        return self._batch_of(self.ballet.sample_batch(batch, rng))

    def episodes_of(self, task: Any) -> QueryBatch:
        """Return the episodes of environments; see `QueryTask.episodes_of`."""
        return self._batch_of(task.episodes)

    def _batch_of(self, episodes: BalletEpisodes) -> QueryBatch:
        """Return episodes of this task as a batch."""
        rows = np.arange(len(episodes))
        places = episodes.place.astype(np.int64)
        frames = episodes.frame.astype(np.int64)
        answer_rows = query_classes = None
        if self.shows_answers:  # all dancers differ, so a frame is of one visit
            answer_rows = frames[rows, episodes.query_visit.astype(np.int64) * self.visit_steps][:, None]
        else:
            query_classes = episodes.room_dance[rows, episodes.query_place].astype(np.int64)
        return QueryBatch(
            pictures=lambda numbers: frame_table()[numbers],
            rows=frames,
            places=places,
            regions=places,
            tasks=episodes.task_id.astype(np.int64),
            answers=episodes.label.astype(np.int64),
            answer_rows=answer_rows,
            moves=np.where(episodes.action == NO_ACTION, -1, episodes.action).astype(np.int64),
            query_rows=episodes.query.astype(np.int64),
            query_classes=query_classes,
            episodes=episodes,
        )

    def descriptions(self, split: int, part: Literal["train", "held_out"]) -> Sequence[Sequence[str]]:
        """Return descriptions of each strategy task; see `PictureTask.descriptions`."""
        return load_descriptions().select(split, part)

    def ideal(
        self,
        batch: QueryBatch,
        strategies: np.ndarray,
        capacity: int | None,
        *,
        uses_places: bool = True,
        uses_moves: bool = False,
    ) -> np.ndarray:
        """Compute the expected accuracy; see `PictureTask.ideal`.

        The ideal observer knows the place of each visit. There is one exception: if it has all visits but no places,
        and the query is about the next or the opposite room, it infers places from the rules of the walk.
        """
        ballet = self.ballet
        if not uses_places and ballet.query_rules[0] in ("next", "opposite") and capacity is None:
            return ideal_without_places(ballet, batch.episodes, moves_known=uses_moves)
        limit = ballet.visits if capacity is None else capacity
        return ideal_observer(ballet, batch.episodes, strategies, limit).accuracy
