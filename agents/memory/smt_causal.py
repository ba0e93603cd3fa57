"""A causal Scene Memory Transformer: poses enter attention instead of the elements, so that nothing is ever encoded again."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import Window, attend, rotate
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.recurrent import ResetOn
from memenvs.agents.memory.scene_memory import POSITION_SCALE
from memenvs.agents.memory.smt import AttentionBlock, check_heads
from memenvs.agents.memory.step_log import append, empty_log, put, reserve, view_log
from memenvs.checks import check_fields, check_int

PLACE_DIM = 8
"""Room for the numbers of a place beside each head's key and value; a multiple of 8, as attention on a CPU wants it."""
NUMBERS = 6
"""Those of a place."""
NEAREST, FARTHEST = 0.5, 2.0
"""Standard deviations, m, that the first and the last head of a block begin with."""


@dataclass(frozen=True, kw_only=True)
class CausalConfig:
    """Settings of the causal Scene Memory Transformer.

    Attributes:
        dim: Width of a memory element and of the features; >= 1.
        capacity: How many of the newest steps each layer sees, the present one among them; >= 1.
        layers: Attention blocks; >= 1. What a step sees reaches back `layers` times as far.
        heads: Attention heads; divides `dim` into even widths.
        rope_base: Base of the rotation by step; > 1.
        reset_on: What empties the memory: the start of a trial or of an episode. Poses have to be in one frame from one reset to the next.
    """

    dim: int = 128
    capacity: int = 500
    layers: int = 2
    heads: int = 8
    rope_base: float = 10_000.0
    reset_on: ResetOn = "trial"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("dim", "capacity", "layers"):
            check_int(name, getattr(self, name))
        check_heads(self.dim, self.heads)
        if self.dim // self.heads % 2:
            raise ValueError(f"dim must be an even multiple of heads ({self.heads}), got {self.dim}")
        if self.rope_base <= 1:
            raise ValueError(f"rope_base must be above 1, got {self.rope_base}")


