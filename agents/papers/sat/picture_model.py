"""Model that answers with pictures, or with a class, from a memory of pictures.

It shares codes, chunks, retention and readers with `BalletModel`. The unit that is kept or evicted is a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.encoders.pictures import (
    PatchDecoder,
    PatchEncoder,
    PictureEncoder,
    ViewDecoder,
    ViewEncoder,
)
from memenvs.agents.memory.place_codes import PlaceCode, PlaceCodeKind, sinusoid
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.papers.sat.config import PictureModelConfig
from memenvs.agents.papers.sat.model import SHARPNESS, Prediction, QueryModel, ReaderInputs
from memenvs.agents.papers.sat.step_reader import StepReader
from memenvs.query_task import PictureTask, QueryBatch

CONVOLVED_AT_ONCE = 256
"""Views that are convolved at once where a task has drawn many."""
COMPONENTS = 512
"""Principal components of views, with `convolutions="components"`."""
LEAST_COMPONENTS_DIM = 8
"""Least width of principal components of patches: one component and one constant channel in the last convolution."""
PLACE_WEIGHT = 0.01
"""Weight of the cross-entropy of places beside squared errors of pixels, which are far smaller.

With 1 the encoder learned what separates places and little of what a picture needs.
"""
FROZEN_PLACE_WEIGHT = 0.3
"""The same where the encoder does not learn, so that places take nothing from what a picture needs."""
TIME_SCALE = 0.25
"""Root mean square of a calibrated time code; that of pictures and places is 1."""
PLACE_RELEVANCE = 20.0
"""Initial logit of a token at the place of the query, if the encoder does not learn and codes of places are learned.

