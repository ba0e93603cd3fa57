"""Linear recurrences h <- a h + b, computed for all steps by one scan: minGRU, LRU and S5."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import State
from memenvs.agents.memory.residual import Recurrence, ResidualConfig, ResidualMemory, exact_dtype

SHORT = 16
"""Steps up to which a scan is a plain loop."""


def linear_scan(a: Tensor, b: Tensor, initial: Tensor) -> Tensor:
    """Compute h_t = a_t h_{t-1} + b_t for all t.

    Args:
        a: float or complex, (B, T, N); 0 where the past is forgotten.
        b: float or complex, (B, T, N).
        initial: float or complex, (B, N); h before the first step.

    Returns:
        h, (B, T, N).
    """
    b = torch.cat([b[:, :1] + a[:, :1] * initial[:, None], b[:, 1:]], 1)
    return _LinearScan.apply(a, b)


class _LinearScan(torch.autograd.Function):
    """The scan from h = 0. Its gradient is a scan too, from the last step to the first."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        h = _scan(a.clone(), b.clone())
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, h = ctx.saved_tensors
        # d_t = grad_t + conj(a_{t+1}) d_{t+1} is the gradient of b_t, and d_t conj(h_{t-1}) that of a_t.
        following = F.pad(a[:, 1:], (0, 0, 0, 1)).conj_physical().flip(1)
        d = _scan(following.contiguous(), grad.flip(1).contiguous()).flip(1)
        return d * F.pad(h[:, :-1], (0, 0, 1, 0)).conj_physical(), d


def _scan(a: Tensor, b: Tensor) -> Tensor:
    """Scan from 0, in place.

    The steps are cut into chunks of about sqrt(T) steps. All chunks run side by side, each from 0. Their last h are
    scanned in turn, and what a chunk starts from is then added to its steps. With T = 6 and chunks of 3::

        b of the steps              b0  b1  b2 | b3  b4  b5
        each chunk from 0           h0  h1  h2 | g3  g4  g5
        products of a               a0  a1a0 .. | a3  a4a3  a5a4a3
        what the second adds                     h2 a3, h2 a4 a3, h2 a5 a4 a3

    Args:
        a: (B, T, N); overwritten.
        b: (B, T, N); overwritten, by h unless it had to be padded.

    Returns:
        h, (B, T, N).
    """
    steps = b.shape[1]
    if steps <= SHORT:
        for t in range(1, steps):
            b[:, t].addcmul_(a[:, t], b[:, t - 1])
        return b
    length = math.ceil(math.sqrt(steps))
    padding = -steps % length  # steps after the last one, on which no result depends
    a, b = (F.pad(x, (0, 0, 0, padding)).unflatten(1, (-1, length)) for x in (a, b))  # (B, chunks, length, N)
    for t in range(1, length):
        b[:, :, t].addcmul_(a[:, :, t], b[:, :, t - 1])
        a[:, :, t].mul_(a[:, :, t - 1])
    ends = _scan(a[:, :, -1].contiguous(), b[:, :, -1].contiguous())  # (B, chunks, N)
    b[:, 1:].addcmul_(a[:, 1:], ends[:, :-1, None])
    return b.flatten(1, 2)[:, :steps]


@dataclass(frozen=True, kw_only=True)
class MinGRUConfig(ResidualConfig):
    """Settings of minGRU.

    Attributes:
        layers, dim, mlp_dim: See `ResidualConfig`.
    """


@dataclass(frozen=True, kw_only=True)
class LRUConfig(ResidualConfig):
    """Settings of the Linear Recurrent Unit.

    Attributes:
        layers, dim, mlp_dim: See `ResidualConfig`.
        r_min: Smallest absolute value of an eigenvalue at the start; in [0, r_max).
        r_max: Largest one; in (r_min, 1). Near 1 a number fades slowly: half is gone after log(.5) / log(r) steps.
    """

    r_min: float = 0.9
    r_max: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.r_min < self.r_max < 1:
            raise ValueError(f"r_min and r_max must be 0 <= r_min < r_max < 1, got {self.r_min} and {self.r_max}")


@dataclass(frozen=True, kw_only=True)
class S5Config(ResidualConfig):
    """Settings of S5.

    Attributes:
        layers, dim, mlp_dim: See `ResidualConfig`.
        dt_min: Smallest step size at the start; > 0. A small one keeps for long.
        dt_max: Largest one; > 0, above dt_min.
    """

    dt_min: float = 0.001
    dt_max: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.dt_min < self.dt_max:
            raise ValueError(f"dt_min and dt_max must be 0 < dt_min < dt_max, got {self.dt_min} and {self.dt_max}")


