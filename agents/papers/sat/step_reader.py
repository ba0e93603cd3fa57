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

EPISODE = "max_episode_steps"
"""Setting of memories that have a table of positions."""


class StepReader(nn.Module):
    """Any `Memory` that reads the tokens of an episode in turn, then the queries.

    Its output are the features after each query.

    Args:
        dim: Width D of tokens and queries.
        memory: Name of the memory.
        settings: Its settings; `max_episode_steps` defaults to all steps of an episode.
        steps: Tokens and queries of the longest episode.
        size: See `memenvs.agents.policies.small_sizes.with_size`.
        task: Steps that are told the task. "first": the task vector, mapped to width D, is one more step before the
            tokens. "every": the vector is appended to each token and query. None: none.
        task_dim: Width G of the task vector.

    Attributes:
        memory: The memory.
        output_dim: Width of the output.

    Raises:
        ValueError: A setting is not allowed, or `max_episode_steps` is too small.

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
        size: str | int | None = None,
        task: TaskInput | None = None,
        task_dim: int = 0,
    ) -> None:
        super().__init__()
        steps += task == "first"
        if EPISODE in {setting.name for setting in fields(memory_spec(memory).config)}:
            settings = {EPISODE: steps, **settings}
            if settings[EPISODE] < steps:
                raise ValueError(
                    f"memory_kwargs[{EPISODE!r}] must be at least the {steps} steps that an episode and its queries "
                    f"take, got {settings[EPISODE]}"
                )
        self.task = task
        self.project = nn.Linear(task_dim, dim) if task == "first" else None
        width = dim + task_dim if task == "every" else dim
        self.memory = make_memory(memory, width, **with_size(memory, size, settings, width))
        self.output_dim = self.memory.output_dim

    def forward(self, steps: Tensor, queries: int) -> Tensor:
        """Return the features after each query.

        Args:
            steps: float, (B, T, input_dim of the memory); from `steps`.
            queries: Number of queries, which are the last steps.

        Returns:
            float, (B, queries, output_dim).
        """
        start = torch.zeros(steps.shape[:2], dtype=torch.bool, device=steps.device)
        start[:, 0] = True
        return self.memory(StepInputs(steps, start, start), last=queries)[0]

    def steps(self, tokens: Tokens, queries: Tensor, task: Tensor) -> Tensor:
        """Put together what the memory reads.

        Args:
            tokens: Tokens of B sequences, in order of time; all in memory.
            queries: float, (B, Q, D).
            task: float, (B, G).

        Returns:
            float, (B, T, input_dim of the memory).
        """
        values = [] if tokens.values is None else [tokens.values]
        values += [  # the gradient of an index_select is much faster than that of an embedding
            table.index_select(0, rows.flatten()).unflatten(0, rows.shape)
            for table, rows in zip(tokens.tables, tokens.rows, strict=True)
        ]
        steps = torch.cat([sum(values[1:], values[0]), queries], 1)
        if self.project is not None:
            return torch.cat([self.project(task)[:, None], steps], 1)
        if self.task is None:
            return steps
        return torch.cat([steps, task[:, None].expand(-1, steps.shape[1], -1)], -1)
