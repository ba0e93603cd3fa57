"""Memo: a transformer that writes summaries of segments of steps, and then drops the steps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import attend, index_rotation
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import StepClock
from memenvs.agents.memory.transformer import Rotation, TransformerBlock, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class MemoConfig(TransformerConfig):
    """Settings of Memo.

    Attributes:
        layers, heads, dim, mlp_dim: See `TransformerConfig`.
        segment_length: Steps L of a segment; >= 1. Steps of the present segment are seen one by one.
        summary_tokens: Summary tokens K that are written at the end of each segment; >= 1.
        overwrite: If True, the summary of a segment replaces the one before it, so that the state does not grow. If
            False, all summaries of the trial stay.
        max_episode_steps: Largest number of steps of an episode; >= 1.
        rope_base: Base of the rotary embedding of the episode index; > 1.
    """

    segment_length: int = 64
    summary_tokens: int = 8
    overwrite: bool = False
    max_episode_steps: int = 512
    rope_base: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rope_base <= 1:
            raise ValueError(f"rope_base must be above 1, got {self.rope_base}")


class MemoMemory(Memory):
    r"""Transformer over the steps of this segment and the summaries of earlier segments.

    Idea:
        The steps of a trial are cut into segments of L steps. After each, K learned tokens attend to its steps and to
        the summaries so far. From then on only they are seen of it. So what is kept must pass through K tokens, and the
        memory is L / K times as small as that of ReLIC. Gradients flow through all summaries: what is written learns
        from the rewards of later segments.

    Equations:
        .. math::

            y_t &= x_t + W_o \operatorname{attention}(x_t;\; S_1, \dots, S_g,\; x_{gL}, \dots, x_t),
            \quad g = \lfloor t / L \rfloor \\
            S_{g+1} &= \operatorname{block}(E;\; S_1, \dots, S_g,\; x_{gL}, \dots, x_{gL + L - 1})

        x is the input of a block, y its residual stream after attention, S_g the keys and values of the K summary
        tokens of segment g in that block, and E the learned tokens in the first block. With `overwrite`, only the
        newest of S_1 ... S_g is there. Steps have the positions of `relic`: a table for the step of the episode, a
        rotary embedding for the index of the episode.

    State:
        Keys and values of the steps of the segment and of the summaries, in each layer: 2 L_layers D numbers for each
        of at most L steps and K tokens a segment. With `overwrite` it does not grow.

    Cost:
        A decision after t steps attends to t K / L + L tokens, not to t. Segments are learned one after the other, the
        steps of a segment at once.

    When to use:
        Long trials of several episodes in which a summary is enough, where the state of `relic` becomes too large. With
        `overwrite` also trials without end.

    When not to use:
        Where single steps must be recalled exactly, or trials have a few segments only.

    Difference from the paper:
        Segments have one length; the paper also draws it. There is no sink.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, lengths, and whether summaries are overwritten.

    Source:
        Gupta et al., "Memo: Training Memory-Efficient Embodied Agents with Reinforcement Learning", NeurIPS 2025
        (arXiv:2510.19732). With `overwrite`: Bulatov et al., "Recurrent Memory Transformer", NeurIPS 2022
        (arXiv:2207.06881).
    """

    def __init__(self, input_dim: int, config: MemoConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.bounded = config.overwrite
        self.input = nn.Linear(input_dim, config.dim)
        self.positions = nn.Parameter(torch.empty(config.max_episode_steps, config.dim))
        self.summary = nn.Parameter(torch.empty(config.summary_tokens, config.dim))
        self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.dim, eps=1e-6)
        self.output = nn.Linear(config.dim, config.dim)
        for table in (self.positions, self.summary):
            nn.init.normal_(table, std=0.02)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Counters at zero, and empty slots for keys and values; see `Memory.initial_state`.

        `segment` has a slot for each step of a segment, `summaries` for each summary token: float, (B, layers, 2,
        heads, slots, width), axis 2: keys, values. Slots that the counters do not cover hold anything.
        """
        config = self.config
        segments = 1 if config.overwrite or max_steps is None else max_steps // config.segment_length

        def empty(slots: int) -> Tensor:
            return self.summary.new_zeros(batch_size, config.layers, 2, config.heads, slots, config.head_dim)

        state = StepClock.zeros(batch_size, self.summary.device)
        return state | {
            "segment": empty(config.segment_length),
            "summaries": empty(segments * config.summary_tokens),
        }

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case.

        Segments of the sequences need not begin at the same steps. The T steps are cut wherever one of them begins::

            sequence 0    a a a b b b b c        a, b, c: segments of 4 steps; the first step of a is in the state
            sequence 1    d d e e e e f f        e: a trial that starts in the middle of a segment
            parts         0 0 1 2 2 2 3 4
        """
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        state = self.initial_state(batch) if state is None else state
        clock = StepClock.count(x.episode_start, x.trial_start, state)
        longest = int(clock.episode_step.max()) + 1
        if longest > self.config.max_episode_steps:
            raise ValueError(
                "memory_kwargs['max_episode_steps'] must be at least the steps of an episode, "
                f"{longest} so far, got {self.config.max_episode_steps}"
            )
        step_of_trial = torch.arange(steps, device=clock.trial_first.device) - clock.trial_first  # (B, T)
        position = step_of_trial % self.config.segment_length
        finished = step_of_trial // self.config.segment_length  # (B, T): segments of the trial before the present one
        h = self.input(x.embedding) + F.embedding(clock.episode_step, self.positions)
        rotation = index_rotation(
            clock.episode_index, self.config.head_dim, self.config.rope_base, self.positions.dtype
        )
        # keys and values of each layer, (B, 2, heads, slots, width)
        segment, summaries = (list(state[name].unbind(1)) for name in ("segment", "summaries"))
        parts = []
        cuts = sorted({0, steps, *(position == 0).any(0).nonzero()[:, 0].tolist()})
        for begin, end in itertools.pairwise(cuts):
            at = slice(begin, end)
            count = finished[:, begin]  # (B,)
            parts.append(self._run(h[:, at], segment, summaries, position[:, at], count, _at(rotation, at)))
            is_done = position[:, end - 1] == self.config.segment_length - 1  # (B,)
            if bool(is_done.any()):
                self._summarise(segment, summaries, count, is_done, _at(rotation, slice(end - 1, end)))
        features = self.output(self.norm(torch.cat(parts, 1)[:, steps - n_last :]))
        after = {"segment": torch.stack(segment, 1).detach(), "summaries": torch.stack(summaries, 1).detach()}
        return features, clock.after() | after

    def _run(
        self,
        h: Tensor,
        segment: list[Tensor],
        summaries: list[Tensor],
        position: Tensor,
        finished: Tensor,
        rotation: Rotation,
    ) -> Tensor:
        """Run the blocks for some steps of one segment, float (B, n, D), and add these to `segment`.

        Args:
            h: float, (B, n, D); inputs of the first block.
            segment: Keys and values of each layer, (B, 2, heads, L, width); replaced.
            summaries: The same, (B, 2, heads, slots, width).
            position: int64, (B, n); step of the segment.
            finished: int64, (B,); finished segments of the trial.
            rotation: Of the n steps.
        """
        steps, longest = h.shape[1], int(position.max()) + 1
        slots = torch.arange(longest, device=position.device)
        is_summary = self._is_written(finished)  # (B, M)
        visible = torch.cat(  # (B, n, M + longest)
            [is_summary[:, None].expand(-1, steps, -1), slots <= position[..., None]], -1
        )[:, None]
        for i, block in enumerate(self.blocks):
            assert isinstance(block, TransformerBlock)
            q, new = block.project(h, rotation, steps)
            segment[i] = _put(segment[i], position, new)
            context = torch.cat([summaries[i][:, :, :, : is_summary.shape[1]], segment[i][:, :, :, :longest]], 3)
            h = _finish(block, h, q, context, visible)
        return h

    def _summarise(
        self,
        segment: list[Tensor],
        summaries: list[Tensor],
        finished: Tensor,
        is_done: Tensor,
        rotation: Rotation,
    ) -> None:
        """Write the summary of the present segment where that is done, bool (B,); other arguments as in `_run`."""
        tokens, batch = self.config.summary_tokens, len(finished)
        h = self.summary.expand(batch, -1, -1)
        cos, sin = (part.expand(-1, tokens, -1) for part in rotation)
        is_summary = self._is_written(finished)  # (B, M)
        whole = torch.ones(batch, tokens, self.config.segment_length, dtype=torch.bool, device=is_done.device)
        own = torch.ones(batch, tokens, tokens, dtype=torch.bool, device=is_done.device).tril()
        visible = torch.cat([is_summary[:, None].expand(-1, tokens, -1), whole, own], -1)[:, None]
        first = torch.zeros_like(finished) if self.config.overwrite else tokens * finished
        slots = torch.where(is_done, first, 0)[:, None] + torch.arange(tokens, device=first.device)  # (B, K)
        missing = max(0, int(slots.max()) + 1 - summaries[0].shape[3])
        for i, block in enumerate(self.blocks):
            assert isinstance(block, TransformerBlock)
            q, new = block.project(h, (cos, sin), tokens)
            context = torch.cat([summaries[i][:, :, :, : is_summary.shape[1]], segment[i].to(new.dtype), new], 3)
            h = _finish(block, h, q, context, visible)
            before = F.pad(summaries[i], (0, 0, 0, missing))
            summaries[i] = torch.where(is_done[:, None, None, None, None], _put(before, slots, new), before)

    def _is_written(self, finished: Tensor) -> Tensor:
        """Summary slots that hold a token of the trial, bool (B, M), up to the last one in any sequence."""
        count = self.config.summary_tokens * (finished.clamp(max=1) if self.config.overwrite else finished)
        return torch.arange(int(count.max()), device=finished.device) < count[:, None]


def _at(rotation: Rotation, steps: slice) -> Rotation:
    """The rotation of some steps."""
    cos, sin = rotation
    return cos[:, steps], sin[:, steps]


def _put(slots: Tensor, index: Tensor, new: Tensor) -> Tensor:
    """Return slots, (B, 2, heads, M, width), with `new`, (B, 2, heads, n, width), at `index`, int64 (B, n)."""
    where = index[:, None, None, :, None].expand(new.shape)
    return slots.scatter(3, where, new.to(slots.dtype))


def _finish(block: TransformerBlock, h: Tensor, q: Tensor, context: Tensor, visible: Tensor) -> Tensor:
    """Attend to keys and values, (B, 2, heads, M, width), where visible, and apply the MLP; float (B, n, D)."""
    keys, values = context.to(q.dtype).unbind(1)
    h = h + block.project_heads(attend(q, keys, values, causal=False, mask=visible))
    return h + block.mlp(h)
