"""ReLIC's memory: a transformer over every step of a trial, with learnable sinks in its keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import Window, attend, checkpointed
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.transformer import Block, Rotation, TransformerConfig

Sink = Literal["none", "token", "k0v0", "kv0", "k0v", "kv"]
LONG_STEPS = 16_384
"""Passes over more steps than this keep what attention needs for the backward pass and compute projections and MLPs again: a seventh of the
memory, for little time where most of it goes into attention."""
FIRST_ROOM = 256
"""Steps that a new cache has room for when nobody says how many."""


@dataclass(frozen=True, kw_only=True)
class RelicConfig(TransformerConfig):
    """Settings of ReLIC's memory; the defaults are the article's main network.

    Attributes:
        layers, heads, dim, mlp_dim: See `TransformerConfig`.
        sink: What every query can attend to besides the past: nothing, a learned token, or a key and a value per layer and head of which
            K and V are learned and K0 and V0 are zero.
        inter_episode: Attend to earlier episodes of the trial. Without it each episode stands alone and there is no episode rotation.
        max_episode_steps: Steps that an episode may have; the position table has one row more, for the sink; >= 1.
        depth_dropout: Chance that a sequence skips a block while training; in [0, 1).
        rope_base: Base of the rotation by episode index; > 1.
        cache_dtype: Of keys and values kept while acting.
    """

    sink: Sink = "kv0"
    inter_episode: bool = True
    max_episode_steps: int = 511
    depth_dropout: float = 0.1
    rope_base: float = 10_000.0
    cache_dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, got {self.max_episode_steps}")
        if self.sink not in get_args(Sink):
            raise ValueError(f"unknown sink {self.sink!r}; choose from {', '.join(map(repr, get_args(Sink)))}")
        if not 0 <= self.depth_dropout < 1:
            raise ValueError(f"depth_dropout must be in [0, 1), got {self.depth_dropout}")
        if self.rope_base <= 1:
            raise ValueError(f"rope_base must be above 1, got {self.rope_base}")
        if self.cache_dtype not in ("float32", "bfloat16", "float16", "float64"):
            choices = "'float32', 'bfloat16', 'float16', 'float64'"
            raise ValueError(f"unknown cache_dtype {self.cache_dtype!r}; choose from {choices}")


class SinkBlock(Block):
    """A block with a sink: a key and a value that every query can attend to.

    Args:
        config: Sizes, and whether the sink's key and value are learned.
    """

    def __init__(self, config: RelicConfig) -> None:
        super().__init__(config)
        shape = (config.heads, config.head_dim)
        self.sink_key = nn.Parameter(torch.zeros(shape)) if config.sink in ("kv", "kv0") else None
        self.sink_value = nn.Parameter(torch.zeros(shape)) if config.sink in ("kv", "k0v") else None

    def finish(self, x: Tensor, heard: Tensor, keep: Tensor | None) -> Tensor:
        """The residual stream after attention and MLP.

        Args:
            x: float, (B, T, D).
            heard: float, (B, heads, T, width); what attention gave.
            keep: float, (B, 1, 1); 0 where the sequence skips this block; None keeps all.
        """
        added = self.mix(heard)
        x = x + (added if keep is None else keep * added)
        added = self.mlp(x)
        return x + (added if keep is None else keep * added)

    def sink(self) -> Tensor:
        """Key and value of the sink, float (1, 2, heads, 1, width); learned or zero."""
        zero = self.qkv.weight.new_zeros(self.heads, self.head_dim)
        key = zero if self.sink_key is None else self.sink_key
        value = zero if self.sink_value is None else self.sink_value
        return torch.stack([key, value])[None, :, :, None]


@dataclass(frozen=True)
class _Plan:
    """Where the keys of a forward pass lie and who may see them; the same in every layer.

    Attributes:
        past: int64, (B,); steps of the trial that are in the cache and still count.
        room: Slots in use after the pass, with the sink.
        even: All rows have the same past, so that new keys lie side by side.
        first: int64, (B, T); first slot that a step sees besides the sink; None where that is the whole past of an even batch.
        slots: int64, (B, T); slot of each new step.
    """

    past: Tensor
    room: int
    even: bool
    first: Tensor | None
    slots: Tensor


class RelicMemory(Memory):
    """A causal transformer over the steps of a trial; episode index by rotation, step within the episode by a learned table.

    The state holds `cache`, (B, layers, 2, heads, M, width) of keys (after rotation) and values, slot 0 for the sink if there is one,
    and the counters `length`, `episode_index` and `episode_step`, int64 (B,). The cache is written in place, so a state is used up by
    the call that it is passed to. Slot 0 follows the weights in `initial_state`, `forward` and `prefill`, not in `step`: after an
    optimiser step, refresh the state with `prefill` (all of the cache is stale then) before acting on.

    Depth dropout is drawn from `generator`, once per layer and sequence of each `forward` in training mode, without rescaling.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, kind of sink, reach.

    Source:
        Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for Embodied AI", sections 3 and A.
    """

    bounded = False

    def __init__(self, input_dim: int, config: RelicConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.sinks = 0 if config.sink == "none" else 1
        self.input = nn.Identity() if input_dim == config.dim else nn.Linear(input_dim, config.dim)
        self.positions = nn.Parameter(torch.empty(1 + config.max_episode_steps, config.dim))
        self.blocks = nn.ModuleList(SinkBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.dim, eps=1e-6)
        self.output = nn.Linear(config.dim, config.dim)
        self.sink_token = nn.Parameter(torch.zeros(config.dim)) if config.sink == "token" else None
        nn.init.normal_(self.positions, std=0.02)
        self.generator = torch.Generator()

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Counters at zero and a cache that holds only the sink of the present weights; see `Memory.initial_state`."""
        config, weight = self.config, self.positions
        room = self.sinks + (FIRST_ROOM if max_steps is None else max_steps)
        shape = (batch_size, config.layers, 2, config.heads, room, config.head_dim)
        state = StepClock.zeros(batch_size, weight.device)
        state["cache"] = torch.zeros(shape, dtype=getattr(torch, config.cache_dtype), device=weight.device)
        self._write_sinks(state["cache"])
        return state

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient and without dropout; see `Memory.step`."""
        features, state = self._continue(x, state, None, None)
        return features[:, 0], state

    @torch.no_grad()
    def prefill(self, x: StepInputs, state: State, last: int | None = None) -> tuple[Tensor, State]:
        """`forward` without gradient and without dropout: fills a cache with the past.

        Args:
            x: T steps; a past that replaces what the cache holds begins with `trial_start`.
            state: What came before; changed in place.
            last: As in `forward`.

        Returns:
            As `forward`.
        """
        self._write_sinks(state["cache"])
        return self._continue(x, state, None, last)

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """T steps at once; see `Memory.forward`.

        With a state, the steps go on after the cached past, through which no gradient flows, and are added to the cache. Without one,
        gradients flow through all steps, and None is returned for the state.
        """
        keep = self._draw_depth(x.embedding.shape[0]) if self.training and self.config.depth_dropout > 0 else None
        if state is not None:
            self._write_sinks(state["cache"])
            return self._continue(x, state, keep, last)
        clock = StepClock.read(x.episode_start, x.trial_start)
        return self._layers(x, clock, self._plan(clock), keep, None, last), None

    def _continue(self, x: StepInputs, state: State, keep: Tensor | None, last: int | None) -> tuple[Tensor, State]:
        """Run steps after a cached past and add them to it."""
        clock = StepClock.read(x.episode_start, x.trial_start, state)
        plan = self._plan(clock)
        cache = _grown(state["cache"], plan.room)
        features = self._layers(x, clock, plan, keep, cache, last)
        for row in (
            (clock.trial_first[:, -1] > 0).nonzero()[:, 0].tolist()
        ):  # a trial began on the way: forget what came before it
            kept = x.embedding.shape[1] - int(clock.trial_first[row, -1])
            end = self.sinks + int(plan.past[row]) + x.embedding.shape[1]
            cache[row, ..., self.sinks : self.sinks + kept, :] = cache[row, ..., end - kept : end, :].clone()
        return features, {**clock.after(), "cache": cache}

    def _layers(
        self, x: StepInputs, clock: StepClock, plan: _Plan, keep: Tensor | None, cache: Tensor | None, last: int | None
    ) -> Tensor:
        """Features of the last steps, float (B, `last` or T, D)."""
        _, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        longest = int(clock.episode_step.max()) + 1
        if longest > self.config.max_episode_steps:
            raise ValueError(
                f"an episode has at most max_episode_steps ({self.config.max_episode_steps}) steps, got {longest}"
            )
        h = self.input(x.embedding) + F.embedding(1 + clock.episode_step, self.positions)
        rotation = self._rotation(clock.episode_index) if self.config.inter_episode else None
        sinks = self._sinks(keep)
        run = checkpointed if steps > LONG_STEPS else _plainly
        for i, block in enumerate(self.blocks):
            assert isinstance(block, SinkBlock)
            asking = kept if i == self.config.layers - 1 else steps
            q, new = run(block.project, h, rotation, asking)
            keys, values = self._context(i, new, sinks[i] if sinks else None, plan, cache).unbind(1)
            mask = None
            if plan.first is not None:
                mask = Window(plan.first[:, steps - asking :], plan.slots[:, steps - asking :], self.sinks)
            heard = attend(q, keys, values, causal=mask is None, mask=mask)
            h = run(block.finish, h[:, steps - asking :], heard, None if keep is None else keep[i])
        return self.output(self.norm(h))

    def _plan(self, clock: StepClock) -> _Plan:
        """Slots and reach of the steps of a pass."""
        past = -clock.trial_first[:, 0].clamp(max=0)
        reach = clock.trial_first if self.config.inter_episode else clock.episode_first
        steps = reach.shape[1]
        even = bool((past == past[0]).all())
        whole = even and bool((reach == -past[:, None]).all())
        slots = self.sinks + past[:, None] + torch.arange(steps, device=past.device)
        first = None if whole else self.sinks + past[:, None] + reach
        return _Plan(past, self.sinks + int(past.max()) + steps, even, first, slots)

    def _context(self, layer: int, new: Tensor, sink: Tensor | None, plan: _Plan, cache: Tensor | None) -> Tensor:
        """Keys and values of sink, past and present, float (B, 2, heads, M, width); the present is written to the cache.

        Args:
            layer: Which layer.
            new: float, (B, 2, heads, T, width); of the T steps.
            sink: float, (B or 1, 2, heads, 1, width).
            plan: Slots.
            cache: All layers' cache; None where there is no past.
        """
        front = [] if sink is None else [sink.to(new.dtype).expand(new.shape[0], -1, -1, -1, -1)]
        if cache is None:
            return torch.cat([*front, new], dim=3) if front else new
        steps, here = new.shape[3], cache[:, layer]
        rows = torch.arange(new.shape[0], device=new.device)[:, None]
        by_step = new.permute(0, 3, 1, 2, 4)  # (B, T, 2, heads, width), as indexing by row and slot gives it
        if plan.even:
            here[:, :, :, plan.room - steps : plan.room] = new.detach()
        else:
            here[rows, :, :, plan.slots] = by_step.detach().to(here.dtype)
        if not new.requires_grad:
            return here[:, :, :, : plan.room].to(new.dtype)
        if plan.even:
            return torch.cat([*front, here[:, :, :, self.sinks : plan.room - steps].to(new.dtype), new], dim=3)
        past = here[:, :, :, self.sinks : plan.room].to(new.dtype, copy=True).permute(0, 3, 1, 2, 4)
        filled = past.index_put((rows, plan.slots - self.sinks), by_step)
        return torch.cat([*front, filled.permute(0, 2, 3, 1, 4)], dim=3)

    def _rotation(self, episode: Tensor) -> Rotation:
        """Rotation by the episode index.

        Args:
            episode: int64, (B, T); 1 in the first episode.
        """
        width, dtype = self.config.head_dim, self.positions.dtype
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        exponent = torch.arange(0, width, 2, device=episode.device, dtype=exact) / width
        angle = episode[..., None].to(exact) * self.config.rope_base**-exponent
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def _sinks(self, keep: Tensor | None) -> list[Tensor] | None:
        """Key and value of the sink of each layer, float (B or 1, 2, heads, 1, width); None without sinks.

        Args:
            keep: float, (layers, B, 1, 1); as drawn for the sequences, which a sink token goes along with.
        """
        if self.sink_token is None:
            return [block.sink() for block in self.blocks if isinstance(block, SinkBlock)] if self.sinks else None
        h = (self.sink_token + self.positions[0])[None, None]  # (1, 1, D); index 0 turns by nothing
        sinks = []
        for i, block in enumerate(self.blocks):
            assert isinstance(block, SinkBlock)
            _, kv = block.project(h, None, 1)
            sinks.append(kv)
            h = block.finish(h, kv[:, 1], None if keep is None else keep[i])  # alone, it hears its own value
        return sinks

    @torch.no_grad()
    def _write_sinks(self, cache: Tensor) -> None:
        """Put the sinks of the present weights into slot 0."""
        for i, sink in enumerate(self._sinks(None) or []):
            cache[:, i, :, :, :1] = sink

    def _draw_depth(self, batch: int) -> Tensor:
        """Which sequence runs through which block, float (layers, B, 1, 1) of 0 and 1."""
        draw = torch.rand(self.config.layers, batch, 1, 1, generator=self.generator)
        return (draw >= self.config.depth_dropout).to(self.positions)


def _plainly(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns."""
    return function(*args)


def _grown(cache: Tensor, room: int) -> Tensor:
    """The cache, or a copy at least twice as long where it has fewer than `room` slots."""
    if cache.shape[4] >= room:
        return cache
    longer = cache.new_zeros(*cache.shape[:4], max(room, 2 * cache.shape[4]), cache.shape[5])
    longer[..., : cache.shape[4], :] = cache
    return longer
