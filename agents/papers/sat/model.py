"""Models that answer Room Ballet's questions from a memory of a whole episode.

They share codes, chunks, retention and `MemoryReader` with the token memories of `memenvs.agents.memory`, with three
differences. The unit that is kept or evicted is a visit, not a step. Tokens are sums of table rows, so no token is
ever computed. The query is an image of the queried dancer, not the current step.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.encoders.frame_encoder import FrameEncoder
from memenvs.agents.memory.chunking import Chunks, chunks_by_place, chunks_by_time
from memenvs.agents.memory.dnc import DNCConfig
from memenvs.agents.memory.place_codes import PlaceCode, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.memory.sat import ChunkedMemory, PlaceChunkedMemory
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.papers.sat.config import BalletModelConfig
from memenvs.agents.papers.sat.dnc_reader import DNCReader, TaskInput
from memenvs.checks import choices_for
from memenvs.retention import STRATEGIES, retained, strategy_numbers
from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import DANCES
from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.episodes import NO_ACTION, NUM_FRAMES, BalletEpisodes

NUM_ACTIONS = NO_ACTION
"""Moves from room to room; they are numbered from 0, and `NO_ACTION` is the number after the last."""
SHARPNESS = 4.0
"""Factor on relevances at a "calibrated" start. Their standard deviation over a memory is then 1.6; without it, 0.4."""


class ReaderInputs(NamedTuple):
    """Inputs of the reader for B episodes.

    Attributes:
        query: float, (B, 1, D).
        tokens: N tokens of each episode.
        chunks: Tokens that belong together; None where all are read at once.
    """

    query: Tensor
    tokens: Tokens
    chunks: Chunks | None


class BalletModel(nn.Module):
    """Answers a question from what a memory has kept of an episode.

    Args:
        task: Task that the episodes are of; gives numbers of rooms and steps.
        config: Settings; None for the defaults.
        **settings: Fields of the config to change.

    Raises:
        ValueError: Capacity, strategy and task do not fit together, such as a quota below one visit for each room, or
            `first` or `every` is outside a visit.
    """

    times: Tensor

    def __init__(self, task: BalletTask, config: BalletModelConfig | None = None, **settings: Any) -> None:
        super().__init__()
        known = [each.name for each in fields(BalletModelConfig)]
        for name in settings:
            if name not in known:
                raise ValueError(f"unknown setting {name!r} of a ballet model; {choices_for(name, known)}")
        values = {} if config is None else {name: getattr(config, name) for name in known}
        config = BalletModelConfig(**{**values, **settings})
        if config.first >= task.visit_steps:
            raise ValueError(f"first must be below the steps of a visit ({task.visit_steps}), got {config.first}")
        if config.every > task.visit_steps:
            raise ValueError(f"every must be at most the steps of a visit ({task.visit_steps}), got {config.every}")
        if config.own_layers and not task.queries_rooms:
            raise ValueError(f"own_layers must be 0 in tasks that ask about visits, got {config.own_layers}")
        self.task = task
        self.config = config
        published = None if config.is_dnc else task.capacity
        self.capacity = published if isinstance(config.capacity, str) else config.capacity
        no_visits = np.zeros((1, task.visits), np.int64)
        retained(no_visits, config.strategy_name, self.capacity, n_places=task.rooms)  # raises if they do not fit

        self.encoder = FrameEncoder(config.dim, config.initialisation)
        self.reader = self._make_reader()
        width = self.reader.output_dim if isinstance(self.reader, DNCReader) else config.dim
        self.head = nn.Linear(width, len(DANCES))
        self.own_head = nn.Linear(config.dim, len(DANCES)) if config.own_layers else None
        self.actions = nn.Parameter(torch.randn(NUM_ACTIONS, config.dim)) if config.uses_action else None
        self.places: PlaceCode | None = None
        if config.uses_place:
            self.places = PlaceCode(config.place_code, task.rooms, config.dim, config.columns)
        # with actions as tokens, the action after a visit takes one unit of time between two frames
        self._n_times = task.steps + (task.visits - 1 if config.uses_action else 0)
        times = sinusoid(torch.arange(self._n_times).double(), config.dim).float()
        self.register_buffer("times", times, persistent=False)  # (units, D)
        self._steps_of_visit = np.arange(config.first, task.visit_steps, config.every)

    def _make_reader(self) -> MemoryReader | DNCReader:
        config = self.config
        if config.is_dnc:
            task_input: TaskInput = "first" if config.memory == "dnc-first" else "every"
            dnc = DNCReader(config.dim, len(STRATEGY_TASKS), task_input, DNCConfig(**config.dnc))
            if config.initialisation == "calibrated":
                dnc.memory.calibrate()
            return dnc
        reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
        if config.initialisation == "calibrated":
            reader.sharpen(SHARPNESS, keys_like_queries=config.keys_like_queries)
        return reader

    def forward(self, episodes: BalletEpisodes, strategies: np.ndarray | None = None) -> Tensor:
        """Predict the dance that answers each episode's question.

        Args:
            episodes: B episodes of the task.
            strategies: int, (B,); number of the retention strategy of each episode. None takes the config's for all.

        Returns:
            float, (B, 8); logits of the dances.
        """
        return self.logits(episodes, strategies)[0]

    def logits(self, episodes: BalletEpisodes, strategies: np.ndarray | None = None) -> tuple[Tensor, Tensor | None]:
        """Predict the answer and the queried dancer's own dance; args as in `forward`.

        Returns:
            float, (B, 8) each; the second, after `own_layers`, is None without them.
        """
        query, tokens, chunks = self.reader_inputs(episodes, strategies)
        if isinstance(self.reader, DNCReader):
            values = sum(  # the gradient of an index_select is much faster than that of an embedding
                table.index_select(0, rows.flatten()).unflatten(0, rows.shape)
                for table, rows in zip(tokens.tables, tokens.rows, strict=True)
            )  # (B, N, D)
            task = nn.functional.one_hot(
                torch.from_numpy(episodes.task_id).long().to(query.device), len(STRATEGY_TASKS)
            )
            return self.head(self.reader(values, query[:, 0], task.to(query.dtype))), None
        top_k = self.config.top_k
        if self.own_head is None:
            return self.head(self.reader(query, tokens, chunks, top_k)[:, 0]), None
        split = self.config.own_layers
        early = self.reader(query, tokens, chunks, top_k, layers=slice(split))  # (B, 1, D)
        late = self.reader(early, tokens, chunks, top_k, layers=slice(split, None))  # (B, 1, D)
        return self.head(late[:, 0]), self.own_head(early[:, 0])

    def reader_inputs(self, episodes: BalletEpisodes, strategies: np.ndarray | None = None) -> ReaderInputs:
        """Make query, tokens and chunks of each episode; args as in `forward`.

        Each frame that occurs in the batch is encoded once. Tokens refer to frame, time and place by rows of tables.
        """
        device = self.times.device
        steps, is_kept = self.retained_steps(episodes, strategies)  # (B, N)

        def at_steps(values: np.ndarray) -> Tensor:
            return torch.from_numpy(np.take_along_axis(values, steps, 1).astype(np.int64)).to(device)

        frames = at_steps(episodes.frame)
        places = at_steps(episodes.place)
        queries = torch.from_numpy(episodes.query.astype(np.int64)).to(device)
        occurs = torch.zeros(NUM_FRAMES, dtype=torch.bool, device=device)
        occurs[frames] = occurs[queries] = True
        row_of_frame = occurs.cumsum(0) - 1
        table = self.encoder.table(occurs.nonzero()[:, 0])  # (frames that occur, D)
        query = table[row_of_frame[queries]][:, None]  # (B, 1, D)
        in_memory = torch.from_numpy(is_kept).to(device)
        chunks = self._chunks(places, in_memory)

        rows = row_of_frame[frames]
        times = self._time_indices(steps, is_kept, episodes, strategies).to(device)
        mask = None if is_kept.all() else in_memory
        if self.actions is not None:
            table, rows, times, mask = self._append_actions(table, rows, times, mask, episodes, steps)
        tables = [table, self.times.to(table.dtype)]
        indices = [rows, times]
        if self.places is not None:
            tables.append(self.places.table().to(table.dtype))
            indices.append(places)
        return ReaderInputs(query, Tokens(tables=tuple(tables), rows=tuple(indices), mask=mask), chunks)

    def retained_visits(self, episodes: BalletEpisodes, strategies: np.ndarray | None = None) -> np.ndarray:
        """Mark the visits that are in memory at the question; bool, (B, V). Args as in `forward`."""
        numbers = self._strategy_numbers(episodes, strategies)
        return retained(episodes.visit_place, numbers, self.capacity, n_places=self.task.rooms)

    def retained_steps(
        self, episodes: BalletEpisodes, strategies: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """List the steps that are in memory at the question; args as in `forward`.

        Returns:
            Steps in order of time, int64, (B, N), N as long as the longest row needs; and a mask, bool, (B, N), that is
            False where a row has fewer.
        """
        kept = self.retained_visits(episodes, strategies)  # (B, V)
        visits = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(1).max())]  # kept ones first, in order
        steps = (visits[:, :, None] * self.task.visit_steps + self._steps_of_visit).reshape(len(visits), -1)
        return steps, np.repeat(np.take_along_axis(kept, visits, 1), len(self._steps_of_visit), axis=1)

    def _strategy_numbers(self, episodes: BalletEpisodes, strategies: np.ndarray | None) -> np.ndarray:
        """Number of the retention strategy of each episode, int, (B,)."""
        return strategy_numbers(self.config.strategy_name, len(episodes)) if strategies is None else strategies

    def _chunks(self, places: Tensor, in_memory: Tensor) -> Chunks | None:
        """Chunks of the tokens, int64 and bool (B, N), by place or by time; None where all are read at once."""
        if self.config.is_dnc or not issubclass(self.config.spec.memory, ChunkedMemory):
            return None
        if issubclass(self.config.spec.memory, PlaceChunkedMemory):
            return chunks_by_place(places, in_memory, self.config.chunk)
        return chunks_by_time(in_memory, self.config.chunk)

    def _time_indices(
        self, steps: np.ndarray, is_kept: np.ndarray, episodes: BalletEpisodes, strategies: np.ndarray | None
    ) -> Tensor:
        """Rows of the time table of some steps, int64, (B, N)."""
        # with actions as tokens, the action after each earlier visit takes a unit of time
        units = steps + steps // self.task.visit_steps if self.config.uses_action else steps
        index = self._indices_of(units, is_kept)
        if self.config.time_index == "slot":
            # strategies from "lvfo" on depend on places; the release numbers their tokens in the order of places
            by_place = torch.from_numpy(self._strategy_numbers(episodes, strategies) >= STRATEGIES.index("lvfo"))
            places = torch.from_numpy(np.take_along_axis(episodes.place, steps, 1))
            index = torch.where(by_place[:, None], slots_by_place(torch.from_numpy(is_kept), places), index)
        return index

    def _indices_of(self, units: np.ndarray, is_kept: np.ndarray) -> Tensor:
        """Rows of the time table of units of time, int64, (B, N)."""
        newest = torch.full((len(units), 1), self._n_times - 1)
        in_memory = torch.from_numpy(is_kept)[:, None]  # (B, 1, N)
        index = time_indices(self.config.time_index, torch.from_numpy(units), newest, in_memory)
        return index if index.ndim == 2 else index[:, 0]

    def _append_actions(
        self,
        table: Tensor,
        rows: Tensor,
        times: Tensor,
        mask: Tensor | None,
        episodes: BalletEpisodes,
        steps: np.ndarray,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Append a token for the action after each visit, with its embedding and its own time.

        No action follows the last visit of an episode, so the mask hides its token.

        Args:
            table: float, (F, D); frames.
            rows: int64, (B, N); row of each token in `table`.
            times: int64, (B, N); rows of the time table.
            mask: bool, (B, N), or None.
            episodes: B episodes.
            steps: int64, (B, N); step of each token.

        Returns:
            Table with the actions below the frames, and rows, times and mask of N frames and as many actions as visits.
        """
        assert self.actions is not None
        visit_steps = self.task.visit_steps
        steps_per_visit = len(self._steps_of_visit)
        visits = steps[:, ::steps_per_visit] // visit_steps  # (B, visits in memory)
        actions = np.roll(episodes.action[:, ::visit_steps], -1, 1).astype(
            np.int64
        )  # the action after each visit, (B, V)
        actions[:, -1] = NO_ACTION
        actions = np.take_along_axis(actions, visits, 1)
        unit = np.minimum(
            visits * (visit_steps + 1) + visit_steps, self._n_times - 1
        )  # after the last frame of the visit
        action_times = self._indices_of(unit, np.ones_like(unit, bool)).to(rows.device)
        action_rows = torch.from_numpy(np.minimum(actions, NUM_ACTIONS - 1)).to(rows.device) + len(table)
        is_action = torch.from_numpy(actions != NO_ACTION).to(rows.device)
        in_memory = torch.ones_like(rows, dtype=torch.bool) if mask is None else mask
        return (
            torch.cat([table, self.actions.to(table.dtype)]),
            torch.cat([rows, action_rows], 1),
            torch.cat([times, action_times], 1),
            torch.cat([in_memory, is_action & in_memory[:, ::steps_per_visit]], 1),
        )


def slots_by_place(in_memory: Tensor, places: Tensor) -> Tensor:
    """Number the tokens in memory from the last one back, in the order of place, then time.

    Args:
        in_memory: bool, (B, N); tokens in order of time.
        places: int, (B, N). Places are ordered by their first token, in memory or not.

    Returns:
        int64, (B, N); 0 for tokens that are not in memory.

    Source:
        SAT's release, in its multi-task experiments with LVFO and MVFO.
    """
    batch, count = in_memory.shape
    position = torch.arange(count, device=in_memory.device).expand(batch, -1)
    places = places.long()
    first = torch.full((batch, int(places.max()) + 1), count, device=in_memory.device)
    first = first.scatter_reduce(1, places, position, "amin")  # (B, places): first token of each
    key = first.gather(1, places).masked_fill(~in_memory, count)  # tokens that are not in memory go last
    order = key.argsort(dim=1, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, position)
    return torch.where(in_memory, in_memory.sum(1, keepdim=True) - 1 - rank, 0)
