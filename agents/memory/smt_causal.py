"""Causal Scene Memory Transformer: attention to relative poses, one pass per episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import KeyWindow, attend, rotate, rotation_factors
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.scene_memory import POSITION_SCALE
from memenvs.agents.memory.smt import AttentionBlock
from memenvs.agents.memory.step_log import append, empty_log, put, reserve, view_log
from memenvs.agents.memory.transformer import Rotation
from memenvs.agents.sizes import check_sizes

POSE_FEATURES = 6
"""Features of a pose that are stored with each key and value, see `pose_features`."""
POSE_WIDTH = 8
"""Their width after padding: attention kernels need widths that are multiples of 8."""
SIGMAS = (0.5, 2.0)
"""Initial standard deviation of the Gaussian of the first and of the last head of a block, m."""


@dataclass(frozen=True, kw_only=True)
class CausalConfig:
    """Settings of the causal Scene Memory Transformer.

    Attributes:
        dim: Width D of a memory element and of the features; >= 1.
        capacity: Newest steps that each layer attends to, the current one among them; >= 1.
        layers: Attention blocks; >= 1. Through L blocks, information comes from up to L times `capacity` steps back.
        heads: Attention heads; divides `dim` into even widths.
        rope_base: Base of the rotation by step; > 1.
        sigmas: Initial standard deviation of the Gaussian of the first and of the last head of a block, m; > 0. The
            points start at 1.5 times this distance from the robot.
    """

    dim: int = 128
    capacity: int = 500
    layers: int = 2
    heads: int = 8
    rope_base: float = 10_000.0
    sigmas: Sequence[float] = SIGMAS

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.dim % (2 * self.heads):
            raise ValueError(f"dim must be an even multiple of heads ({self.heads}), got {self.dim}")
        if self.rope_base <= 1:
            raise ValueError(f"rope_base must be above 1, got {self.rope_base}")
        if len(self.sigmas) != 2 or not all(0 < sigma < math.inf for sigma in self.sigmas):
            raise ValueError(f"sigmas must be two numbers above 0, got {self.sigmas!r}")


class RelativePoseBlock(AttentionBlock):
    """Attention block with relative poses, whose heads prefer keys near a point.

    r = (x / 5, y / 5, cos, sin) is the pose of a key in the frame of the query. A head attends with

        key k + K r,   value v + V r,   score - b |r_xy - c|^2

    so that it prefers what was observed near its point c, for instance in the cell ahead. The point moves and rotates
    with the query. b and c are learned. Points start around the robot, by default at 0.75 m to 3 m; the standard
    deviations of the Gaussians e^(-b |r_xy - c|^2) start at 0.5 m to 2 m.

    Although r depends on the query, keys and values are made once. r and |r_xy|^2 are a matrix product F g. The vector
    g depends on the pose of the key alone (`pose_features`), the matrix F on that of the query alone (`query_frames`).
    The terms of the score in r are t F g, with t from q, b and c. So this is ordinary attention with longer vectors:
    t F is appended to q, and g to k and v. The output has the weighted mean of g; F maps it to that of r.

    Args:
        dim: Width D.
        heads: Attention heads.
        angle: Rotation of the initial points of this block about the robot, rad, so that blocks differ.
        sigmas: Initial standard deviation of the Gaussian of the first and of the last head, m.
    """

    def __init__(self, dim: int, heads: int, angle: float = 0.0, sigmas: Sequence[float] = SIGMAS) -> None:
        super().__init__(dim, heads)
        self.key_place, self.value_place = (nn.Linear(4, dim, bias=False) for _ in range(2))  # K, V
        sigma = torch.logspace(math.log10(sigmas[0]), math.log10(sigmas[1]), heads) / POSITION_SCALE
        angles = 2.0 * math.pi * torch.arange(heads) / heads + angle
        self.log_sharpness = nn.Parameter(-(2.0 * sigma.square()).log())  # b
        self.centre = nn.Parameter(1.5 * sigma[:, None] * torch.stack([angles.cos(), angles.sin()], -1))  # c

    def project(self, x: Tensor, features: Tensor, rotation: Rotation) -> Tensor:
        """Make keys and values with poses beside them, float (B, 2, heads, T, width + 8).

        Args:
            x: float, (B, T, D).
            features: float, (B, T, 6); g, see `pose_features`.
            rotation: Rotary embedding of the steps.
        """
        k, v = (layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.key, self.value))  # (B, T, heads, width)
        k = rotate(k[:, :, None], *rotation)[:, :, 0]
        g = F.pad(features, (0, POSE_WIDTH - POSE_FEATURES))[:, :, None].expand(-1, -1, self.heads, -1)
        return torch.stack([torch.cat([k, g], -1), torch.cat([v, g], -1)], 1).transpose(2, 3)

    def attend_relative(
        self, x: Tensor, keys_values: Tensor, frames: Tensor, rotation: Rotation, mask: Tensor | KeyWindow | None
    ) -> Tensor:
        """Return the block's output, float (B, T, D).

        Args:
            x: float, (B, T, D); queries.
            keys_values: float, (B, 2, heads, M, width + 8); from `project`.
            frames: float, (B, T, 5, 6); F, see `query_frames`.
            rotation: Rotary embedding of the steps of x.
            mask: Keys that each step attends to; None is all up to itself.
        """
        heads, width = self.heads, x.shape[-1] // self.heads
        q = self.query(x).unflatten(-1, (heads, width))  # (B, T, heads, width)
        k_r = torch.einsum("bthw,hwr->bthr", q, self.key_place.weight.view(heads, width, 4))  # K^T q
        b = self.log_sharpness.exp()[:, None]
        # -b |r_xy - c|^2 as coefficients of (r, |r_xy|^2), (heads, 5); the term b |c|^2 is equal for all keys: left out
        gaussian = torch.cat([2.0 * b * self.centre, torch.zeros_like(self.centre), -b], 1)
        query_r = F.pad(k_r, (0, 1)) + gaussian * width**0.5  # (B, T, heads, 5); `attend` divides by the root
        query_g = F.pad(torch.einsum("bthr,btrg->bthg", query_r, frames), (0, POSE_WIDTH - POSE_FEATURES))
        q = torch.cat([rotate(q[:, :, None], *rotation)[:, :, 0], query_g], -1)
        q = q * ((width + POSE_WIDTH) / width) ** 0.5  # so that the scale is that of the width without poses
        keys, values = keys_values.unbind(1)
        attended = attend(q.transpose(1, 2), keys, values, causal=mask is None, mask=mask).transpose(1, 2)
        g = attended[..., width : width + POSE_FEATURES]  # (B, T, heads, 6)
        r = torch.einsum("bthg,btrg->bthr", g, frames[..., :4, :])
        v_r = torch.einsum("bthr,hwr->bthw", r, self.value_place.weight.view(heads, width, 4))
        return self.finish(x, (attended[..., :width] + v_r).flatten(2))


def pose_features(poses: Tensor) -> Tensor:
    """Compute the features g of the pose of a key.

    g = (x / 5, y / 5, 1, cos, sin, (x / 5)^2 + (y / 5)^2).

    Args:
        poses: float, (..., 3); x, y (m), heading (rad).

    Returns:
        float, (..., 6).
    """
    x, y, heading = poses.unbind(-1)
    x, y = x / POSITION_SCALE, y / POSITION_SCALE
    return torch.stack([x, y, torch.ones_like(x), heading.cos(), heading.sin(), x * x + y * y], -1)


def query_frames(poses: Tensor) -> Tensor:
    """Make the matrix F that converts features g of a key's pose into the frame of a query.

    F g is the pose of the key in this frame, (x / 5, y / 5, cos, sin), and its squared distance / 25.

    Args:
        poses: float, (..., 3); of queries: x, y (m), heading (rad).

    Returns:
        float, (..., 5, 6).
    """
    x, y, one, cos, sin, square = pose_features(poses).unbind(-1)
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
    r"""Transformer over the steps, with relative poses in keys and values and a rotation by step.

    Idea:
        Relative poses enter the scores and values of attention, not the elements. So the keys and values of a step
        never change: acting costs one query per layer, and one pass gives all decisions of an episode. Each head also
        prefers what was seen near a point that moves with the robot.

    Equations:
        .. math::

            s_{tj} &= q_t^\top (k_j + K r_{tj}) / \sqrt{w} - b\, \lVert \rho_{tj} - c \rVert^2 \\
            a_t &= \operatorname{softmax}_j s_{tj}, \quad t - M < j \le t \\
            h'_t &= \operatorname{block}(h_t,\; \textstyle\sum_j a_{tj} (v_j + V r_{tj}))

        r is the pose of step j in the frame of step t, (x / 5, y / 5, cos, sin), and rho its position. b and c are
        learned for each head, K and V for each block. Queries and keys are rotated by the step. The block is that of
        `smt`; there are L, and the features are h of the last.

    State:
        A log with slots for twice the capacity M. A slot has keys, values and numbers of the pose for each layer and
        head: 2 L (D + 8 h) numbers with h heads.

    Cost:
        A decision takes L (5 D^2 + 2 M (D + 8 h)) multiply-adds. A pass over T steps takes T L 5 D^2 for projections,
        and attention to at most M steps for each.

    When to use:
        Exploration and search with a known pose; it is the fastest scene memory, and the one to try first.

    When not to use:
        Without a pose, which it requires. To reproduce the paper, use `smt`.

    Difference from the paper:
        It is ours, not the paper's. In `smt` elements are encoded anew from each pose, and scores are linear in
        relative positions: they can find what is farthest ahead, but not what is near a point. As there, features stay
        the same if all poses are moved and rotated together.

    Args:
        input_dim: Width of the embedding.
        config: Sizes and capacity.

    Source:
        This package. Blocks of Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR
        2019 (arXiv:1903.03878); relative terms in keys and values as in Shaw et al., "Self-Attention with Relative
        Position Representations", 2018 (arXiv:1803.02155); rotation of Su et al., "RoFormer", 2021 (arXiv:2104.09864).
    """

    uses_pose = True

    def __init__(self, input_dim: int, config: CausalConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.input = nn.Linear(input_dim, config.dim)
        self.blocks = nn.ModuleList(
            RelativePoseBlock(config.dim, config.heads, i, config.sigmas) for i in range(config.layers)
        )

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """An empty log of keys and values of all layers; see `Memory.initial_state`."""
        config = self.config
        shape = (2, config.heads, config.dim // config.heads + POSE_WIDTH)
        shapes = {str(layer): shape for layer in range(config.layers)}
        return empty_log(batch_size, config.capacity, shapes, self.input.weight)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Learn: T steps at once; see `Memory.forward`. Without a state, the returned state is None.

        It runs in the precision of its weights also under autocast: a squared distance is a small difference of large
        numbers.
        """
        with torch.autocast(x.embedding.device.type, enabled=False):
            return self._run(replace(x, embedding=x.embedding.to(self.input.weight.dtype)), state, last)

    def _run(self, x: StepInputs, state: State | None, last: int | None) -> tuple[Tensor, State | None]:
        """See `forward`."""
        batch, steps = check_inputs(x, self.input_dim, uses_pose=True)
        n_last = n_last_steps(steps, last)
        config = self.config
        resets = x.trial_start
        past: State = {}
        before = 0  # slots of earlier steps
        n_valid = torch.zeros(batch, dtype=torch.int64, device=resets.device)
        length = n_valid
        is_acting = state is not None and steps == 1 and not torch.is_grad_enabled()
        if state is not None:
            if is_acting:  # keys and values are written to the slots that are read
                state = reserve(state, config.capacity, 1)
            past, n_valid = view_log(state, config.capacity - 1)
            before = past["0"].shape[-2]
            length = state["length"]
        now = torch.arange(steps, device=resets.device)
        step = now - last_reset(resets, length)  # (B, T), since the reset
        first = before + torch.maximum(last_reset(resets, n_valid), now - config.capacity + 1)
        assert x.pose is not None
        pose = x.pose.to(self.input.weight.dtype)
        rotation, features = self._rotation(step), pose_features(pose)
        h = self.input(x.embedding)
        new: State = {}
        for i, block in enumerate(self.blocks):
            assert isinstance(block, RelativePoseBlock)
            name = str(i)
            new[name] = block.project(h, features, rotation)
            if is_acting:
                assert state is not None
                keys_values = put(state, name, new[name], before)
            else:
                keys_values = torch.cat([past[name], new[name]], -2) if past else new[name]
            begin = steps - n_last if i == config.layers - 1 else 0  # the last layer computes wanted features only
            cos, sin = rotation
            h = block.attend_relative(
                h[:, begin:], keys_values, query_frames(pose[:, begin:]), (cos[:, begin:], sin[:, begin:]),
                _mask(first[:, begin:], before + steps),
            )  # fmt: skip
        return h, None if state is None else append(state, new, resets, config.capacity)

    def _rotation(self, step: Tensor) -> Rotation:
        """Cosine and sine of the rotation by step, int64 (B, T)."""
        width, dtype = self.config.dim // self.config.heads, self.input.weight.dtype
        exponent = torch.arange(0, width, 2, device=step.device, dtype=torch.float64) / width
        angle = step[..., None] * self.config.rope_base**-exponent  # (B, T, width / 2)
        cos, sin = rotation_factors(angle)
        return cos.to(dtype), sin.to(dtype)


def _mask(first: Tensor, keys: int) -> Tensor | KeyWindow | None:
    """Mask for `RelativePoseBlock.attend_relative`.

    Args:
        first: int64, (B, T); oldest key that a step attends to. The last of the T steps is the last key, and so on.
        keys: Number of keys.
    """
    if not bool(first.any()):
        return None
    steps = first.shape[1]
    last = torch.arange(keys - steps, keys, device=first.device).expand_as(first)
    if steps > 1:
        return KeyWindow(first, last)
    return (torch.arange(keys, device=first.device) >= first[..., None])[:, None]
