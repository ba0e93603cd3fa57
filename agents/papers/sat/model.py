"""Models that answer a query from a memory of a whole episode: base, and Room Ballet's.

Token memories are those of `memenvs.agents.memory`, of which they share codes, chunks, retention and `MemoryReader`,
with three differences. The unit that is kept or evicted is a visit, not a step. Tokens are sums of table rows, so no
token is ever computed. The query is an image of the queried dancer, not the current step. All other memories read the
same tokens in turn (`StepReader`).
"""

from __future__ import annotations

import abc
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.encoders.frame_encoder import FrameEncoder
from memenvs.agents.memory import Memory, StepInputs
from memenvs.agents.memory.chunking import Chunks, chunks_by_place, chunks_by_time
from memenvs.agents.memory.dnc import DNCMemory
from memenvs.agents.memory.place_codes import PlaceCode, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.papers.sat.config import BalletModelConfig, ModelConfig
from memenvs.agents.papers.sat.step_reader import StepReader
from memenvs.agents.policies.small_sizes import with_size
from memenvs.checks import choices_for
from memenvs.query_task import PictureTask, QueryBatch
from memenvs.retention import STRATEGIES, retained, strategy_numbers
from memenvs.room_ballet.episodes import NO_ACTION, NUM_FRAMES

NUM_ACTIONS = NO_ACTION
"""Moves from room to room; they are numbered from 0."""
CALIBRATION_EPISODES = 16
"""Episodes that a model is calibrated with."""
SHARPNESS = 4.0
"""Factor on relevances at a "calibrated" start. Their standard deviation over a memory is then 1.6; without it, 0.4."""
C = TypeVar("C", bound=ModelConfig)


class ReaderInputs(NamedTuple):
    """Inputs of the reader for B episodes.

    Attributes:
        query: float, (B, Q, D).
        tokens: N tokens of each episode.
        chunks: Tokens that belong together; None where all are read at once.
    """

    query: Tensor
    tokens: Tokens
    chunks: Chunks | None


class Prediction(NamedTuple):
    """Output of a model for B queries.

    Attributes:
        answers: Pictures, float, (B, A, h, w, 3), 0 to 1; or logits of the classes, float, (B, classes).
        start: float, (B, h, w, 3); the picture at the start of a query with moves, else None.
        hints: Logits of what leads to the answer, where the model has a second head: the class of what the query shows,
            float, (B, classes), or the place of each query, float, (B, 1 + A, places).
    """

    answers: Tensor
    start: Tensor | None = None
    hints: Tensor | None = None