class MinGRU(Recurrence):
    """h <- (1 - z) h + z c, where the gate z and the candidate c depend on the step alone."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate_candidate = nn.Linear(dim, 2 * dim)
        self.output = nn.Linear(dim, dim)

    def initial_state(self, batch_size: int) -> State:
        """Zeros, (B, D)."""
        weight = self.output.weight
        return {"hidden": weight.new_zeros(batch_size, weight.shape[1], dtype=exact_dtype(weight))}

    def forward(self, x: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """See `Recurrence.forward`."""
        gate, candidate = self.gate_candidate(x).to(exact_dtype(x)).chunk(2, dim=-1)
        keep = torch.sigmoid(-gate) * ~resets[..., None]  # 1 - z
        h = linear_scan(keep, torch.sigmoid(gate) * candidate, state["hidden"])
        return self.output(h.to(x.dtype)), {"hidden": h[:, -1]}


class DiagonalRecurrence(Recurrence):
    """h <- lambda h + s B x with complex numbers, and 2 Re(C h) + d x as output.

    lambda does not depend on the step.

    Args:
        dim: Width D of inputs and outputs, and number N of complex numbers in h.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.to_state = nn.Linear(dim, 2 * dim, bias=False)  # B, real parts before imaginary ones
        self.from_state = nn.Linear(2 * dim, dim, bias=False)  # C, the same
        self.skip = nn.Parameter(torch.ones(dim))

    @abc.abstractmethod
    def eigenvalues(self) -> tuple[Tensor, Tensor]:
        """Return lambda and the scale s of the input, complex (N,) each."""

    def initial_state(self, batch_size: int) -> State:
        """Zeros, (B, N, 2): real and imaginary parts."""
        return {"hidden": self.skip.new_zeros(batch_size, len(self.skip), 2, dtype=exact_dtype(self.skip))}

    def forward(self, x: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """See `Recurrence.forward`."""
        eigenvalues, scale = self.eigenvalues()
        real, imaginary = self.to_state(x).to(exact_dtype(x)).chunk(2, dim=-1)
        h = linear_scan(
            eigenvalues * ~resets[..., None],
            scale * torch.complex(real, imaginary),
            torch.view_as_complex(state["hidden"].contiguous()),
        )
        out = self.from_state(torch.cat([h.real, -h.imag], -1).to(x.dtype))  # Re(C h)
        return 2.0 * out + self.skip * x, {"hidden": torch.view_as_real(h[:, -1])}


class LRU(DiagonalRecurrence):
    """Eigenvalues exp(-exp(nu) + i exp(theta)); inputs scaled so that h varies like B x."""

    def __init__(self, config: LRUConfig) -> None:
        super().__init__(config.dim)
        # uniform in the ring between r_min and r_max
        radius = (torch.rand(config.dim) * (config.r_max**2 - config.r_min**2) + config.r_min**2).sqrt()
        self.nu = nn.Parameter((-radius.log()).log())
        self.theta = nn.Parameter((2.0 * math.pi * torch.rand(config.dim).clamp(min=1e-3)).log())

    def eigenvalues(self) -> tuple[Tensor, Tensor]:
        """See `DiagonalRecurrence.eigenvalues`."""
        nu, theta = (x.to(exact_dtype(x)) for x in (self.nu, self.theta))
        eigenvalues = torch.polar((-nu.exp()).exp(), theta.exp())
        scale = (1.0 - (-2.0 * nu.exp()).exp()).sqrt()
        return eigenvalues, scale.to(eigenvalues.dtype)


class S5(DiagonalRecurrence):
    """Eigenvalues of a continuous system, at first HiPPO's, whose input stays for a step."""

    def __init__(self, config: S5Config) -> None:
        super().__init__(config.dim)
        eigenvalues = torch.from_numpy(hippo_eigenvalues(config.dim)).to(torch.complex64)
        self.decay = nn.Parameter((-eigenvalues.real).log())
        self.frequency = nn.Parameter(eigenvalues.imag.clone())
        low, high = math.log(config.dt_min), math.log(config.dt_max)
        self.log_dt = nn.Parameter(low + (high - low) * torch.rand(config.dim))

    def eigenvalues(self) -> tuple[Tensor, Tensor]:
        """See `DiagonalRecurrence.eigenvalues`."""
        decay, frequency, log_dt = (x.to(exact_dtype(x)) for x in (self.decay, self.frequency, self.log_dt))
        continuous = torch.complex(-decay.exp(), frequency)
        discrete = (continuous * log_dt.exp()).exp()
        return discrete, (discrete - 1.0) / continuous


def hippo_eigenvalues(count: int) -> np.ndarray:
    """Return eigenvalues of the normal part of HiPPO-LegS, those with positive frequency.

    HiPPO-LegS writes a history as Legendre polynomials; its matrix is a normal one plus one of rank 1.

    Args:
        count: Number of eigenvalues.

    Returns:
        complex, (count,); real parts -1/2.

    Source:
        Gu et al., "HiPPO", NeurIPS 2020; Smith et al., "S5", 2023, appendix B.
    """
    root = np.sqrt(2.0 * np.arange(2 * count) + 1.0)
    lower = np.tril(root[:, None] * root[None], -1)
    skew = (lower.T - lower) / 2.0  # the normal part is -I/2 + skew
    frequencies = np.linalg.eigvalsh(-1j * skew)
    return -0.5 + 1j * frequencies[frequencies > 0]


class LinearRecurrenceMemory(ResidualMemory):
    r"""Layers of a linear recurrence: minGRU, the Linear Recurrent Unit (LRU) or S5.

    Idea:
        The state changes linearly, h <- a h + b, where a and b do not depend on h. Such steps can be grouped in any
        order, so all steps of a sequence are learned at once, and acting needs the last h alone. Where a trial starts,
        a is 0. What h cannot do within a layer, such as comparing two past steps, further layers do.

    Equations:
        .. math::

            h_t &= a_t \odot h_{t-1} + b_t \\
            \text{minGRU:}\quad z_t &= \sigma(W_z x_t + b_z),\; a_t = 1 - z_t,\; b_t = z_t \odot (W_h x_t + b_h),\;
            y_t = W_o h_t + b_o \\
            \text{LRU, S5:}\quad a_t &= \lambda,\; b_t = s \odot B x_t,\; y_t = 2\,\mathrm{Re}(C h_t) + d \odot x_t \\
            \text{LRU:}\quad \lambda &= \exp(-e^\nu + i e^\theta),\; s = \sqrt{1 - |\lambda|^2} \\
            \text{S5:}\quad \lambda &= \exp(\mu \Delta),\; s = (\lambda - 1) / \mu,\; \mu = -e^\rho + i \omega

        x is the normalised residual stream of a layer, to which y is added; a gated MLP follows. In LRU and S5, h is
        complex.

    State:
        h of each layer: D numbers, in LRU and S5 2 D.

    Cost:
        A step takes L (3 D^2 + 3 D D_mlp) multiply-adds in minGRU and L (4 D^2 + 3 D D_mlp) in the others, however long
        the past is. A sequence of T steps needs about 2 sqrt(T) operations after each other, not T.

    When to use:
        Long or endless trials: the state does not grow, and all steps of a sequence are learned at once. On a CPU that
        is about as fast as an LSTM. `mingru` chooses by its input what to keep. `lru` and `s5` fade at fixed rates.

    When not to use:
        Where many separate facts must be recalled in detail; the state is one vector per layer. Where what to keep
        depends on what is kept already: the gates do not read h.

    Difference from the paper:
        Each layer is the residual block of this package: RMSNorm and a gated MLP. minGRU's candidate may be negative,
        as in its simpler form, which needs no logarithms here. The LRU is not normalised at its input. S5 has one block
        of eigenvalues, and random B and C. Trials that start within a sequence empty the state, as in Lu et al.,
        "Structured State Space Models for In-Context Reinforcement Learning", 2023.

    Args:
        input_dim: Width of the embedding.
        config: Sizes; its class chooses the recurrence.

    Source:
        Feng et al., "Were RNNs All We Needed?", 2024 (arXiv:2410.01201); Orvieto et al., "Resurrecting Recurrent Neural
        Networks for Long Sequences", 2023 (arXiv:2303.06349); Smith et al., "Simplified State Space Layers for Sequence
        Modeling", 2023 (arXiv:2208.04933).
    """

    def __init__(self, input_dim: int, config: MinGRUConfig | LRUConfig | S5Config) -> None:
        def make() -> Recurrence:
            if isinstance(config, LRUConfig):
                return LRU(config)
            return S5(config) if isinstance(config, S5Config) else MinGRU(config.dim)

        super().__init__(input_dim, config, [make() for _ in range(config.layers)])