class RelativePoseBlock(AttentionBlock):
    """An `AttentionBlock` whose keys and values also say where they are, seen from where the query is, and whose heads each look near a point.

    A key is k + K r and a value v + V r, with r = (x / 5, y / 5, cos, sin) of the key's pose in the query's frame, and a head's score falls by
    b |r - c|^2 for keys away from its point c = (x / 5, y / 5), which moves and turns with the query: of all that it remembers it hears what
    was nearest to there, such as the cell ahead. b and c are learned; points begin around the robot, at 0.75 m to 3 m, and the
    standard deviations of the Gaussians e^(-b |r - c|^2) at 0.5 m to 2 m.

    r, |r|^2 and so the whole score are T g, with g of the key's pose alone (`places`) and T of the query's alone (`frames`). So each head's query
    carries T' (K' q and what b and c ask for) beside q, its key and value carry g beside k and v, and what it hears of g is turned into r
    by T: ordinary attention, over keys and values that are made once.

    Args:
        dim: Width.
        heads: Attention heads.
        angle: Radians by which the points of this block are turned against those of others.
    """

    def __init__(self, dim: int, heads: int, angle: float = 0.0) -> None:
        super().__init__(dim, heads)
        self.key_place, self.value_place = (nn.Linear(4, dim, bias=False) for _ in range(2))
        sigma = torch.logspace(math.log10(NEAREST), math.log10(FARTHEST), heads) / POSITION_SCALE
        angles = 2.0 * math.pi * torch.arange(heads) / heads + angle
        self.log_sharpness = nn.Parameter(-(2.0 * sigma.square()).log())  # b
        self.centre = nn.Parameter(1.5 * sigma[:, None] * torch.stack([angles.cos(), angles.sin()], -1))  # c

    def keep(self, x: Tensor, places: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """What attention needs of steps: keys, then values, with the place beside each head's; float (B, 2, heads, T, width + 8).

        Args:
            x: float, (B, T, D).
            places: float, (B, T, 6).
            turn: Cosine and sine of the rotation by step, float (B, T, width / 2) each.
        """
        k, v = (layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.key, self.value))
        k = rotate(k[:, :, None], *turn)[:, :, 0]
        place = F.pad(places, (0, PLACE_DIM - NUMBERS))[:, :, None].expand(-1, -1, self.heads, -1)
        return torch.stack([torch.cat([k, place], -1), torch.cat([v, place], -1)], 1).transpose(2, 3)

    def listen(
        self, x: Tensor, kept: Tensor, frames: Tensor, turn: tuple[Tensor, Tensor], seen: Tensor | Window | None
    ) -> Tensor:
        """The block's output, float (B, T, D).

        Args:
            x: float, (B, T, D); what asks.
            kept: float, (B, 2, heads, M, width + 8); of the steps that can be seen.
            frames: float, (B, T, 5, 6).
            turn: As in `keep`, of x.
            seen: Which of the kept steps each step sees; None is all up to itself.
        """
        heads, width = self.heads, x.shape[-1] // self.heads
        q = self.query(x).unflatten(-1, (heads, width))
        toward = torch.einsum("bthw,hwr->bthr", q, self.key_place.weight.view(heads, width, 4))
        sharpness = self.log_sharpness.exp()[:, None]
        near = torch.cat(
            [2.0 * sharpness * self.centre, torch.zeros_like(self.centre), -sharpness], 1
        )  # all keys have b |c|^2
        toward = F.pad(toward, (0, 1)) + near * width**0.5
        toward = F.pad(torch.einsum("bthr,btrg->bthg", toward, frames), (0, PLACE_DIM - NUMBERS))
        q = torch.cat([rotate(q[:, :, None], *turn)[:, :, 0], toward], -1)
        q = q * ((width + PLACE_DIM) / width) ** 0.5  # so that the scale is that of the width without places
        heard = attend(q.transpose(1, 2), kept[:, 0], kept[:, 1], causal=seen is None, mask=seen).transpose(
            1, 2
        )  # (B, T, heads, width + 8)
        where = torch.einsum("bthg,btrg->bthr", heard[..., width : width + NUMBERS], frames[..., :4, :])
        of_places = torch.einsum("bthr,hwr->bthw", where, self.value_place.weight.view(heads, width, 4))
        return self.finish(x, (heard[..., :width] + of_places).flatten(2))


def places(poses: Tensor) -> Tensor:
    """What a pose gives to a key, g: x / 5, y / 5, 1, cosine and sine of the heading, the square of the first two; float (..., 6)."""
    x, y, heading = poses.unbind(-1)
    x, y = x / POSITION_SCALE, y / POSITION_SCALE
    return torch.stack([x, y, torch.ones_like(x), heading.cos(), heading.sin(), x * x + y * y], -1)


def frames(poses: Tensor) -> Tensor:
    """What a pose gives to a query, T: T g is the place of g in its frame, (x / 5, y / 5, cos, sin, distance^2 / 25); float (..., 5, 6)."""
    x, y, one, cos, sin, square = places(poses).unbind(-1)
    zero = torch.zeros_like(x)
    rows = [
        [cos, sin, -(cos * x + sin * y), zero, zero, zero],
        [-sin, cos, sin * x - cos * y, zero, zero, zero],
        [zero, zero, zero, cos, sin, zero],
        [zero, zero, zero, -sin, cos, zero],
        [-2.0 * x, -2.0 * y, square, zero, zero, one],
    ]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