class QueryModel(nn.Module, abc.ABC, Generic[C]):
    """Base of the models: their task and settings, and what a memory keeps.

    Args:
        task: Task that the episodes are of; gives numbers of places and steps.
        config: Settings; None for the defaults.
        **settings: Fields of the config to change.

    Attributes:
        task: The task.
        config: The settings; a size of tokens as the widths that it stands for.
        capacity: Visits that are kept; None for all.
        hint: Name of what the second head predicts.
        hint_weight: Weight of its loss beside that of the answers.
        reader: Reads the tokens for the queries.

    Raises:
        ValueError: Capacity, strategy and task do not fit together, such as a quota below one visit for each place.
    """

    config_type: ClassVar[type[ModelConfig]]
    name: ClassVar[str]
    hint: ClassVar[str]
    config: C
    reader: MemoryReader | StepReader

    def __init__(self, task: PictureTask, config: C | None = None, **settings: Any) -> None:
        super().__init__()
        names = [field.name for field in fields(self.config_type)]
        for name in settings:
            if name not in names:
                raise ValueError(f"unknown setting {name!r} of a {self.name} model; {choices_for(name, names)}")
        values = {} if config is None else {name: getattr(config, name) for name in names}
        config = self.config_type(**{**values, **settings})  # type: ignore[assignment]
        assert config is not None
        if not config.reads_in_turn:
            own = {"layers": config.layers, "heads": config.heads}
            config = replace(config, size=None, **with_size(config.memory, config.size, own, input_dim=1))
        self.task = task
        self.config = config
        published = None if config.reads_in_turn else task.capacity
        self.capacity = published if isinstance(config.capacity, str) else config.capacity
        no_visits = np.zeros((1, task.steps // task.visit_steps), np.int64)
        if config.is_chunked and config.chunk > task.steps:
            raise ValueError(f"chunk must be at most the {task.steps} steps of an episode, got {config.chunk}")
        retained(no_visits, config.strategy_name, self.capacity, n_places=task.n_regions)  # raises if they do not fit

    @property
    def hint_weight(self) -> float:
        """Weight of the loss of the second head beside that of the answers."""
        return 1.0

    def make_step_reader(self, steps: int) -> StepReader:
        """Make the reader of a memory that reads in turn.

        Args:
            steps: Tokens and queries of the longest episode.
        """
        config, task = self.config, self.task
        reader = StepReader(
            config.dim,
            config.sequence_memory,
            config.memory_settings,
            steps,
            n_places=task.n_places,
            columns=task.columns,
            size=config.size,
            task=config.task_input,
            task_dim=len(task.tasks),
        )
        if config.initialisation == "calibrated" and isinstance(reader.memory, DNCMemory):
            reader.memory.calibrate()
        return reader

    def steps_in_turn(self, reader: StepReader, batch: QueryBatch, inputs: ReaderInputs) -> StepInputs:
        """Return what a memory reads in turn, the queries at last."""
        device = inputs.query.device
        numbers = torch.from_numpy(batch.tasks).to(device)
        task = nn.functional.one_hot(numbers, len(self.task.tasks)).to(inputs.query.dtype)
        places = torch.from_numpy(np.take_along_axis(batch.places, self.steps_read(batch)[0], 1)).to(device)
        return reader.steps(inputs.tokens, inputs.query, task, places)

    @abc.abstractmethod
    def steps_read(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """List the steps in memory that are read; args as in `predict`.

        Returns:
            Steps in order of time, int64, (B, N), N as long as the longest row needs; and a mask, bool, (B, N), that is
            False where a row has fewer.
        """

    @torch.no_grad()
    def standardize(self) -> None:
        """Scale the initial weights of a memory that reads in turn; see `Memory.standardize`."""
        if isinstance(self.reader, StepReader) and type(self.reader.memory).standardize is not Memory.standardize:
            batch = self.task.sample_batch(CALIBRATION_EPISODES, np.random.default_rng(0))
            steps = self.steps_in_turn(self.reader, batch, self.reader_inputs(batch))
            self.reader.memory.standardize(steps.embedding.flatten(0, 1))

    @property
    def memory(self) -> Memory | None:
        """The memory that reads in turn; None for token memories, which have no state."""
        return self.reader.memory if isinstance(self.reader, StepReader) else None

    @abc.abstractmethod
    def predict(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> Prediction:
        """Answer the query of each episode, with what only training needs.

        Args:
            batch: B episodes of the task.
            strategies: int, (B,); number of the retention strategy of each episode. None takes the config's for all.
        """

    @abc.abstractmethod
    def reader_inputs(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> ReaderInputs:
        """Make query, tokens and chunks of each episode; args as in `predict`."""

    def forward(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> Tensor:
        """Return the answers of `predict`."""
        return self.predict(batch, strategies).answers

    def retained_visits(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> np.ndarray:
        """Mark the visits that are in memory at the query; bool, (B, V). Args as in `predict`."""
        regions = batch.regions[:, :: self.task.visit_steps]
        return retained(regions, self._strategy_numbers(batch, strategies), self.capacity, n_places=self.task.n_regions)

    def retained_steps(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> np.ndarray:
        """Mark the steps that are in memory at the query; bool, (B, T). Args as in `predict`."""
        return np.repeat(self.retained_visits(batch, strategies), self.task.visit_steps, axis=1)

    def chunks(self, regions: Tensor, in_memory: Tensor) -> Chunks | None:
        """Chunks of the tokens, by region or by time; None where all are read at once.

        Args:
            regions: int64, (B, N); region of each token.
            in_memory: bool, (B, N).
        """
        if not self.config.is_chunked:
            return None
        if self.config.memory == "sat-pm-ph":
            return chunks_by_place(regions, in_memory, self.config.chunk)
        return chunks_by_time(in_memory, self.config.chunk)

    def _strategy_numbers(self, batch: QueryBatch, strategies: np.ndarray | None) -> np.ndarray:
        """Number of the retention strategy of each episode, int, (B,)."""
        return strategy_numbers(self.config.strategy_name, len(batch)) if strategies is None else strategies


class BalletModel(QueryModel[BalletModelConfig]):
    """Answers a question from what a memory has kept of an episode of Room Ballet.

    Args:
        task: Task of frames that the episodes are of.
        config: Settings; None for the defaults.
        **settings: Fields of the config to change.

    Raises:
        ValueError: As `QueryModel`, or `first` or `every` is outside a visit.
    """

    config_type = BalletModelConfig
    name = "ballet"
    hint = "own"
    times: Tensor

    def __init__(self, task: PictureTask, config: BalletModelConfig | None = None, **settings: Any) -> None:
        super().__init__(task, config, **settings)
        config = self.config
        if config.first >= task.visit_steps:
            raise ValueError(f"first must be below the steps of a visit ({task.visit_steps}), got {config.first}")
        if config.every > task.visit_steps:
            raise ValueError(f"every must be at most the steps of a visit ({task.visit_steps}), got {config.every}")
        if config.own_layers and not task.has_query_classes:
            raise ValueError(f"own_layers must be 0 in tasks that ask about visits, got {config.own_layers}")
        self.encoder = FrameEncoder(config.dim, config.initialisation)
        self.reader = self._make_reader()
        width = self.reader.output_dim if isinstance(self.reader, StepReader) else config.dim
        self.head = nn.Linear(width, task.classes)
        self.own_head = nn.Linear(config.dim, task.classes) if config.own_layers else None
        self.actions = nn.Parameter(torch.randn(NUM_ACTIONS, config.dim)) if config.uses_moves else None
        self.places: PlaceCode | None = None
        if config.uses_place:
            self.places = PlaceCode(config.place_code, task.n_places, config.dim, config.columns)
        # with actions as tokens, the action after a visit takes one unit of time between two frames
        self._n_times = task.steps + (task.steps // task.visit_steps - 1 if config.uses_moves else 0)
        times = sinusoid(torch.arange(self._n_times).double(), config.dim).float()
        self.register_buffer("times", times, persistent=False)  # (units, D)
        self._steps_of_visit = np.arange(config.first, task.visit_steps, config.every)

    def _make_reader(self) -> MemoryReader | StepReader:
        config, task = self.config, self.task
        if config.reads_in_turn:
            of_visit = len(range(config.first, task.visit_steps, config.every))
            return self.make_step_reader(task.steps // task.visit_steps * of_visit + 1)
        reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
        if config.initialisation == "calibrated":
            reader.sharpen(SHARPNESS, keys_like_queries=config.keys_like_queries)
        return reader

    def predict(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> Prediction:
        """Predict the dance that answers each question; see `QueryModel.predict`.

        With `own_layers` the hints are logits of the queried dancer's own dance.
        """
        inputs = self.reader_inputs(batch, strategies)
        if isinstance(self.reader, StepReader):
            steps = self.steps_in_turn(self.reader, batch, inputs)
            return Prediction(self.head(self.reader(steps, queries=1)[:, 0]))
        query, tokens, chunks = inputs
        top_k = self.config.top_k
        if self.own_head is None:
            return Prediction(self.head(self.reader(query, tokens, chunks, top_k)[:, 0]))
        split = self.config.own_layers
        early = self.reader(query, tokens, chunks, top_k, layers=slice(split))  # (B, 1, D)
        late = self.reader(early, tokens, chunks, top_k, layers=slice(split, None))  # (B, 1, D)
        return Prediction(self.head(late[:, 0]), hints=self.own_head(early[:, 0]))

    def reader_inputs(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> ReaderInputs:
        """Make query, tokens and chunks of each episode; see `QueryModel.reader_inputs`.

        Each frame that occurs in the batch is encoded once. Tokens refer to frame, time and place by rows of tables.
        """
        device = self.times.device
        assert batch.query_rows is not None
        steps, is_kept = self.steps_read(batch, strategies)  # (B, N)

        def at_steps(values: np.ndarray) -> Tensor:
            return torch.from_numpy(np.take_along_axis(values, steps, 1)).to(device)

        frames = at_steps(batch.rows)
        places = at_steps(batch.places)
        queries = torch.from_numpy(batch.query_rows).to(device)
        occurs = torch.zeros(NUM_FRAMES, dtype=torch.bool, device=device)
        occurs[frames] = occurs[queries] = True
        row_of_frame = occurs.cumsum(0) - 1
        table = self.encoder.table(occurs.nonzero()[:, 0])  # (frames that occur, D)
        query = table[row_of_frame[queries]][:, None]  # (B, 1, D)
        in_memory = torch.from_numpy(is_kept).to(device)
        chunks = self.chunks(places, in_memory)

        rows = row_of_frame[frames]
        times = self._time_indices(steps, is_kept, batch, strategies).to(device)
        mask = None if is_kept.all() else in_memory
        if self.actions is not None:
            table, rows, times, mask = self._append_actions(table, rows, times, mask, batch, steps)
        tables = [table, self.times.to(table.dtype)]
        indices = [rows, times]
        if self.places is not None:
            tables.append(self.places.table().to(table.dtype))
            indices.append(places)
        return ReaderInputs(query, Tokens(tables=tuple(tables), rows=tuple(indices), mask=mask), chunks)

    def steps_read(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """List the steps in memory that are read; see `QueryModel.steps_read`."""
        kept = self.retained_visits(batch, strategies)  # (B, V)
        visits = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(1).max())]  # kept ones first, in order
        steps = (visits[:, :, None] * self.task.visit_steps + self._steps_of_visit).reshape(len(visits), -1)
        return steps, np.repeat(np.take_along_axis(kept, visits, 1), len(self._steps_of_visit), axis=1)

    def _time_indices(
        self, steps: np.ndarray, is_kept: np.ndarray, batch: QueryBatch, strategies: np.ndarray | None
    ) -> Tensor:
        """Rows of the time table of some steps, int64, (B, N)."""
        # with actions as tokens, the action after each earlier visit takes a unit of time
        units = steps + steps // self.task.visit_steps if self.config.uses_moves else steps
        index = self._indices_of(units, is_kept)
        if self.config.time_index == "slot":
            # strategies from "lvfo" on depend on places; the release numbers their tokens in the order of places
            by_place = torch.from_numpy(self._strategy_numbers(batch, strategies) >= STRATEGIES.index("lvfo"))
            places = torch.from_numpy(np.take_along_axis(batch.places, steps, 1))
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
        batch: QueryBatch,
        steps: np.ndarray,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Append a token for the action after each visit, with its embedding and its own time.

        No action follows the last visit of an episode, so the mask hides its token.

        Args:
            table: float, (F, D); frames.
            rows: int64, (B, N); row of each token in `table`.
            times: int64, (B, N); rows of the time table.
            mask: bool, (B, N), or None.
            batch: B episodes.
            steps: int64, (B, N); step of each token.

        Returns:
            Table with the actions below the frames, and rows, times and mask of N frames and as many actions as visits.
        """
        assert self.actions is not None and batch.moves is not None
        visit_steps = self.task.visit_steps
        steps_per_visit = len(self._steps_of_visit)
        visits = steps[:, ::steps_per_visit] // visit_steps  # (B, visits in memory)
        actions = np.roll(batch.moves[:, ::visit_steps], -1, 1)  # the action after each visit, (B, V)
        actions[:, -1] = -1
        actions = np.take_along_axis(actions, visits, 1)
        unit = np.minimum(
            visits * (visit_steps + 1) + visit_steps, self._n_times - 1
        )  # after the last frame of the visit
        action_times = self._indices_of(unit, np.ones_like(unit, bool)).to(rows.device)
        action_rows = torch.from_numpy(np.where(actions < 0, NUM_ACTIONS - 1, actions)).to(rows.device) + len(table)
        is_action = torch.from_numpy(actions >= 0).to(rows.device)
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
