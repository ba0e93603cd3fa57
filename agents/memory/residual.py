"""Residual layers of a recurrence and a gated MLP, for all steps at once."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.sizes import check_sizes


@dataclass(frozen=True, kw_only=True)
class ResidualConfig:
    """Sizes of residual layers.

    Attributes:
        layers: Layers on top of each other; >= 1.
        dim: Width D of the residual stream and of the features; >= 1.
        mlp_dim: Inner width of the gated MLP; >= 1.
    """

    layers: int = 2
    dim: int = 128
    mlp_dim: int = 256

    def __post_init__(self) -> None:
        check_sizes(self)


class Recurrence(nn.Module, abc.ABC):
    """A recurrence over the steps that is computed for many steps at once."""

    @abc.abstractmethod
    def initial_state(self, batch_size: int) -> State:
        """Return the state before the first step, tensors (B, ...)."""

    @abc.abstractmethod
    def forward(self, x: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """Run T steps.

        Args:
            x: float, (B, T, D).
            resets: bool, (B, T); the steps before which the state is emptied.
            state: Before the first step.

        Returns:
            float, (B, T, D), and the state after the last step.
        """


class ResidualMemory(Memory):
    """Layers x <- x + recurrence(norm(x)), x <- x + MLP(norm(x)), for T steps at once.

    Args:
        input_dim: Width of the embedding.
        config: Sizes.
        recurrences: The recurrence of each layer.
    """

    def __init__(self, input_dim: int, config: ResidualConfig, recurrences: list[Recurrence]) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.input = nn.Linear(input_dim, config.dim)
        self.recurrences = nn.ModuleList(recurrences)
        self.recurrence_norms = nn.ModuleList(nn.RMSNorm(config.dim, eps=1e-6) for _ in recurrences)
        self.mlp_norms = nn.ModuleList(nn.RMSNorm(config.dim, eps=1e-6) for _ in recurrences)
        self.gate_up = nn.ModuleList(nn.Linear(config.dim, 2 * config.mlp_dim) for _ in recurrences)
        self.down = nn.ModuleList(nn.Linear(config.mlp_dim, config.dim) for _ in recurrences)
        self.norm = nn.RMSNorm(config.dim, eps=1e-6)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """The state of every layer, (B, layers, ...) each; see `Memory.initial_state`."""
        return _stacked([recurrence.initial_state(batch_size) for recurrence in self._recurrences()])

    def _recurrences(self) -> list[Recurrence]:
        return [layer for layer in self.recurrences if isinstance(layer, Recurrence)]

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        h = self.input(x.embedding).to(self.norm.weight.dtype)  # (B, T, D); float32 also under autocast
        after = []
        for i, recurrence in enumerate(self._recurrences()):
            before = {name: value[:, i] for name, value in state.items()}
            mixed, new = recurrence(self.recurrence_norms[i](h), x.trial_start, before)
            h = h + mixed
            gate, up = self.gate_up[i](self.mlp_norms[i](h)).chunk(2, dim=-1)
            h = h + self.down[i](F.silu(gate) * up)
            after.append(new)
        return self.norm(h[:, steps - n_last :]), _stacked(after)


def _stacked(states: list[State]) -> State:
    """Stack the states of the layers: (B, ...) each -> (B, layers, ...)."""
    return {name: torch.stack([state[name] for state in states], 1) for name in states[0]}


def exact_dtype(x: Tensor) -> torch.dtype:
    """The dtype of a recurrence: at least float32, because rounding errors add up."""
    return torch.promote_types(x.dtype, torch.float32)
