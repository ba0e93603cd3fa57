"""Reader of Room Ballet's tokens by a differentiable neural computer, a baseline of SAT."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from memenvs.agents.memory.base import StepInputs
from memenvs.agents.memory.dnc import DNCConfig, DNCMemory
from memenvs.checks import choices_for

TaskInput = Literal["first", "every"]
"""Steps of a `DNCReader` that are given the task."""


class DNCReader(nn.Module):
    """DNC that reads the frames of an episode in turn, then the query.

    Its output are the features after the query.

    Args:
        dim: Width D of frame tokens and queries.
        task_dim: Width G of the task vector.
        task: Steps that are given the task. "first": the task vector, mapped to width D, is one more step before the
            frames. "every": the vector is appended to each frame and to the query.
        config: Settings of the DNC.

    Attributes:
        output_dim: Width of the output: hidden state and read vectors.

    Raises:
        ValueError: `task` is none of these.

    Source:
        SAT, D.6, DNC-first and DNC-every.
    """

    def __init__(self, dim: int, task_dim: int, task: TaskInput, config: DNCConfig) -> None:
        super().__init__()
        if task not in get_args(TaskInput):
            raise ValueError(f"unknown task {task!r}; {choices_for(task, get_args(TaskInput))}")
        self.project = nn.Linear(task_dim, dim) if task == "first" else None
        self.memory = DNCMemory(dim + task_dim if task == "every" else dim, config)
        self.output_dim = self.memory.output_dim

    def forward(self, tokens: Tensor, query: Tensor, task: Tensor) -> Tensor:
        """Return the features of the DNC after the query.

        Args:
            tokens: float, (B, T, D); frames in order of time.
            query: float, (B, D).
            task: float, (B, G).

        Returns:
            float, (B, output_dim).
        """
        steps = torch.cat([tokens, query[:, None]], 1)
        if self.project is not None:
            steps = torch.cat([self.project(task)[:, None], steps], 1)
        else:
            steps = torch.cat([steps, task[:, None].expand(-1, steps.shape[1], -1)], -1)
        start = torch.zeros(steps.shape[:2], dtype=torch.bool, device=steps.device)
        start[:, 0] = True
        return self.memory(StepInputs(steps, start, start), last=1)[0][:, 0]
