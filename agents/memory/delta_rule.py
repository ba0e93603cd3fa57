"""Matrices as memory, written and read by keys: the gated delta rule and mLSTM."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import State
from memenvs.agents.memory.residual import Recurrence, ResidualConfig, ResidualMemory, exact_dtype

CHUNK = 32
"""Steps that are computed at once; the matrix is passed on from chunk to chunk."""


@dataclass(frozen=True, kw_only=True)
class GatedDeltaConfig(ResidualConfig):
    """Settings of Gated DeltaNet.

    Attributes:
        layers, dim, mlp_dim: See `ResidualConfig`.
        heads: Matrices of each layer; divides `dim`.
    """

    heads: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % self.heads:
            raise ValueError(f"dim must be a multiple of heads ({self.heads}), got {self.dim}")


@dataclass(frozen=True, kw_only=True)
class MLSTMConfig(GatedDeltaConfig):
    """Settings of mLSTM.

    Attributes:
        layers, dim, mlp_dim, heads: See `GatedDeltaConfig`.
    """


@dataclass(frozen=True)
class Decay:
    """Products of gates between the C steps of each of n chunks.

    Resets cut a chunk into segments.

    Attributes:
        log_between: float, (B, heads, n, C, C); log of the product of the gates of steps s + 1 ... t at [t, s]; -inf
            where step t does not follow s or a reset lies between.
        log_carry: float, (B, heads, n, C); the same from before the chunk to t; -inf from the first reset on.
    """

    log_between: Tensor
    log_carry: Tensor

    @staticmethod
    def of(log_keep: Tensor, resets: Tensor) -> Decay:
        """Measure the decay.

        Args:
            log_keep: float, (B, heads, n, C); log of the gate of each step, <= 0.
            resets: bool, (B, n, C).
        """
        total = log_keep.cumsum(-1)  # of resets too: these sums are masked below
        segment = resets.cumsum(-1)[:, None]  # (B, 1, n, C)
        steps = total.shape[-1]
        is_earlier = torch.ones(steps, steps, dtype=torch.bool, device=total.device).tril()
        is_visible = is_earlier & (segment[..., :, None] == segment[..., None, :])
        between = (total[..., :, None] - total[..., None, :]).masked_fill(~is_visible, -torch.inf)
        return Decay(between, total.masked_fill(segment > 0, -torch.inf))


class MatrixRecurrence(Recurrence):
    """Heads with a matrix each.

    A step writes a value under a key, and reads by a query.

    Args:
        config: Sizes.
    """

    nothing: float
    """Second result of `gates` for a step that writes nothing."""

    def __init__(self, config: GatedDeltaConfig) -> None:
        super().__init__()
        self.heads, self.width = config.heads, config.dim // config.heads
        self.projection = nn.Linear(config.dim, 4 * config.dim, bias=False)  # query, key, value, gate of the output
        self.keep_write = nn.Linear(config.dim, 2 * config.heads)
        self.norm = nn.RMSNorm(self.width, eps=1e-6)
        self.output = nn.Linear(config.dim, config.dim, bias=False)

    @abc.abstractmethod
    def gates(self, keep: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log of the share that a step keeps, and how much it writes.

        Args:
            keep: float, (B, T, heads).
            write: float, (B, T, heads).
        """

    @abc.abstractmethod
    def vectors(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value from their projections, float (B, T, heads, width) each."""

    @abc.abstractmethod
    def run(self, q: Tensor, k: Tensor, v: Tensor, write: Tensor, decay: Decay, state: State) -> tuple[Tensor, State]:
        """Run n chunks of C steps.

        Args:
            q: float, (B, heads, n, C, width).
            k: float, (B, heads, n, C, width).
            v: float, (B, heads, n, C, width of a value).
            write: float, (B, heads, n, C).
            decay: Between these steps.
            state: Before the first step.

        Returns:
            What the queries read, float (B, heads, n, C, width), and the state after the last step.
        """

    def forward(self, x: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """See `Recurrence.forward`."""
        steps = x.shape[1]
        *qkv, out_gate = self.projection(x).unflatten(-1, (4, self.heads, self.width)).unbind(2)
        keep, write = self.keep_write(x).unflatten(-1, (2, self.heads)).unbind(2)  # (B, T, heads) each
        dtype = exact_dtype(x)
        with torch.autocast(x.device.type, enabled=False):
            log_keep, write = self.gates(keep.to(dtype), write.to(dtype))
            q, k, v = self.vectors(*(part.to(dtype) for part in qkv))
            length = min(steps, CHUNK)
            padding = -steps % length  # steps after the last one, which keep everything and write nothing
            q, k, v, log_keep, write = (
                F.pad(part.transpose(1, 2), (0, 0) * (part.ndim - 3) + (0, padding), value=value).unflatten(
                    2, (-1, length)
                )
                for part, value in ((q, 0.0), (k, 0.0), (v, 0.0), (log_keep, 0.0), (write, self.nothing))
            )
            decay = Decay.of(log_keep, F.pad(resets, (0, padding)).unflatten(1, (-1, length)))
            read, state = self.run(q, k, v, write, decay, state)
            read = read.flatten(2, 3)[:, :, :steps].transpose(1, 2)  # (B, T, heads, width)
        read = self.norm(read.to(x.dtype)) * F.silu(out_gate)
        return self.output(read.flatten(2)), state


class GatedDelta(MatrixRecurrence):
    """S <- a S, then what is under the key moves toward the value: S <- S + k b (v - S^T k)^T."""

    nothing = 0.0

    def __init__(self, config: GatedDeltaConfig) -> None:
        super().__init__(config)
        # As in Mamba-2: rates of decay between 1 and 16, times steps between .001 and .1.
        self.log_rate = nn.Parameter(torch.empty(config.heads).uniform_(1.0, 16.0).log())
        dt = torch.empty(config.heads).uniform_(math.log(0.001), math.log(0.1)).exp()
        with torch.no_grad():
            self.keep_write.bias[: config.heads] = dt + torch.log(-torch.expm1(-dt))  # softplus of it is dt
            self.keep_write.bias[config.heads :] = 0.0

    def initial_state(self, batch_size: int) -> State:
        """Zeros, (B, heads, width, width)."""
        weight = self.output.weight
        shape = (batch_size, self.heads, self.width, self.width)
        return {"matrix": weight.new_zeros(shape, dtype=exact_dtype(weight))}

    def gates(self, keep: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
        """See `MatrixRecurrence.gates`."""
        return -self.log_rate.to(keep.dtype).exp() * F.softplus(keep), torch.sigmoid(write)

    def vectors(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `MatrixRecurrence.vectors`."""
        q, k = (F.normalize(F.silu(part), dim=-1, eps=1e-6) for part in (q, k))
        return q / self.width**0.5, k, F.silu(v)

    def run(self, q: Tensor, k: Tensor, v: Tensor, write: Tensor, decay: Decay, state: State) -> tuple[Tensor, State]:
        """See `MatrixRecurrence.run`.

        With S the matrix before a chunk, D the decay, c the carry and b the share that is written, step t writes
        u_t = b_t (v_t - c_t S^T k_t - sum over s < t of D_ts (k_s k_t) u_s). These C equations are a triangular system,
        whose solution is linear in S: u = w - W S.
        """
        between, carry, write = decay.log_between.exp(), decay.log_carry.exp()[..., None], write[..., None]
        right = torch.cat([write * v, write * carry * k], -1)
        overlaps = (write * k) @ k.mT * between
        solved = torch.linalg.solve_triangular(overlaps, right, upper=False, unitriangular=True)
        own, of_matrix = (part.unbind(2) for part in solved.split(self.width, -1))
        last_keys = (k * between[..., -1, :, None]).mT.unbind(2)
        matrix = state["matrix"]
        before, written = [], []
        for i, last_carry in enumerate(carry[..., -1:, :].unbind(2)):
            before.append(matrix)
            written.append(own[i] - of_matrix[i] @ matrix)
            matrix = last_carry * matrix + last_keys[i] @ written[i]
        read = carry * (q @ torch.stack(before, 2)) + ((q @ k.mT) * between) @ torch.stack(written, 2)
        return read, {"matrix": matrix}


class MLSTM(MatrixRecurrence):
    """C <- f C + i k v^T and n <- f n + i k, read as C^T q / max(|n q|, 1).

    The matrix has a further column for n. Both are divided by exp(`log_scale`), because the gate i has no bound.
    """

    nothing = -math.inf

    def __init__(self, config: GatedDeltaConfig) -> None:
        super().__init__(config)
        with torch.no_grad():
            self.keep_write.bias[: config.heads] = torch.linspace(3.0, 6.0, config.heads)  # keeps 95 to 99.8 % a step
            self.keep_write.bias[config.heads :].normal_(std=0.1)

    def initial_state(self, batch_size: int) -> State:
        """Zeros: matrix and n, (B, heads, width, width + 1), and the log of their scale, (B, heads)."""
        weight = self.output.weight
        matrix = weight.new_zeros(batch_size, self.heads, self.width, self.width + 1, dtype=exact_dtype(weight))
        return {"matrix": matrix, "log_scale": matrix[..., 0, 0].clone()}

    def gates(self, keep: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
        """See `MatrixRecurrence.gates`; the second is the log of i."""
        return F.logsigmoid(keep), write

    def vectors(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `MatrixRecurrence.vectors`; the value has a 1 for n behind it."""
        return q, k / self.width**0.5, F.pad(v, (0, 1), value=1.0)

    def run(self, q: Tensor, k: Tensor, v: Tensor, write: Tensor, decay: Decay, state: State) -> tuple[Tensor, State]:
        """See `MatrixRecurrence.run`."""
        log_weight = decay.log_between + write[..., None, :]  # (B, heads, n, C, C)
        log_scale, scales = self._scales(log_weight.amax(-1), decay.log_carry, state["log_scale"])
        weight = (log_weight - scales[..., None]).exp()
        carry = (decay.log_carry + log_scale[..., None] - scales).exp()[..., None]  # (B, heads, n, C, 1)
        added = ((k * weight[..., -1, :, None]).mT @ v).unbind(2)
        matrix = state["matrix"]
        before = []
        for i, last_carry in enumerate(carry[..., -1:, :].unbind(2)):
            before.append(matrix)
            matrix = last_carry * matrix + added[i]
        read = carry * (q @ torch.stack(before, 2)) + ((q @ k.mT) * weight) @ v
        read, total = read[..., :-1], read[..., -1:]
        read = read / torch.maximum(total.abs(), (-scales[..., None]).exp())
        return read, {"matrix": matrix, "log_scale": scales[:, :, -1, -1]}

    @staticmethod
    @torch.no_grad()
    def _scales(largest: Tensor, log_carry: Tensor, log_scale: Tensor) -> tuple[Tensor, Tensor]:
        """Choose scales so that no weight exceeds 1.

        What is read does not depend on them, nor does any gradient.

        Args:
            largest: float, (B, heads, n, C); log of the largest weight of a step of the chunk.
            log_carry: float, (B, heads, n, C).
            log_scale: float, (B, heads); of the matrix before the first chunk.

        Returns:
            Log of the scale of the matrix before each chunk, (B, heads, n), and at each step, (B, heads, n, C).
        """
        before, scales = [], []
        for i in range(largest.shape[2]):
            before.append(log_scale)
            scales.append(torch.maximum(largest[:, :, i], log_carry[:, :, i] + log_scale[..., None]))
            log_scale = scales[-1][..., -1]
        return torch.stack(before, 2), torch.stack(scales, 2)


class MatrixMemory(ResidualMemory):
    r"""Layers with matrices as memory: Gated DeltaNet or mLSTM.

    Idea:
        Each head has a matrix. A step writes a value under a key and reads what is under its query. The delta rule
        first reads what is under the key already and writes the difference, so that a new value replaces the old one. A
        gate fades the whole matrix. mLSTM adds values without reading, and weighs each by a gate without bound. Within
        32 steps everything is a product of matrices or the solution of a triangular system, so these are learned at
        once. Where a trial starts the matrix is empty.

    Equations:
        .. math::

            \text{Gated DeltaNet:}\quad S_t &= \alpha_t S_{t-1} + \beta_t k_t (v_t - \alpha_t S_{t-1}^\top k_t)^\top,\;
            o_t = S_t^\top q_t \\
            \alpha_t &= \exp(-A \operatorname{softplus}(w_\alpha x_t + b)),\; \beta_t = \sigma(w_\beta x_t) \\
            \text{mLSTM:}\quad C_t &= f_t C_{t-1} + i_t k_t v_t^\top,\; n_t = f_t n_{t-1} + i_t k_t,\;
            o_t = C_t^\top q_t / \max(|n_t^\top q_t|, 1) \\
            f_t &= \sigma(w_f x_t + b_f),\; i_t = \exp(w_i x_t + b_i) \\
            y_t &= W_o \, (\operatorname{norm}(o_t) \odot \operatorname{SiLU}(W_g x_t))

        x is the normalised residual stream of a layer, to which y is added; a gated MLP follows.

    State:
        The matrices of each layer: D^2 / heads numbers, in mLSTM D + heads more.

    Cost:
        A step takes about L (5 D^2 + 3 D^2 / heads + 3 D D_mlp) multiply-adds, however long the past is. A sequence of
        T steps needs T / 32 parts after each other.

    When to use:
        Long or endless trials in which many facts must be recalled by content, and facts that change: the delta rule
        overwrites the value of a key.

    When not to use:
        On tasks where a single vector is enough; `mingru` is smaller and faster. Where every step must be recalled
        exactly, attention over all steps forgets none.

    Difference from the paper:
        No short convolutions before q, k and v, so that the state is the matrix alone. Layers are the residual blocks
        of this package. mLSTM's output is gated and normalised like that of Gated DeltaNet.

    Args:
        input_dim: Width of the embedding.
        config: Sizes; its class chooses the rule.

    Source:
        Yang, Kautz and Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule", ICLR 2025
        (arXiv:2412.06464); Beck et al., "xLSTM: Extended Long Short-Term Memory", NeurIPS 2024 (arXiv:2405.04517).
    """

    def __init__(self, input_dim: int, config: GatedDeltaConfig) -> None:
        recurrence = MLSTM if isinstance(config, MLSTMConfig) else GatedDelta
        super().__init__(input_dim, config, [recurrence(config) for _ in range(config.layers)])
