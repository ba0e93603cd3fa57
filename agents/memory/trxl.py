"""Transformer-XL: each layer also attends to its hidden states at the steps before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import QUERY_BLOCK, attend
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.memory.transformer import TransformerBlock, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class TransformerXLConfig(TransformerConfig):
    """Settings of Transformer-XL; the defaults are those of ReLIC's baseline.

    Attributes:
        layers, heads, dim, mlp_dim: See `TransformerConfig`.
        memory_length: Earlier steps M that a step attends to in each layer; >= 1. Through L layers, information comes
            from up to L M steps back.
        dropout: Dropout rate of tokens, distance encodings, attention outputs and features while training; in [0, 1).
    """

    memory_length: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")


@dataclass(frozen=True, kw_only=True)
class GTrXLConfig(TransformerXLConfig):
    """Settings of the Gated Transformer-XL.

    Attributes:
        layers, heads, dim, mlp_dim, memory_length, dropout: See `TransformerXLConfig`.
        gate_bias: How strongly a gate keeps its input at the start; > 0, so that a new network is near the identity.
    """

    gate_bias: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gate_bias <= 0:
            raise ValueError(f"gate_bias must be > 0, got {self.gate_bias}")


class Gate(nn.Module):
    """A gated recurrent unit in place of a residual connection: y updates x.

    Args:
        dim: Width of both.
        bias: Subtracted from the input of the update gate.

    Source:
        Parisotto et al., GTrXL, section 3.2.
    """

    def __init__(self, dim: int, bias: float) -> None:
        super().__init__()
        self.of_y = nn.Linear(dim, 3 * dim, bias=False)  # reset gate, update gate, candidate
        self.of_x = nn.Linear(dim, 2 * dim, bias=False)
        self.of_reset_x = nn.Linear(dim, dim, bias=False)
        self.bias = nn.Parameter(torch.full((dim,), bias))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Update x by y, float (B, T, D) each."""
        reset_y, update_y, candidate_y = self.of_y(y).chunk(3, dim=-1)
        reset_x, update_x = self.of_x(x).chunk(2, dim=-1)
        reset = torch.sigmoid(reset_y + reset_x)
        update = torch.sigmoid(update_y + update_x - self.bias)
        candidate = torch.tanh(candidate_y + self.of_reset_x(reset * x))
        return (1.0 - update) * x + update * candidate


