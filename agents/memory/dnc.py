"""Differentiable neural computer: an LSTM that writes to memory cells and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.linalg import vecdot
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps, step_ranges
from memenvs.agents.sizes import check_sizes

COSINE_EPS = 1e-6
"""Added to the product of two norms, so that the similarity to a cell of zeros is 0, not NaN."""


@dataclass(frozen=True, kw_only=True)
class DNCConfig:
    """Settings of a differentiable neural computer.

    Attributes:
        hidden_dim: Width H of the controller's hidden state; >= 1.
        cells: Cells of the memory, N; >= 1.
        cell_dim: Width W of a cell; >= 1.
        read_heads: Read heads, R; >= 1. There is one write head.
        links: Whether there are temporal links: N x N numbers per sequence, the most costly part. Without them, reads
            are by content alone.
        checkpoint: Length of segments for gradient checkpointing, steps; >= 1. Only the state at the start of each
            segment is stored, and one segment at a time is computed again in the backward pass. None stores all steps.
    """

    hidden_dim: int = 128
    cells: int = 288
    cell_dim: int = 128
    read_heads: int = 4
    links: bool = True
    checkpoint: int | None = 24

    def __post_init__(self) -> None:
        check_sizes(self)

    @property
    def interface_parts(self) -> dict[str, int]:
        """Width of each part of the interface vector, in order.

        The sum is R W + 3 W + 5 R + 3 with links, 3 R less without.
        """
        heads, width = self.read_heads, self.cell_dim
        parts = {
            "read_keys": heads * width,
            "read_strengths": heads,
            "write_key": width,
            "write_strength": 1,
            "erase": width,
            "write_vector": width,
            "free_gates": heads,
            "allocation_gate": 1,
            "write_gate": 1,
        }
        return parts | {"read_modes": 3 * heads} if self.links else parts


class DNCMemory(Memory):
    r"""DNC: an LSTM that writes to memory cells and reads them by content or order of writing.

    Idea:
        An LSTM controls N memory cells. At each step it writes once, to a free cell or to one with similar content, and
        reads with R heads, by similarity to a key or along the order of writing. So it decides by itself what to keep
        and where.

    Equations:
        .. math::

            u_t &= (u + w - u \odot w) \odot \textstyle\prod_i (1 - f_i a_i) \\
            w_t &= g_w (g_a \operatorname{alloc}(u_t) + (1 - g_a) \operatorname{content}(M, k_w)) \\
            M_t &= M \odot (1 - w_t e^\top) + w_t v^\top \\
            L_t[i, j] &= (1 - w_t[i] - w_t[j]) L[i, j] + w_t[i]\, p[j] \\
            p_t &= (1 - \textstyle\sum_i w_t[i])\, p + w_t \\
            a_{i,t} &= m_{i,1} L_t^\top a_i + m_{i,2} \operatorname{content}(M_t, k_i) + m_{i,3} L_t a_i \\
            r_{i,t} &= M_t^\top a_{i,t}

        The hidden state is h = LSTM([x; r]), with the read vectors r of the step before; features are [h; r]. M are the
        cells, u the usage (written cells are used, read ones may be freed), w the write weights, L the temporal links
        (cell i was written right after cell j), p the precedence, a the weights of a read head. The keys k, gates g
        and f, read modes m (backward, by content, forward), erase vector e and write vector v are a linear map of h.
        Symbols without t are those of step t - 1, except for those of this linear map.

    State:
        The cells, N W numbers, the links, N^2, and vectors of the LSTM and of the last read and write. All are zero at
        the start. The size is constant.

    Cost:
        A step takes about 4 H (I + R W + H) multiply-adds for the LSTM, (2 R + 6) N W for the cells and (2 R + 3) N^2
        for the links, with I inputs. Steps are learned one after the other. Only the state at the start of each segment
        of `checkpoint` steps is kept for the backward pass, and the steps between are computed again.

    When to use:
        As the classical memory that learns to write, or where a state of constant size must keep separate facts.

    When not to use:
        Where time is short: a batch takes many times as long as with attention to tokens, and whether a run learns
        differs by seed.

    Difference from the paper:
        `calibrate` offers initial weights with which writes go to free cells and reads find similar content; with
        PyTorch's it learns late or not at all. `links=False` leaves out the temporal links. Sizes are those of the
        Spatially-Aware Transformer's paper, D.6.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, whether there are links, gradient checkpointing.

    Source:
        Graves et al., "Hybrid computing using a neural network with dynamic external memory", Nature 2016
        (doi:10.1038/nature20101), methods; as a baseline in Cho, Yoon and Ahn, "Spatially-Aware Transformer for
        Embodied Agents", ICLR 2024 (arXiv:2402.15160).
    """

    def __init__(self, input_dim: int, config: DNCConfig) -> None:
        super().__init__()
        self.config = config
        read_dim = config.read_heads * config.cell_dim
        self.input_dim, self.output_dim = input_dim, config.hidden_dim + read_dim
        self.controller = nn.LSTMCell(input_dim + read_dim, config.hidden_dim)
        self.interface = nn.Linear(config.hidden_dim, sum(config.interface_parts.values()))

    @torch.no_grad()
    def calibrate(self) -> None:
        """Change the initial weights so that writes go to free cells and reads find similar content.

        With PyTorch's initial weights, half of each write is spread over all cells and a read is the mean of all cells.
        Contents then cannot be distinguished, and the DNC learns late or not at all. Here, keys start with the weights
        of the write vector: an input reads what was written for similar inputs.
        """
        parts = self._split(torch.arange(self.interface.out_features))  # rows of the interface layer, by part
        weight, bias = self.interface.weight, self.interface.bias
        for keys in (parts["write_key"], *parts["read_keys"].chunk(self.config.read_heads)):
            weight[keys] = weight[parts["write_vector"]]
            bias[keys] = bias[parts["write_vector"]]
        for name in ("read_strengths", "write_strength"):
            bias[parts[name]] += 8.0  # oneplus(8) = 9: a cosine of 1 weighs e^9 times as much as one of 0
        for name in ("write_gate", "allocation_gate"):
            bias[parts[name]] += 3.0  # sigmoid(3) = 0.95

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return zeros; see `Memory.initial_state`.

        Returns:
            `hidden` and `cell` of the LSTM, (B, H); `memory`, (B, N, W); `usage`, (B, N); `write_weights`, (B, N),
            `read_weights`, (B, R, N), and `read_vectors`, (B, R W), of the last step. With links also `precedence`,
            (B, N), and `link`, (B, N, N).
        """
        config, like = self.config, self.interface.weight
        cells, heads = config.cells, config.read_heads
        shapes: dict[str, tuple[int, ...]] = {
            "hidden": (config.hidden_dim,),
            "cell": (config.hidden_dim,),
            "memory": (cells, config.cell_dim),
            "usage": (cells,),
            "write_weights": (cells,),
            "read_weights": (heads, cells),
            "read_vectors": (heads * config.cell_dim,),
        }
        if config.links:
            shapes |= {"precedence": (cells,), "link": (cells, cells)}
        return {name: like.new_zeros(batch_size, *shape) for name, shape in shapes.items()}

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Process T steps in turn, in the precision of the weights; see `Memory.forward`."""
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        resets = x.trial_start
        stride = self.config.checkpoint if torch.is_grad_enabled() else None
        features = []
        with torch.autocast(x.embedding.device.type, enabled=False):
            embedding = x.embedding.to(self.interface.weight.dtype)
            for begin, end in step_ranges(steps, stride):
                segment = embedding[:, begin:end], resets[:, begin:end], state
                if end - begin < steps:
                    new, state = checkpoint(self._run, *segment, use_reentrant=False, preserve_rng_state=False)
                else:  # a single segment would only be computed twice
                    new, state = self._run(*segment)
                features.append(new)
        return torch.cat(features, 1)[:, steps - n_last :], state

    def _run(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the steps of a segment in turn.

        Args:
            embedding: float, (B, T, D_in).
            resets: bool, (B, T).
            state: State before the first step.

        Returns:
            Features, float (B, T, D), and the state after the last step.
        """
        features = []
        for t, any_reset in enumerate(resets.any(0).tolist()):
            if any_reset:
                keep = ~resets[:, t]  # (B,); the state before the first step of a sequence is zero
                state = {name: value * keep.view(-1, *[1] * (value.dim() - 1)) for name, value in state.items()}
            state = self._advance(embedding[:, t], state)
            features.append(torch.cat([state["hidden"], state["read_vectors"]], -1))
        return torch.stack(features, 1), state

    def _advance(self, x: Tensor, state: State) -> State:
        """Return the state after one step; x is float, (B, D_in)."""
        config = self.config
        memory = state["memory"]
        old_read = state["read_weights"]  # (B, R, N)
        hidden, cell = self.controller(torch.cat([x, state["read_vectors"]], -1), (state["hidden"], state["cell"]))
        part = self._split(self.interface(hidden))

        # Usage: the last write raises it; free gates release the cells that were read last.
        retention = (part["free_gates"].sigmoid()[..., None] * old_read).neg().add(1.0).prod(1)  # (B, N)
        usage = (state["usage"] + state["write_weights"] - state["usage"] * state["write_weights"]) * retention

        # Write: the allocation gate blends free cells and cells with similar content.
        by_content = content_addressing(memory, part["write_key"][:, None], oneplus(part["write_strength"]))[:, 0]
        allocation_gate = part["allocation_gate"].sigmoid()  # (B, 1)
        write_weights = part["write_gate"].sigmoid() * (
            allocation_gate * allocation(usage) + (1.0 - allocation_gate) * by_content
        )  # (B, N)
        memory = MemoryWrite.apply(memory, write_weights, part["erase"].sigmoid(), part["write_vector"])
        after = {"hidden": hidden, "cell": cell, "memory": memory, "usage": usage, "write_weights": write_weights}

        # Read, by content or along the temporal links.
        keys = part["read_keys"].unflatten(-1, (config.read_heads, config.cell_dim))  # (B, R, W)
        new_read = content_addressing(memory, keys, oneplus(part["read_strengths"]))  # (B, R, N)
        if config.links:
            precedence = state["precedence"]
            link = TemporalLink.apply(state["link"], precedence, write_weights)
            after |= {
                "link": link,
                "precedence": precedence * (1.0 - write_weights.sum(-1, keepdim=True)) + write_weights,
            }
            modes = part["read_modes"].unflatten(-1, (config.read_heads, 3)).softmax(-1)
            backward, content, forward = modes[..., None].unbind(2)  # (B, R, 1) each
            new_read = backward * (old_read @ link) + content * new_read + forward * (old_read @ link.transpose(1, 2))
        return after | {"read_weights": new_read, "read_vectors": (new_read @ memory).flatten(1)}

    def _split(self, interface: Tensor) -> dict[str, Tensor]:
        """Split an interface vector (..., I) into its parts, by name."""
        sizes = self.config.interface_parts
        return dict(zip(sizes, interface.split(list(sizes.values()), -1), strict=True))


