"""Reader of tokens by any memory: one after the other, then the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from memenvs.agents.memory import StepInputs, make_memory, memory_spec
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.papers.sat.config import TaskInput
from memenvs.agents.policies.small_sizes import with_size


class StepReader(nn.Module):
    """Any `Memory` that reads the tokens of an episode in turn, then the queries.

    Its output are the features after each query. A memory that needs places or poses has those of the tokens: place p
    is at x = p % columns and y = p // columns, in metres, and the heading is 0. Queries are put at the last place.

    Args:
        dim: Width D of tokens and queries.
        memory: Name of the memory.
        settings: Its settings. `max_episode_steps` and `n_places` have those of the task as defaults.
        steps: Tokens and queries of the longest episode.
        n_places: Number of places.
        columns: Columns of the grid of places; None where they are in a row.
        size: See `memenvs.agents.policies.small_sizes.with_size`.
        task: Steps in which the memory reads the task. "first": the task vector, mapped to width D, is one more step
            before the tokens. "every": the vector is appended to each token and query. None: none.
        task_dim: Width G of the task vector.

    Attributes:
        memory: The memory.
        output_dim: Width of the output.

    Raises:
        ValueError: A setting is not allowed, `max_episode_steps` is too small, or the memory needs moves.

    Source:
        SAT, D.6, DNC-first and DNC-every.
    """

    def __init__(
        self,
        dim: int,
        memory: str,
        settings: Mapping[str, Any],
        steps: int,
        *,
        n_places: int = 1,
        columns: int | None = None,
        size: str | int | None = None,
        task: TaskInput | None = None,
        task_dim: int = 0,
    ) -> None:
        super().__init__()
        steps += task == "first"
        names = {setting.name for setting in fields(memory_spec(memory).config)}
        defaults = {"max_episode_steps": steps, "n_places": n_places}
        settings = {**{name: value for name, value in defaults.items() if name in names}, **settings}
        if settings.get("max_episode_steps", steps) < steps:
            raise ValueError(
                f"memory_kwargs['max_episode_steps'] must be at least the {steps} steps that an episode and its "
                f"queries take, got {settings['max_episode_steps']}"
            )
        self.task = task
        self.columns = columns or n_places
        self.project = nn.Linear(task_dim, dim) if task == "first" else None
        width = dim + task_dim if task == "every" else dim
        self.memory = make_memory(memory, width, **with_size(memory, size, settings, width))
        if self.memory.uses_move:
            raise ValueError(f"memory must be one that needs no moves, which are not read in turn, got {memory!r}")
        self.output_dim = self.memory.output_dim

    def forward(self, steps: StepInputs, queries: int) -> Tensor:
        """Return the features after each query.

        Args:
            steps: From `steps`.
            queries: Number of queries, which are the last steps.

        Returns:
            float, (B, queries, output_dim).
        """
        return self.memory(steps, last=queries)[0]

    def steps(self, tokens: Tokens, queries: Tensor, task: Tensor, places: Tensor) -> StepInputs:
        """Put together what the memory reads.

        Args:
            tokens: N tokens of B sequences, in order of time; all in memory.
            queries: float, (B, Q, D).
            task: float, (B, G).
            places: int64, (B, N).
        """
        values = [] if tokens.values is None else [tokens.values]
        values += [  # the gradient of an index_select is much faster than that of an embedding
            table.index_select(0, rows.flatten()).unflatten(0, rows.shape)
            for table, rows in zip(tokens.tables, tokens.rows, strict=True)
        ]
        steps = torch.cat([sum(values[1:], values[0]), queries], 1)
        if self.project is not None:
            steps = torch.cat([self.project(task)[:, None], steps], 1)
        elif self.task is not None:
            steps = torch.cat([steps, task[:, None].expand(-1, steps.shape[1], -1)], -1)
        start = torch.zeros(steps.shape[:2], dtype=torch.bool, device=steps.device)
        start[:, 0] = True
        extra: dict[str, Tensor] = {}
        if self.memory.required_inputs:
            before, after = int(self.task == "first"), queries.shape[1]
            at = torch.cat([places[:, :1].expand(-1, before), places, places[:, -1:].expand(-1, after)], 1)
            row, column = at // self.columns, at % self.columns
            extra = {"place": at, "pose": torch.stack([column, row, torch.zeros_like(at)], -1).to(steps.dtype)}
        return StepInputs(steps, start, start, **extra)