class RelativePositionBlock(TransformerBlock):
    """Block with attention by content and distance: score (q + u) k + (q + v) W_r r_d.

    r_d is the sinusoid of the distance d of key k; u and v are learned for each head.

    Args:
        config: Sizes.

    Source:
        Dai et al., "Transformer-XL", 2019, section 3.3.
    """

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__(config)
        self.distance = nn.Linear(config.dim, config.dim, bias=False)  # W_r
        self.content_bias = nn.Parameter(torch.empty(config.heads, 1, config.head_dim))  # u
        self.distance_bias = nn.Parameter(torch.empty(config.heads, 1, config.head_dim))  # v
        for weight in (self.distance.weight, self.content_bias, self.distance_bias):
            nn.init.normal_(weight, std=0.02)
        self.gates: nn.ModuleList | None = None  # after attention and after the MLP
        if isinstance(config, GTrXLConfig):
            self.gates = nn.ModuleList(Gate(config.dim, config.gate_bias) for _ in range(2))

    def join(self, x: Tensor, added: Tensor, part: int) -> Tensor:
        """Join the residual stream with the output of attention (part 0) or MLP (1)."""
        return x + added if self.gates is None else self.gates[part](x, F.relu(added))

    def attend(self, context: Tensor, encoding: Tensor, first: Tensor) -> Tensor:
        """Attend from the last steps to the M steps before each and to itself.

        Args:
            context: float, (B, M + T, D); hidden states of the M steps before, then of the T steps.
            encoding: float, (M + 1, D); of the distances M, M - 1, ..., 0.
            first: int64, (B, Q); index in `context` at which the trial of each of the last Q steps begins; negative if
                earlier.

        Returns:
            float, (B, heads, Q, width).
        """
        queries, reach = first.shape[1], len(encoding) - 1
        distances = self.distance(encoding).view(reach + 1, self.heads, self.head_dim).permute(1, 2, 0)
        if queries == 1:
            return self._attend_once(context[:, -reach - 1 :], distances, first - (context.shape[1] - reach - 1))
        q, new = self.project(context, None, queries)
        keys, values = new.unbind(1)  # (B, heads, M + T, width) each
        by_distance = (q + self.distance_bias) @ distances / self.head_dim**0.5  # (B, heads, Q, M + 1)
        q = q + self.content_bias
        parts = []
        for begin in range(0, queries, QUERY_BLOCK):
            end = min(queries, begin + QUERY_BLOCK)
            low = context.shape[1] - queries - reach + begin  # first key of the first query of this block
            high = low + reach + end - begin
            bias = _shift_to_keys(by_distance[:, :, begin:end])  # (B, heads, block, M + block)
            is_earlier_trial = torch.arange(low, high, device=first.device) < first[:, begin:end, None]
            bias = bias.masked_fill(is_earlier_trial[:, None], -torch.inf)
            k, v = keys[:, :, low:high], values[:, :, low:high]
            parts.append(attend(q[:, :, begin:end], k, v, causal=False, mask=bias))
        return torch.cat(parts, dim=2)

    def _attend_once(self, context: Tensor, distances: Tensor, first: Tensor) -> Tensor:
        """Attend from one step, to act. Takes time M D instead of M D^2: no key and no value is computed.

        A score is q W_k x for a key of input x, so W_k is applied to the query; the output is the sum of a_j W_v x_j,
        so W_v is applied to the sum.

        Args:
            context: float, (B, M + 1, D).
            distances: float, (heads, width, M + 1).
            first: int64, (B, 1); see `attend`.

        Returns:
            float, (B, heads, 1, width).
        """
        x = self.attention_norm(context)
        w_q, w_k, w_v = self.qkv.weight.view(3, self.heads, self.head_dim, -1)  # (heads, width, D) each
        q = torch.einsum("bd,hwd->bhw", x[:, -1], w_q)
        by_content = torch.einsum("bhw,hwd->bhd", q + self.content_bias[:, 0], w_k) @ x.mT  # (B, heads, M + 1)
        by_distance = torch.einsum("bhw,hwm->bhm", q + self.distance_bias[:, 0], distances)
        is_earlier_trial = torch.arange(x.shape[1], device=first.device) < first  # (B, M + 1)
        scores = (by_content + by_distance) / self.head_dim**0.5
        weights = scores.masked_fill(is_earlier_trial[:, None], -torch.inf).softmax(-1)
        return torch.einsum("bhd,hwd->bhw", weights @ x, w_v)[:, :, None]


def _shift_to_keys(scores: Tensor) -> Tensor:
    """Turn scores by distance, (..., Q, M + 1), into scores by key, (..., Q, M + Q); -inf outside the reach of a query.

    Row i moves i places to the right: the "relative shift" of Transformer-XL.
    """
    *batch, queries, columns = scores.shape
    padded = F.pad(scores, (0, queries), value=-torch.inf).flatten(-2)  # read in rows that are one entry shorter
    return padded[..., :-queries].view(*batch, queries, columns + queries - 1)


