"""Transformer-XL: each layer sees the steps at hand and the hidden states that it had at the steps before them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import ROWS_AT_ONCE, attend
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.transformer import Block, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class TransformerXLConfig(TransformerConfig):
    """Settings of Transformer-XL; the defaults are those of ReLIC's baseline.

    Attributes:
        layers, heads, dim, mlp_dim: See `TransformerConfig`.
        memory_length: Steps before its own that a step sees in each layer, so that the top reaches `layers` times as far; >= 1.
        dropout: Chance that an entry of token, distance encoding, attention's output or feature is zeroed while training; in [0, 1).
    """

    memory_length: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory_length < 1:
            raise ValueError(f"memory_length must be at least 1, got {self.memory_length}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")


class RelativePositionBlock(Block):
    """A block whose attention knows how far back a step lies, and nothing else of where it is.

    Args:
        config: Sizes.

    Source:
        Dai et al., "Transformer-XL", 2019, section 3.3: score (q + u) k + (q + v) r of a key, r that of its distance.
    """

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__(config)
        self.distance = nn.Linear(config.dim, config.dim, bias=False)
        self.content_bias = nn.Parameter(torch.empty(config.heads, 1, config.head_dim))
        self.distance_bias = nn.Parameter(torch.empty(config.heads, 1, config.head_dim))
        for weight in (self.distance.weight, self.content_bias, self.distance_bias):
            nn.init.normal_(weight, std=0.02)

    def listen(self, context: Tensor, encoding: Tensor, first: Tensor) -> Tensor:
        """What the heads of the last steps hear.

        Args:
            context: float, (B, M + T, D); hidden states of the M steps before, then of the T steps.
            encoding: float, (M + 1, D); of the distances M, M - 1, ..., 0.
            first: int64, (B, Q); for each of the last Q steps, the index in `context` at which its trial begins; negative if earlier.

        Returns:
            float, (B, heads, Q, width).
        """
        queries, reach = first.shape[1], len(encoding) - 1
        q, new = self.project(context, None, queries)
        keys, values = new.unbind(1)
        distances = self.distance(encoding).view(reach + 1, self.heads, self.head_dim).permute(1, 2, 0)
        by_distance = (q + self.distance_bias) @ distances / self.head_dim**0.5  # (B, heads, Q, M + 1)
        q = q + self.content_bias
        parts = []
        for begin in range(0, queries, ROWS_AT_ONCE):
            end = min(queries, begin + ROWS_AT_ONCE)
            low = context.shape[1] - queries - reach + begin  # what the first of these steps sees begins here
            high = low + reach + end - begin
            bias = _by_key(by_distance[:, :, begin:end])
            earlier = torch.arange(low, high, device=first.device) < first[:, begin:end, None]
            bias = bias.masked_fill(earlier[:, None], -torch.inf)
            k, v = keys[:, :, low:high], values[:, :, low:high]
            parts.append(attend(q[:, :, begin:end], k, v, causal=False, mask=bias))
        return torch.cat(parts, dim=2)


def _by_key(scores: Tensor) -> Tensor:
    """Scores by distance, float (..., Q, M + 1), as scores by key, (..., Q, M + Q): row i moves i to the right; -inf around it."""
    *batch, queries, columns = scores.shape
    padded = F.pad(scores, (0, queries), value=-torch.inf).flatten(-2)  # read in rows that are one entry shorter
    return padded[..., :-queries].view(*batch, queries, columns + queries - 1)


class TransformerXLMemory(Memory):
    """A transformer in which every layer sees a step and the `memory_length` steps of the trial before it.

    The state holds `hidden`, float (B, layers, M, D): what came into each layer at the last M steps. No gradient flows through it. It holds
    over episodes of a trial; nothing tells where one ends but the steps themselves. Keys and values are made of it with
    the present weights; to have all of it from the present weights, `prefill` again from the state before.

    Dropout is drawn from `generator` in each `forward` in training mode.

    Args:
        input_dim: Width of the embedding.
        config: Sizes and reach.

    Source:
        Dai et al., "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context", 2019, each query with the same reach;
        normalised before attention and with the gated MLP of ReLIC, whose baseline it is.
    """

    def __init__(self, input_dim: int, config: TransformerXLConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.input = nn.Identity() if input_dim == config.dim else nn.Linear(input_dim, config.dim)
        self.blocks = nn.ModuleList(RelativePositionBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.dim, eps=1e-6)
        self.output = nn.Linear(config.dim, config.dim)
        self.generator = torch.Generator()

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Counters and hidden states at zero; see `Memory.initial_state`."""
        config, weight = self.config, self.output.weight
        hidden = weight.new_zeros(batch_size, config.layers, config.memory_length, config.dim)
        return StepClock.zeros(batch_size, weight.device) | {"hidden": hidden}

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient and without dropout; see `Memory.step`."""
        features, state = self._run(x, state, 1, 0.0)
        return features[:, 0], state

    @torch.no_grad()
    def prefill(self, x: StepInputs, state: State, last: int | None = None) -> tuple[Tensor, State]:
        """`forward` without gradient and without dropout; see `Memory.prefill`."""
        return self._run(x, state, last, 0.0)

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """T steps at once, with gradients through these; see `Memory.forward`. The state is returned in any case."""
        if state is None:
            state = self.initial_state(x.embedding.shape[0])
        return self._run(x, state, last, self.config.dropout if self.training else 0.0)

    def _run(self, x: StepInputs, state: State, last: int | None, dropout: float) -> tuple[Tensor, State]:
        """Features of the last steps, float (B, `last` or T, D), and the state after them."""
        _, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        clock = StepClock.read(x.episode_start, x.trial_start, state)
        first = clock.trial_first + self.config.memory_length
        h = self._drop(self.input(x.embedding).to(self.output.weight.dtype), dropout)  # float32 also under autocast
        encoding = self._drop(self._encoding(), dropout)
        hidden = []
        for i, block in enumerate(self.blocks):
            assert isinstance(block, RelativePositionBlock)
            asking = kept if i == self.config.layers - 1 else steps
            context = torch.cat([state["hidden"][:, i], h], dim=1)
            hidden.append(context[:, steps:].detach())
            heard = block.mix(block.listen(context, encoding, first[:, steps - asking :]))
            h = h[:, steps - asking :] + self._drop(heard, dropout)
            h = h + block.mlp(h)
        return self._drop(self.output(self.norm(h)), dropout), clock.after() | {"hidden": torch.stack(hidden, dim=1)}

    def _encoding(self) -> Tensor:
        """Sines, then cosines, of the distances M, M - 1, ..., 0, float (M + 1, D)."""
        weight, dim = self.output.weight, self.config.dim
        distance = torch.arange(self.config.memory_length, -1, -1, device=weight.device, dtype=weight.dtype)
        exponent = torch.arange(0, dim, 2, device=weight.device, dtype=weight.dtype) / dim
        angle = distance[:, None] * 10_000.0**-exponent
        return torch.cat([angle.sin(), angle.cos()], dim=-1)

    def _drop(self, x: Tensor, chance: float) -> Tensor:
        """The entries that are not dropped, scaled so that the mean stays."""
        if chance == 0.0:
            return x
        kept = torch.empty(x.shape).bernoulli_(1.0 - chance, generator=self.generator)
        return x * (kept / (1.0 - chance)).to(x)