Tokens in the same row or column have half of it. With sinusoids, those nearby have almost as much. It is also the
relevance of a full chunk with such a token.
"""


class PictureModel(QueryModel[PictureModelConfig]):
    """Answers a query from the steps that a memory has kept.

    Args:
        task: Task that the episodes are of.
        config: Settings; None for the defaults.
        **settings: Fields of the config to change.

    Attributes:
        has_fixed_codes: True if the encoder of patches is made of principal components and does not learn.

    Raises:
        ValueError: A setting does not fit the task, such as moves or a grid that it does not have.
    """

    config_type = PictureModelConfig
    name = "picture"
    hint = "place"
    times: Tensor

    def __init__(self, task: PictureTask, config: PictureModelConfig | None = None, **settings: Any) -> None:
        super().__init__(task, config, **settings)
        config = self.config
        if config.uses_moves and task.move_vectors is None:
            raise ValueError(f"memory must be one without moves in a task that has none, got {config.memory!r}")
        if config.place_layers and task.move_vectors is None:
            raise ValueError(f"place_layers must be 0 in a task without moves, got {config.place_layers}")
        if config.compares and (not task.classes or task.query_dim or task.move_vectors is not None):
            raise ValueError("compares must be False in a task whose query is no picture or whose answer is no class")
        if config.move_query == "displacement" and task.move_vectors is not None and task.columns is None:
            raise ValueError("move_query must be 'moves' in a task whose places are no grid, got 'displacement'")
        dim, calibrated = config.dim, config.initialisation == "calibrated"
        has_components = config.convolutions == "components"
        copies = not task.classes and task.move_vectors is not None and not config.reads_in_turn
        if has_components and task.pictures == "patches" and not copies:
            raise ValueError(
                "convolutions must be 'learned' or 'fixed' in a task of patches without moves or with classes, and "
                "with a memory that reads one after the other, got 'components'"
            )
        self.has_fixed_codes = has_components and task.pictures == "patches"
        if self.has_fixed_codes and dim < LEAST_COMPONENTS_DIM:
            raise ValueError(
                f"dim must be at least {LEAST_COMPONENTS_DIM} with convolutions 'components' in a task of patches, "
                f"got {dim}"
            )
        self.encoder: PictureEncoder
        if task.pictures == "patches":
            self.encoder = PatchEncoder(dim)
        else:
            self.encoder = ViewEncoder(dim, COMPONENTS if has_components else 0)
        if self.has_fixed_codes:
            self.encoder.requires_grad_(False)
        elif config.convolutions != "learned":
            self.encoder.convolutions.requires_grad_(False)
        self._drawn_features: dict[int, tuple[np.ndarray, Tensor]] = {}  # views, and what the convolutions make of them
        self.register_load_state_dict_post_hook(lambda model, _: model._drawn_features.clear())
        width = dim
        if config.reads_in_turn:
            queries = 1 if task.move_vectors is None else 1 + task.answers
            self.reader = self.make_step_reader(task.steps + queries)
            width = self.reader.output_dim
        else:
            self.reader = MemoryReader(dim, config.layers, config.heads, config.mlp_dim)
        self.head: nn.Module
        if task.classes:
            self.head = nn.Linear(width, task.classes)
        elif task.pictures == "patches":
            self.head = PatchDecoder(width)
        else:
            self.head = ViewDecoder(width, task.answers, calibrated)
        self.place_head = nn.Linear(dim, task.n_places) if config.place_layers else None
        self.moves: nn.Parameter | None = None
        self.displacements: PlaceCode | None = None
        self.query: nn.Linear | None = None
        if task.move_vectors is not None:
            if config.uses_moves or config.move_query == "moves":
                self.moves = nn.Parameter(torch.randn(len(task.move_vectors), dim))
            if config.move_query == "displacement":
                rows, columns = (2 * most + 1 for most in self._most_moved)
                self.displacements = PlaceCode("learned2d", rows * columns, dim, columns)
        elif task.query_dim:
            self.query = nn.Linear(task.query_dim, dim)
        self.places: PlaceCode | None = None
        if config.uses_place:
            kind = cast(PlaceCodeKind, config.place_code or ("sine1d" if task.columns is None else "sine2d"))
            self.places = PlaceCode(kind, task.n_places, dim, task.columns if kind.endswith("2d") else None)
        # with moves as tokens, each takes one unit of time before the step that it led to
        self._units_per_step = 2 if config.uses_moves else 1
        units = self._units_per_step * task.steps + 1 + task.answers
        times = sinusoid(torch.arange(units).double(), dim).float()
        self.register_buffer("times", times, persistent=False)  # (units, D)
        if calibrated:
            self._calibrate()

    @property
    def _most_moved(self) -> tuple[int, int]:
        """Rows and columns between the most distant places of the task's grid."""
        assert self.task.columns is not None
        return self.task.n_places // self.task.columns - 1, self.task.columns - 1

    @torch.no_grad()
    def _calibrate(self) -> None:
        """Scale codes of time and place, and let all layers attend to what resembles the query."""
        self.times.sub_(self.times.mean(0))
        self.times.mul_(TIME_SCALE / self.times.square().mean().sqrt())
        if self.places is not None:
            codes = self.places.codes
            columns = self.places.columns or len(codes)
            for part in (codes[:columns], codes[columns:]):
                part.sub_(part.mean(0))
            codes.div_(self.places.table().square().mean().sqrt())
        if isinstance(self.reader, StepReader):
            return
        self.reader.sharpen(SHARPNESS, keys_like_queries=True, within_chunks=True)
        if self.config.compares:
            self.reader.start_by_copying(slice(None))
        if self.has_fixed_codes:
            reading = slice(self.config.place_layers, None)
            self.reader.start_by_copying(reading)
            if self.places is not None and self.config.place_layers:
                spread, directions = torch.linalg.eigh(_second_moments(self.places.table()))
                # codes of patches leave directions above their own mean square, 1, to places
                chunk = self.config.chunk if self.config.is_chunked else 1
                self.reader.start_by_comparing(reading, directions.T[spread > 1].flip(0), PLACE_RELEVANCE, chunk)

    @property
    def hint_weight(self) -> float:
        """Weight of the loss of places, beside squared errors of pixels."""
        return FROZEN_PLACE_WEIGHT if self.has_fixed_codes else PLACE_WEIGHT

    def predict(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> Prediction:
        """Answer each query; see `QueryModel.predict`.

        With `place_layers` the hints are logits of places.
        """
        inputs = self.reader_inputs(batch, strategies)
        if isinstance(self.reader, StepReader):
            steps = self.steps_in_turn(self.reader, batch, inputs)
            return self._prediction(batch, self.reader(steps, queries=inputs.query.shape[1]), None)
        query, tokens, chunks = inputs
        top_k, split = self.config.top_k, self.config.place_layers
        places = None
        if self.place_head is not None:
            flat = self.config.flat_layers
            query = self.reader(query, tokens, None, top_k, layers=slice(flat))
            query = self.reader(query, tokens, chunks, top_k, layers=slice(flat, split))
            places = self.place_head(query)
            if self.places is not None:  # the layers that follow read where the answer should be
                # where codes are fixed, errors of answers do not change what predicts the place
                shares = (places.detach() if self.has_fixed_codes else places).softmax(2)
                place = shares.to(query.dtype) @ self.places.table().to(query.dtype)
                query = place if self.has_fixed_codes else query + place
        read = self.reader(query, tokens, chunks, top_k, layers=slice(split, None))  # (B, Q, D)
        if self.has_fixed_codes:
            read = read - query  # the decoder knows codes of patches, not queries
        elif self.config.compares:
            read = read - 2 * query  # the layers add what they read to the query
        return self._prediction(batch, read, places)

    def _prediction(self, batch: QueryBatch, read: Tensor, places: Tensor | None) -> Prediction:
        """Decode what the queries have read, float (B, Q, width)."""
        if batch.query_moves is None:
            return Prediction(self.head(read[:, 0]))
        pictures = self.head(read.flatten(0, 1)).unflatten(0, read.shape[:2])
        return Prediction(pictures[:, 1:], pictures[:, 0], places)

    def reader_inputs(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> ReaderInputs:
        """Make query, tokens and chunks; see `QueryModel.reader_inputs`.

        Each picture is encoded once.
        """
        device = self.times.device
        steps, is_kept = self.steps_read(batch, strategies)  # (B, N)
        in_memory = torch.from_numpy(is_kept).to(device)

        def at_steps(values: np.ndarray) -> Tensor:
            return torch.from_numpy(np.take_along_axis(values, steps, 1)).to(device)

        rows = [np.take_along_axis(batch.rows, steps, 1)]  # (B, N)
        if batch.query_rows is not None:
            rows.append(batch.query_rows)
        values, *first = self.encode(batch, rows)  # (B, N, D) and (B, D)
        units = self._units_per_step * torch.from_numpy(steps).to(device)
        values = values + self.times[units + self._units_per_step - 1].to(values.dtype)
        if self.places is not None:
            values = values + self.places.table().to(values.dtype)[at_steps(batch.places)]
        mask = None if bool(in_memory.all()) else in_memory
        if self.config.uses_moves:
            assert self.moves is not None and batch.moves is not None
            moves = at_steps(batch.moves)
            move_values = self.moves[moves.clamp(min=0)] + self.times[units]
            values = torch.cat([values, move_values.to(values.dtype)], 1)
            mask = torch.cat([in_memory, in_memory & (moves >= 0)], 1)
        chunks = self.chunks(at_steps(batch.regions), in_memory)
        return ReaderInputs(self.queries(batch, first[0] if first else None), Tokens(values, mask=mask), chunks)

    def steps_read(self, batch: QueryBatch, strategies: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """List the steps in memory; see `QueryModel.steps_read`."""
        is_kept = self.retained_steps(batch, strategies)  # (B, T)
        steps = np.argsort(~is_kept, axis=1, kind="stable")[:, : int(is_kept.sum(1).max())]  # kept ones first, in order
        return steps, np.take_along_axis(is_kept, steps, 1)

    def added_moments(self) -> Tensor:
        """Second moments of what tokens add to codes of pictures: time and place; float, (D, D)."""
        moments = _second_moments(self.times)
        return moments if self.places is None else moments + _second_moments(self.places.table())

    def encode(self, batch: QueryBatch, rows: Sequence[np.ndarray]) -> list[Tensor]:
        """Encode what steps show; each picture that occurs is encoded once.

        Args:
            batch: Episodes that hold the pictures.
            rows: int64, (...); as `QueryBatch.rows`.

        Returns:
            float, (..., D); one for each of `rows`.
        """
        per_picture = self.encoder.rows_per_picture
        numbers = np.unique(np.concatenate([row.ravel() for row in rows]) // per_picture)
        table = self.encoder.codes(self._features(batch, numbers))
        codes = []
        for row in rows:
            picture, cell = np.divmod(row, per_picture)
            at = torch.from_numpy(np.searchsorted(numbers, picture) * per_picture + cell).to(table.device)
            # the gradient of `index_select` is faster than an embedding's
            codes.append(table.index_select(0, at.flatten()).unflatten(0, at.shape))
        return codes

    def _features(self, batch: QueryBatch, numbers: np.ndarray) -> Tensor:
        """Convolve pictures, int64, (P,), ascending; if they are not learned, those of all batches only once."""
        device = self.times.device
        if self.config.convolutions == "learned" or batch.drawn is None:
            return self.encoder.features(torch.from_numpy(batch.pictures(numbers)).to(device))
        is_drawn = numbers < len(batch.drawn)
        drawn, others = numbers[is_drawn], numbers[~is_drawn]
        features = self._features_of_drawn(batch.drawn)[torch.from_numpy(drawn).to(device)]
        if not len(others):
            return features
        return torch.cat([features, self.encoder.features(torch.from_numpy(batch.pictures(others)).to(device))])

    @torch.no_grad()
    def _features_of_drawn(self, drawn: np.ndarray) -> Tensor:
        """Convolve all views of a task, unless that is done; float, (V, ...)."""
        device = self.times.device
        if id(drawn) not in self._drawn_features:
            blocks = [
                self.encoder.features(torch.from_numpy(drawn[first : first + CONVOLVED_AT_ONCE]).to(device))
                for first in range(0, len(drawn), CONVOLVED_AT_ONCE)
            ]
            self._drawn_features[id(drawn)] = drawn, torch.cat(blocks)
        return self._drawn_features[id(drawn)][1].to(device)

    def queries(self, batch: QueryBatch, first: Tensor | None) -> Tensor:
        """Make the queries.

        Args:
            batch: B episodes.
            first: float, (B, D); the picture that each query shows, encoded; None for a query that shows none.

        Returns:
            float, (B, Q, D).
        """
        device = self.times.device
        if first is None:
            assert self.query is not None and batch.query_vectors is not None
            return self.query(torch.from_numpy(batch.query_vectors).to(device))[:, None]
        first = first[:, None]
        if batch.query_moves is None:
            return first
        assert self.task.move_vectors is not None
        if self.displacements is not None:
            rows, columns = self._most_moved
            moved = self.task.move_vectors[batch.query_moves].cumsum(1) + np.array([columns, rows])  # (B, A, 2)
            assert self.displacements.columns is not None
            number = torch.from_numpy(moved[..., 1] * self.displacements.columns + moved[..., 0]).to(device)
            return torch.cat([first, first + self.displacements.table()[number].to(first.dtype)], 1)
        assert self.moves is not None
        moves = self.moves[torch.from_numpy(batch.query_moves).to(device)].to(first.dtype)  # (B, A, D)
        queries = torch.cat([first, moves], 1)
        return queries + self.times[-queries.shape[1] :].to(first.dtype)


def _second_moments(vectors: Tensor) -> Tensor:
    """Mean products of the numbers of vectors, float, (N, D); (D, D)."""
    return vectors.T @ vectors / len(vectors)