class TransformerXLMemory(Memory):
    r"""Transformer whose layers attend to a step and the `memory_length` steps before it.

    The state holds `hidden`, float (B, layers, M, D): inputs of each layer at the last M steps, through which no
    gradient flows. It spans the episodes of a trial, and nothing but the observations shows where an episode ends.
    After an optimiser step, keys and values are computed with the new weights, but from hidden states of the old ones.
    `prefill` again from an earlier state to recompute the hidden states too.

    Dropout is drawn from `generator` in each `forward` in training mode.

    Idea:
        Each layer attends to the inputs that it had at the last M steps of the trial, which are stored without
        gradient. Scores depend on content and on the distance in steps, not on absolute positions. Through L layers
        information comes from up to L M steps back, in a state of constant size.

    Equations:
        .. math::

            a_{tj} &= \operatorname{softmax}_j \big( ((q_t + u)^\top k_j + (q_t + v)^\top W_r r_{t-j}) / \sqrt{w} \big),
            \quad t - M \le j \le t \\
            y_t &= x_t + W_o \sum_j a_{tj} v_j \\
            x'_t &= y_t + W_d \, (\operatorname{GELU}(W_g \hat y_t) \odot W_u \hat y_t)

        q, k and v are projections of the normalised input of the layer, r is the sinusoid of a distance, u and v in
        the first row are learned biases of each head, and w is the width of a head. Gradients stop at stored inputs.

    State:
        The input of each layer at the last M steps: L M D numbers.

    Cost:
        A decision takes about L (4 D^2 + 3 D D_mlp + (2 heads + 1) M D) multiply-adds, and L M D^2 once for all
        sequences of the batch, for the distances. A pass over T steps takes about L T (4 D^2 + 3 D D_mlp + 3 M D) and
        L 3 M D^2 for the stored inputs and distances.

    When to use:
        Long or endless trials in which the newest few hundred steps matter, and as the baseline of `relic` with a
        state of constant size.

    When not to use:
        Where episodes must be distinguished: nothing but the observations shows where one ends.

    Difference from the paper:
        Each query has the same reach M; in the paper the reach grows within a segment. Layers are normalised before
        attention and have the gated MLP of ReLIC. In ReLIC's release this baseline sees an empty memory in every
        gradient pass; here it sees the one that acting saw. The gated form, `gtrxl`, replaces each sum with the
        residual stream by a gated recurrent unit of both, and rectifies what is added.

    Args:
        input_dim: Width of the embedding.
        config: Sizes and reach.

    Source:
        Dai et al., "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context", ACL 2019
        (arXiv:1901.02860); as a baseline in Elawady et al., "ReLIC", 2024 (arXiv:2410.02751). `gtrxl`: Parisotto et
        al., "Stabilizing Transformers for Reinforcement Learning", ICML 2020 (arXiv:1910.06764).
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
        """Act: one step of every sequence, without gradient and without dropout; see `Memory.step`."""
        features, state = self._run(x, state, 1, 0.0)
        return features[:, 0], state

    @torch.no_grad()
    def prefill(self, x: StepInputs, state: State, last: int | None = None) -> tuple[Tensor, State]:
        """Run `forward` without gradient and without dropout; see `Memory.prefill`."""
        return self._run(x, state, last, 0.0)

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case."""
        if state is None:
            state = self.initial_state(x.embedding.shape[0])
        return self._run(x, state, last, self.config.dropout if self.training else 0.0)

    def _run(self, x: StepInputs, state: State, last: int | None, dropout: float) -> tuple[Tensor, State]:
        """Return features of the last steps, float (B, `last` or T, D), and the state after them."""
        _, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        clock = StepClock.count(x.episode_start, x.trial_start, state)
        first = clock.trial_first + self.config.memory_length  # counted in a layer's context
        h = self._drop(self.input(x.embedding).to(self.output.weight.dtype), dropout)  # float32 also under autocast
        encoding = self._drop(self._encoding(), dropout)
        hidden = []
        for i, block in enumerate(self.blocks):
            assert isinstance(block, RelativePositionBlock)
            queries = n_last if i == self.config.layers - 1 else steps
            context = torch.cat([state["hidden"][:, i], h], dim=1)  # (B, M + T, D)
            hidden.append(context[:, steps:].detach())
            added = block.project_heads(block.attend(context, encoding, first[:, steps - queries :]))
            h = block.join(h[:, steps - queries :], self._drop(added, dropout), 0)
            h = block.join(h, block.mlp(h), 1)
        return self._drop(self.output(self.norm(h)), dropout), clock.after() | {"hidden": torch.stack(hidden, dim=1)}

    def _encoding(self) -> Tensor:
        """Sinusoids of the distances M, M - 1, ..., 0, float (M + 1, D)."""
        weight = self.output.weight
        exact = torch.promote_types(weight.dtype, torch.float32)  # half precision has no integers above 256
        distance = torch.arange(self.config.memory_length, -1, -1, device=weight.device, dtype=exact)
        return sinusoid(distance, self.config.dim).to(weight.dtype)

    def _drop(self, x: Tensor, probability: float) -> Tensor:
        """Dropout with the memory's own generator; entries that stay are scaled so that the mean stays."""
        if probability == 0.0:
            return x
        keep = torch.empty(x.shape).bernoulli_(1.0 - probability, generator=self.generator)
        return x * (keep / (1.0 - probability)).to(x)