class CausalMemory(Memory):
    """Elements attend to those before them only, with relative poses in keys and values and a rotation by step.

    Nothing that is kept changes later: acting costs one query per layer, and all decisions of an episode come from one pass. Moving
    the world changes nothing, as in the Scene Memory Transformer. What scores that are linear in where an element was cannot ask for
    is what was near a point: here each head asks for that (`RelativePoseBlock`).

    Args:
        input_dim: Width of the embedding.
        config: Sizes and reach.

    Source:
        Ours; blocks of Fang et al., 2019, relative terms in keys and values as in Shaw et al., 2018, rotation of Su et al., 2021.
    """

    uses_pose = True

    def __init__(self, input_dim: int, config: CausalConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.input = nn.Linear(input_dim, config.dim)
        self.blocks = nn.ModuleList(RelativePoseBlock(config.dim, config.heads, i) for i in range(config.layers))

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """An empty log of keys and values of all layers, and steps since the last reset; see `Memory.initial_state`."""
        config = self.config
        shape = (2, config.heads, config.dim // config.heads + PLACE_DIM)
        shapes = {str(layer): shape for layer in range(config.layers)}
        return empty_log(batch_size, config.capacity, shapes, self.input.weight)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """T steps at once, with gradients through these; see `Memory.forward`. Without a state None is returned for it.

        It runs in the precision of its weights also under autocast: a square of a distance is a small difference of large numbers.
        """
        with torch.autocast(x.embedding.device.type, enabled=False):
            return self._forward(replace(x, embedding=x.embedding.to(self.input.weight.dtype)), state, last)

    def _forward(self, x: StepInputs, state: State | None, last: int | None) -> tuple[Tensor, State | None]:
        """See `forward`."""
        batch, steps = check_inputs(x, self.input_dim, uses_pose=True)
        asking = last_steps(steps, last)
        config = self.config
        resets = x.trial_start if config.reset_on == "trial" else x.trial_start | x.episode_start
        past: State = {}
        before, live = 0, torch.zeros(batch, dtype=torch.int64, device=resets.device)
        length = live
        is_acting = state is not None and steps == 1 and not torch.is_grad_enabled()
        if state is not None:
            if is_acting:  # keys and values are written where they are read
                state = reserve(state, config.capacity, 1)
            past, live = view_log(state, config.capacity - 1)
            before, length = past["0"].shape[-2], state["length"]
        now = torch.arange(steps, device=resets.device)
        began = torch.where(resets, now, -1).cummax(1).values  # -1: before the first of these steps
        step = now - torch.where(began >= 0, began, -length[:, None])
        first = before + torch.maximum(torch.where(began >= 0, began, -live[:, None]), now - config.capacity + 1)
        assert x.pose is not None
        pose = x.pose.to(self.input.weight.dtype)
        turn, where = self._rotation(step), places(pose)
        h = self.input(x.embedding)
        new: State = {}
        for i, block in enumerate(self.blocks):
            assert isinstance(block, RelativePoseBlock)
            name = str(i)
            whole = new[name] = block.keep(h, where, turn)
            if is_acting:
                assert state is not None
                whole = put(state, name, new[name], before)
            elif past:
                whole = torch.cat([past[name], new[name]], -2)
            begin = steps - asking if i == config.layers - 1 else 0
            turned = turn[0][:, begin:], turn[1][:, begin:]
            h = block.listen(
                h[:, begin:], whole, frames(pose[:, begin:]), turned, _seen(first[:, begin:], before + steps)
            )
        return h, None if state is None else append(state, new, resets, config.capacity)

    def _rotation(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine for steps, int64 (B, T); float (B, T, width / 2) each."""
        width, dtype = self.config.dim // self.config.heads, self.input.weight.dtype
        exponent = torch.arange(0, width, 2, device=step.device, dtype=torch.float64) / width
        angle = step[..., None] * self.config.rope_base**-exponent
        return angle.cos().to(dtype), angle.sin().to(dtype)


def _seen(first: Tensor, keys: int) -> Tensor | Window | None:
    """Which keys each step sees, as `RelativePoseBlock.listen` takes it.

    Args:
        first: int64, (B, T); the oldest key that a step sees; the last of the T steps sees the last key, and so on.
        keys: How many there are.
    """
    if not bool(first.any()):
        return None
    steps = first.shape[1]
    last = torch.arange(keys - steps, keys, device=first.device).expand_as(first)
    if steps > 1:
        return Window(first, last)
    return (torch.arange(keys, device=first.device) >= first[..., None])[:, None]