def oneplus(x: Tensor) -> Tensor:
    """Map numbers, of any shape, to numbers above 1: 1 + log(1 + e^x)."""
    return 1.0 + functional.softplus(x)


def content_addressing(memory: Tensor, keys: Tensor, strengths: Tensor) -> Tensor:
    """Weigh cells by similarity to a key: softmax over cells of strength x cosine.

    Args:
        memory: float, (B, N, W).
        keys: float, (B, R, W).
        strengths: float, (B, R), >= 1.

    Returns:
        float, (B, R, N); a row sums to 1.
    """
    norms = keys.norm(dim=-1)[..., None] * memory.norm(dim=-1)[:, None]
    return (strengths[..., None] * (keys @ memory.transpose(1, 2)) / (norms + COSINE_EPS)).softmax(-1)


def allocation(usage: Tensor) -> Tensor:
    """Weigh cells by how free they are.

    a[phi_j] = (1 - u[phi_j]) prod_{i < j} u[phi_i], where phi sorts the cells by usage u, the least used first. Equally
    used cells stay in order.

    Args:
        usage: float, (B, N), 0 ... 1.

    Returns:
        float, (B, N).
    """
    ascending, order = usage.sort(dim=-1, stable=True)
    before = functional.pad(ascending[:, :-1], (1, 0), value=1.0).cumprod(-1)  # product of all smaller usages
    return torch.zeros_like(usage).scatter(-1, order, (1.0 - ascending) * before)


