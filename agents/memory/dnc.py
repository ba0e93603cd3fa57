"""A differentiable neural computer: a recurrent network that writes to cells of its own and reads them by content and in the order of writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.linalg import vecdot
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.kernels.dnc_cpu import SMALL, DNCSequence
from memenvs.agents.memory.recurrent import ResetOn, stretches
from memenvs.checks import check_fields, check_int, choices_for

TaskOn = Literal["first", "every"]


@dataclass(frozen=True, kw_only=True)
class DNCConfig:
    """Settings of a differentiable neural computer.

    Attributes:
        hidden_dim: Width of the controller's hidden state; >= 1.
        cells: Cells of the memory, N; >= 1.
        cell_dim: Width of a cell, W; >= 1.
        read_heads: Reads of a step, R; >= 1. There is one write.
        links: Whether it keeps in which order cells were written, N x N numbers a sequence: the most costly part. Without, reads are by
            content alone.
        checkpoint: While learning, only the state before every so many steps is kept, and what is between is computed again in the backward
            pass: of T steps T / `checkpoint` states and `checkpoint` whole steps are in memory at a time; >= 1; None keeps all steps.
        reset_on: What empties the memory: the start of a trial or of an episode.
    """

    hidden_dim: int = 128
    cells: int = 288
    cell_dim: int = 128
    read_heads: int = 4
    links: bool = True
    checkpoint: int | None = 24
    reset_on: ResetOn = "trial"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("hidden_dim", "cells", "cell_dim", "read_heads"):
            check_int(name, getattr(self, name))
        check_int("checkpoint", self.checkpoint, or_none=True)

    @property
    def interface_parts(self) -> dict[str, int]:
        """Numbers of each part of the interface vector, in order: R W + 3 W + 5 R + 3 in all; without links there are no read modes, 3 R fewer."""
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
    """An LSTM with cells beside it, which hears what was read at the step before; features are its hidden state and the reads.

    At each step the hidden state makes an interface vector: what to write, where (the cell that is most like a key, or one that is free),
    what to erase, which cells that were read are free again, and for each read head whether it goes to the cells most like a key, or to those
    written just before or just after the ones it read last. Everything is zero at the start.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, links or none, how much is kept while learning.

    Source:
        Graves et al., "Hybrid computing using a neural network with dynamic external memory", 2016, methods; sizes of the SAT article, D.6.
    """

    def __init__(self, input_dim: int, config: DNCConfig) -> None:
        super().__init__()
        self.config = config
        read_dim = config.read_heads * config.cell_dim
        self.input_dim, self.output_dim = input_dim, config.hidden_dim + read_dim
        self.controller = nn.LSTMCell(input_dim + read_dim, config.hidden_dim)
        self.interface = nn.Linear(config.hidden_dim, sum(config.interface_parts.values()))

    @torch.no_grad()
    def sharpen(self) -> None:
        """Lets each step be written to a free cell, and what is most like it be read, from the start.

        With PyTorch's initial weights writes go half to all cells and reads are the mean of all of them, so that there is nothing to tell apart, and
        what is worth writing is learned late or not at all. Here keys are made by the weights that make what is written.
        """
        parts = self._parts(torch.arange(self.interface.out_features))
        weight, bias = self.interface.weight, self.interface.bias
        for keys in (parts["write_key"], *parts["read_keys"].chunk(self.config.read_heads)):
            weight[keys], bias[keys] = weight[parts["write_vector"]], bias[parts["write_vector"]]
        for name in ("read_strengths", "write_strength"):
            bias[parts[name]] += 8.0  # a cosine of 1 then weighs e^9 times as much as one of 0
        for name in ("write_gate", "allocation_gate"):
            bias[parts[name]] += 3.0  # a sigmoid of 0.95

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros: `hidden`, `cell` (B, H), `memory` (B, N, W), `usage`, `written` (B, N), `read` (B, R, N), `reads` (B, R W).

        With links also `precedence` (B, N) and `link` (B, N, N).
        """
        config, like = self.config, self.interface.weight
        cells, heads = config.cells, config.read_heads
        shapes: dict[str, tuple[int, ...]] = {
            "hidden": (config.hidden_dim,),
            "cell": (config.hidden_dim,),
            "memory": (cells, config.cell_dim),
            "usage": (cells,),
            "written": (cells,),
            "read": (heads, cells),
            "reads": (heads * config.cell_dim,),
        }
        if config.links:
            shapes |= {"precedence": (cells,), "link": (cells, cells)}
        return {name: like.new_zeros(batch_size, *shape) for name, shape in shapes.items()}

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        return features[:, 0], after

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """T steps, one after the other, in the precision of the weights; see `Memory.forward`."""
        batch, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        resets = x.trial_start if self.config.reset_on == "trial" else x.trial_start | x.episode_start
        features = []
        with torch.autocast(x.embedding.device.type, enabled=False):
            embedding = x.embedding.to(self.interface.weight.dtype)
            for begin, end in stretches(steps, self.config.checkpoint if torch.is_grad_enabled() else None):
                part = embedding[:, begin:end], resets[:, begin:end], state
                if end - begin < steps:
                    new, state = checkpoint(self._run, *part, use_reentrant=False, preserve_rng_state=False)
                else:
                    new, state = self._run(*part)
                features.append(new)
        return torch.cat(features, 1)[:, steps - kept :], state

    def _run(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """Some steps: embedding (B, T, D_in), resets bool (B, T); features (B, T, D), and the state after them."""
        is_compiled = embedding.device.type == "cpu" and embedding.dtype == torch.float32 and not self.config.links
        if is_compiled and not bool(resets[:, 1:].any()):
            return self._scan(embedding, state if not bool(resets.any()) else _emptied(state, resets[:, 0]))
        features = []
        for t, any_reset in enumerate(resets.any(0).tolist()):
            if any_reset:
                state = _emptied(state, resets[:, t])
            state = self._advance(embedding[:, t], state)
            features.append(torch.cat([state["hidden"], state["reads"]], -1))
        return torch.stack(features, 1), state

    def _scan(self, embedding: Tensor, state: State) -> tuple[Tensor, State]:
        """The same in compiled passes, without links and resets."""
        names, hidden = ("cell", "memory", "usage", "written", "read"), self.config.hidden_dim
        controller, told = self.controller, torch.cat([state["hidden"], state["reads"]], -1)
        weights = controller.weight_ih, controller.weight_hh, controller.bias_ih, controller.bias_hh
        features, *after = DNCSequence.apply(
            embedding, told, *(state[name] for name in names), *weights, self.interface.weight, self.interface.bias
        )
        last = {"hidden": features[:, -1, :hidden], "reads": features[:, -1, hidden:]}
        return features, dict(zip(names, after, strict=True)) | last

    def _advance(self, x: Tensor, state: State) -> State:
        """The state after a step that brings x, float (B, D_in)."""
        config, memory, read = self.config, state["memory"], state["read"]
        hidden, cell = self.controller(torch.cat([x, state["reads"]], -1), (state["hidden"], state["cell"]))
        part = self._parts(self.interface(hidden))

        freed = (part["free_gates"].sigmoid()[..., None] * read).neg().add(1.0).prod(1)
        usage = (state["usage"] + state["written"] - state["usage"] * state["written"]) * freed
        by_content = content_addressing(memory, part["write_key"][:, None], oneplus(part["write_strength"]))[:, 0]
        to_free = part["allocation_gate"].sigmoid()
        written = part["write_gate"].sigmoid() * (to_free * allocation(usage) + (1.0 - to_free) * by_content)
        memory = MemoryWrite.apply(memory, written, part["erase"].sigmoid(), part["write_vector"])
        after = {"hidden": hidden, "cell": cell, "memory": memory, "usage": usage, "written": written}

        keys = part["read_keys"].unflatten(-1, (config.read_heads, config.cell_dim))
        new_read = content_addressing(memory, keys, oneplus(part["read_strengths"]))
        if config.links:
            precedence = state["precedence"]
            link = TemporalLink.apply(state["link"], precedence, written)
            after |= {"link": link, "precedence": precedence * (1.0 - written.sum(-1, keepdim=True)) + written}
            modes = part["read_modes"].unflatten(-1, (config.read_heads, 3)).softmax(-1)
            backward, content, forward = modes[..., None].unbind(2)
            new_read = backward * (read @ link) + content * new_read + forward * (read @ link.transpose(1, 2))
        return after | {"read": new_read, "reads": (new_read @ memory).flatten(1)}

    def _parts(self, interface: Tensor) -> dict[str, Tensor]:
        """Numbers of each part of an interface vector (..., I), by name."""
        sizes = self.config.interface_parts
        return dict(zip(sizes, interface.split(list(sizes.values()), -1), strict=True))


def _emptied(state: State, resets: Tensor) -> State:
    """The state with zeros where it is reset, bool (B,)."""
    return {name: value * ~resets.view(-1, *[1] * (value.dim() - 1)) for name, value in state.items()}


def oneplus(x: Tensor) -> Tensor:
    """1 + log(1 + e^x), at least 1."""
    return 1.0 + functional.softplus(x)


def content_addressing(memory: Tensor, keys: Tensor, strengths: Tensor) -> Tensor:
    """Weights of cells by how much they are like a key: softmax over cells of strength x cosine.

    Args:
        memory: float, (B, N, W).
        keys: float, (B, R, W).
        strengths: float, (B, R), >= 1.

    Returns:
        float, (B, R, N).
    """
    norms = keys.norm(dim=-1)[..., None] * memory.norm(dim=-1)[:, None]
    return (strengths[..., None] * (keys @ memory.transpose(1, 2)) / (norms + SMALL)).softmax(-1)


def allocation(usage: Tensor) -> Tensor:
    """Weights of cells by how free they are: (1 - u) of the least used, and of each other one that times the usages of all less used ones.

    Of cells that are used equally the first comes first.

    Args:
        usage: float, (B, N), 0 ... 1.

    Returns:
        float, (B, N).
    """
    ascending, order = usage.sort(dim=-1, stable=True)
    before = functional.pad(ascending[:, :-1], (1, 0), value=1.0).cumprod(-1)
    return torch.zeros_like(usage).scatter(-1, order, (1.0 - ascending) * before)


class MemoryWrite(torch.autograd.Function):
    """The cells after a write, M <- M (1 - w e') + w v'.

    By hand, as `TemporalLink`: the backward pass needs M alone, and not the factor before it, which is as large.
    """

    @staticmethod
    def forward(ctx: Any, memory: Tensor, written: Tensor, erase: Tensor, vector: Tensor) -> Tensor:
        """The new cells.

        Args:
            ctx: Of autograd.
            memory: float, (B, N, W); before the write.
            written: float, (B, N); weights of the write.
            erase: float, (B, W), 0 ... 1; how much is taken from each part of a cell.
            vector: float, (B, W); what is added.

        Returns:
            float, (B, N, W).
        """
        ctx.save_for_backward(memory, written, erase, vector)
        return _left(written, erase).mul_(memory).addcmul_(written[..., None], vector[:, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of cells, weights, what is erased and what is added."""
        memory, written, erase, vector = ctx.saved_tensors
        of_factor = gradient * memory
        of_written = vecdot(gradient, vector[:, None]) - vecdot(of_factor, erase[:, None])
        of_erase, of_vector = -(written[:, None] @ of_factor)[:, 0], (written[:, None] @ gradient)[:, 0]
        return _left(written, erase).mul_(gradient), of_written, of_erase, of_vector


def _left(written: Tensor, erase: Tensor) -> Tensor:
    """1 - w e', float (B, N, W): how much of each number a write leaves."""
    return (written[..., None] * erase[:, None]).neg_().add_(1.0)


class TemporalLink(torch.autograd.Function):
    """How much each cell i was written right after each cell j, after one more write; zero on the diagonal.

    L[i, j] <- (1 - w[i] - w[j]) L[i, j] + w[i] p[j]. By hand because L is most of the state: the backward pass needs L alone, and not the
    factor before it, which is as large.
    """

    @staticmethod
    def forward(ctx: Any, link: Tensor, precedence: Tensor, written: Tensor) -> Tensor:
        """The new links.

        Args:
            ctx: Of autograd.
            link: float, (B, N, N); before the write.
            precedence: float, (B, N); how much each cell was the last one written to before it.
            written: float, (B, N); weights of the write.

        Returns:
            float, (B, N, N).
        """
        ctx.save_for_backward(link, precedence, written)
        new = _kept(written).mul_(link).addcmul_(written[:, :, None], precedence[:, None])
        new.diagonal(dim1=1, dim2=2).zero_()
        return new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of links, precedence and written."""
        link, precedence, written = ctx.saved_tensors
        gradient = gradient.clone()
        gradient.diagonal(dim1=1, dim2=2).zero_()
        of_factor = gradient * link
        of_written = vecdot(gradient, precedence[:, None]) - of_factor.sum(1) - of_factor.sum(2)
        of_precedence = (written[:, None] @ gradient)[:, 0]
        return gradient.mul_(_kept(written)), of_precedence, of_written


def _kept(written: Tensor) -> Tensor:
    """1 - w[i] - w[j], float (B, N, N): how much of a link a write leaves."""
    return (1.0 - written)[:, :, None] - written[:, None]


class DNCReader(nn.Module):
    """A DNC that reads the frames of an episode one after the other and then the query; it hears of the task at the start or at every step.

    Args:
        dim: Width of frame tokens and queries, D.
        task_dim: Width of the task vector, G.
        task: "first": the task vector, mapped to width D, comes before the frames as one step more; "every": it is appended to every frame and to the
            query.
        config: Of the DNC.

    Attributes:
        output_dim: Width of what it gives.

    Raises:
        ValueError: `task` is none of these.

    Source:
        SAT, D.6, DNC-first and DNC-every.
    """

    def __init__(self, dim: int, task_dim: int, task: TaskOn, config: DNCConfig) -> None:
        super().__init__()
        if task not in get_args(TaskOn):
            raise ValueError(f"unknown task {task!r}; {choices_for(task, get_args(TaskOn))}")
        self.project = nn.Linear(task_dim, dim) if task == "first" else None
        self.memory = DNCMemory(dim + task_dim if task == "every" else dim, config)
        self.output_dim = self.memory.output_dim

    def forward(self, tokens: Tensor, query: Tensor, task: Tensor) -> Tensor:
        """What the DNC holds after the query.

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
