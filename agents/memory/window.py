"""The newest steps side by side: a baseline without a long memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.sizes import check_sizes


@dataclass(frozen=True, kw_only=True)
class WindowConfig:
    """Settings of a window.

    Attributes:
        steps: Newest steps k that are seen at once, the present one included; >= 1.
        dim: Width D of the features; >= 1.
    """

    steps: int = 16
    dim: int = 256

    def __post_init__(self) -> None:
        check_sizes(self)


class WindowMemory(Memory):
    r"""The last k embeddings, each with weights of its age, through one hidden layer.

    Idea:
        The network sees the newest k steps at once, like a stack of frames. What is older is gone. If an agent with a
        short window does as well as one with a memory, the task does not need a memory.

    Equations:
        .. math::

            f_t = \operatorname{ReLU}\Big( b + \sum_{i=0}^{k-1} W_i\, x_{t-i} \Big)

        x of a step before the start of the trial is 0.

    State:
        The last k - 1 embeddings, and how many of them belong to the trial.

    Cost:
        A step takes k I D multiply-adds, with I inputs.

    When to use:
        As a baseline in every study of a memory, with k = 4 and 16.

    When not to use:
        Where the fact that an action needs lies further back than k steps.

    Difference from the paper:
        The paper stacks images before a convolution; here embeddings are stacked after the encoder. The window reaches
        over the ends of the episodes of a trial.

    Args:
        input_dim: Width of the embedding.
        config: Length of the window and width of the features.

    Source:
        Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015 (four frames).
    """

    def __init__(self, input_dim: int, config: WindowConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.hidden = nn.Linear(config.steps * input_dim, config.dim)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros; see `Memory.initial_state`."""
        weight = self.hidden.weight
        return {
            "steps": weight.new_zeros(batch_size, self.config.steps - 1, self.input_dim),
            "length": torch.zeros(batch_size, dtype=torch.long, device=weight.device),
        }

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        context = torch.cat([state["steps"].to(x.embedding.dtype), x.embedding], 1)  # (B, k - 1 + T, I)
        first = last_reset(x.trial_start, state["length"])  # (B, T): oldest step of the trial
        windows = context.unfold(1, self.config.steps, 1)[:, steps - n_last :]  # (B, n_last, I, k), oldest first
        now = torch.arange(steps, device=first.device)[:, None]
        index = now + torch.arange(1 - self.config.steps, 1, device=first.device)  # (T, k): step at each place
        is_in_trial = (index >= first[..., None])[:, steps - n_last :, None]  # (B, n_last, 1, k)
        features = F.relu(self.hidden((windows * is_in_trial).flatten(2)))
        return features, {"steps": context[:, steps:].detach(), "length": steps - first[:, -1]}