class MemoryWrite(torch.autograd.Function):
    """Write to the cells, M <- M (1 - w e^T) + w v^T.

    Autograd would store both M and the factor 1 - w e^T, which is as large. This backward pass stores M and small
    vectors, and computes the factor again.
    """

    @staticmethod
    def forward(ctx: Any, memory: Tensor, write_weights: Tensor, erase: Tensor, vector: Tensor) -> Tensor:
        """Return the new cells.

        Args:
            ctx: Context of autograd.
            memory: float, (B, N, W); M, before the write.
            write_weights: float, (B, N); w.
            erase: float, (B, W), 0 ... 1; e.
            vector: float, (B, W); v.

        Returns:
            float, (B, N, W).
        """
        ctx.save_for_backward(memory, write_weights, erase, vector)
        return _erase_factor(write_weights, erase).mul_(memory).addcmul_(write_weights[..., None], vector[:, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of M, w, e and v, in this order."""
        memory, write_weights, erase, vector = ctx.saved_tensors
        grad_factor = gradient * memory  # (B, N, W); gradient of the factor 1 - w e^T
        grad_write_weights = vecdot(gradient, vector[:, None]) - vecdot(grad_factor, erase[:, None])
        grad_erase = -(write_weights[:, None] @ grad_factor)[:, 0]
        grad_vector = (write_weights[:, None] @ gradient)[:, 0]
        return _erase_factor(write_weights, erase).mul_(gradient), grad_write_weights, grad_erase, grad_vector


def _erase_factor(write_weights: Tensor, erase: Tensor) -> Tensor:
    """Share of each number in memory that an erasure leaves: 1 - w e^T, float (B, N, W)."""
    return (write_weights[..., None] * erase[:, None]).neg_().add_(1.0)


class TemporalLink(torch.autograd.Function):
    """Update the links, L[i, j] <- (1 - w[i] - w[j]) L[i, j] + w[i] p[j], zero on the diagonal.

    L is most of the state. Autograd would store both L and the factor 1 - w[i] - w[j], which is as large. This backward
    pass stores L and small vectors, and computes the factor again.
    """

    @staticmethod
    def forward(ctx: Any, link: Tensor, precedence: Tensor, write_weights: Tensor) -> Tensor:
        """Return the new links.

        Args:
            ctx: Context of autograd.
            link: float, (B, N, N); L, before the write.
            precedence: float, (B, N); p, how much each cell was the last one written to.
            write_weights: float, (B, N); w.

        Returns:
            float, (B, N, N).
        """
        ctx.save_for_backward(link, precedence, write_weights)
        new = _link_factor(write_weights).mul_(link).addcmul_(write_weights[:, :, None], precedence[:, None])
        new.diagonal(dim1=1, dim2=2).zero_()
        return new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of L, p and w, in this order."""
        link, precedence, write_weights = ctx.saved_tensors
        gradient = gradient.clone()
        gradient.diagonal(dim1=1, dim2=2).zero_()
        grad_factor = gradient * link  # (B, N, N); gradient of the factor 1 - w[i] - w[j]
        grad_write_weights = vecdot(gradient, precedence[:, None]) - grad_factor.sum(1) - grad_factor.sum(2)
        grad_precedence = (write_weights[:, None] @ gradient)[:, 0]
        return gradient.mul_(_link_factor(write_weights)), grad_precedence, grad_write_weights


def _link_factor(write_weights: Tensor) -> Tensor:
    """Share of each link that a write leaves: 1 - w[i] - w[j], float (B, N, N)."""
    return (1.0 - write_weights)[:, :, None] - write_weights[:, None]
