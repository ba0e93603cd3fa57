"""Base of the scene memories: one element per step, with its pose relative to now."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import checkpointed
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.memory.step_log import append, empty_log, view_log
from memenvs.agents.sizes import check_sizes

TimeEmbedding = Literal["exponential", "sinusoidal", "none"]
POSITION_SCALE = 5.0
"""Relative positions are divided by this length, m."""
POSE_DIM = 16
"""Width of the embedded pose."""
SINES = 16
"""Width of the sinusoidal embedding of an age."""
ELEMENTS_AT_ONCE = {"cpu": 2048, "cuda": 1 << 17}
"""Memory elements that are read together; more would not fit the caches of a CPU and take longer."""
CHECKPOINTED_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 21}
"""Memory elements above which learning uses gradient checkpointing; without it, each takes 10 kB."""


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """Settings that all scene memories have.

    Attributes:
        dim: Width D of a memory element and of the features; >= 1.
        capacity: Newest steps that are kept, the current one among them; >= 1.
        poses: Whether elements encode the pose at which they were observed; if False, only their age (an ablation).
        time: Encoding of the age of an element: "exponential" (e^(-age / tau) for each tau), "sinusoidal" (8 sines
            and 8 cosines of the age) or "none".
        tau: Time constant of the age, steps; > 0, one or several; 1 unless `time` is "exponential".
        rectified: Whether elements pass a ReLU. Without it they are linear in their relative pose, so that most of
            their keys and values is computed only once.
    """

    dim: int = 128
    capacity: int = 500
    poses: bool = True
    time: TimeEmbedding = "exponential"
    tau: float | Sequence[float] = 1.0
    rectified: bool = False

    def __post_init__(self) -> None:
        check_sizes(self)
        are_numbers = all(isinstance(tau, (int, float)) and not isinstance(tau, bool) for tau in self.scales)
        if not self.scales or not are_numbers or not all(0 < tau < math.inf for tau in self.scales):
            raise ValueError(f"tau must be one or several numbers above 0, got {self.tau!r}")
        if self.time != "exponential" and self.scales != (1.0,):
            raise ValueError(f"tau must be 1.0 with time {self.time!r}, which has no scale, got {self.tau!r}")
        if not self.relative_dim:
            raise ValueError("time must not be 'none' without poses: nothing would distinguish elements")

    @property
    def scales(self) -> tuple[float, ...]:
        """`tau` as a tuple."""
        return (self.tau,) if isinstance(self.tau, (int, float)) else tuple(self.tau)

    @property
    def relative_dim(self) -> int:
        """Width R of the relative part of an element: 4 numbers of the pose, then those of the age."""
        return 4 * self.poses + {"exponential": len(self.scales), "sinusoidal": SINES, "none": 0}[self.time]


def embed_relative_poses(poses: Tensor, now: Tensor) -> Tensor:
    """Transform poses into the frame of the pose `now`.

    Args:
        poses: float, (..., 3); x m, y m, heading rad.
        now: float, (..., 3).

    Returns:
        float, (..., 4); x / 5, y / 5 (x ahead, y to the left), cosine and sine of the heading.

    Source:
        Fang et al., 2019, section 3.2.
    """
    dx, dy, heading = (poses - now).unbind(-1)
    cos, sin = now[..., 2].cos(), now[..., 2].sin()
    ahead = cos * dx + sin * dy
    left = cos * dy - sin * dx
    return torch.stack([ahead / POSITION_SCALE, left / POSITION_SCALE, heading.cos(), heading.sin()], -1)


def embed_age(age: Tensor, config: SceneConfig) -> Tensor:
    """Encode the ages of elements.

    Args:
        age: float, (L,); steps since the element was observed, >= 0.
        config: `time` and `tau`.

    Returns:
        float, (L, E), with E the number of taus ("exponential"), 16 ("sinusoidal") or 0 ("none").

    Source:
        Fang et al., 2019, section 3.2 (exponential); Vaswani et al., 2017 (sinusoidal).
    """
    if config.time == "exponential":
        return torch.exp(-age[:, None] / age.new_tensor(config.scales))
    if config.time == "none":
        return age.new_zeros(len(age), 0)
    return sinusoid(age, SINES)


class SceneMemory(Memory):
    """Stores an element for each of the newest steps, and reads all of them at each step.

    An element is psi = W_f [x, W_p r + b_p] + b. Its embedding x is fixed. Its relative part r, the pose and age as
    observed from the current step, changes at every step. Without a ReLU, an element is a sum of a static part u, which
    depends on x alone, and a linear map of r (P = W_f's columns of the pose, times W_p):

        psi = u + P r

    The queries, keys and values of the first attention layer are linear maps A of psi, and so are such sums too:
    A psi = A u + (A P) r. Each u and A u is computed once and stored; reading adds P r and (A P) r. Stored parts do not
    change when the weights do.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, encoding of ages.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", 2019, sections 3.1 and 3.2.
    """

    def __init__(self, input_dim: int, config: SceneConfig) -> None:
        super().__init__()
        self.config = config
        self.uses_pose = config.poses
        self.input_dim, self.output_dim = input_dim, config.dim
        self.pose = nn.Linear(config.relative_dim, POSE_DIM)
        self.fusion = nn.Linear(input_dim + POSE_DIM, config.dim)

    @abc.abstractmethod
    def projections(self) -> tuple[nn.Linear, ...]:
        """Linear maps A without bias, D to D, that `read` needs of every element."""

    @abc.abstractmethod
    def read(self, static: Tensor, relative: Tensor, relative_weight: Tensor, absent: Tensor | None) -> Tensor:
        """Compute the features of G steps, each from its own elements.

        Args:
            static: float, (G, L, W); static parts [u, A u, ...] of each element. The last element is the current step.
            relative: float, (G, L, R); relative pose and age of each element.
            relative_weight: float, (R, W); [P, A P, ...]. `static + relative @ relative_weight` are the elements and
                their projections, see `elements`.
            absent: bool, (G, L); True for slots without an element; None if all have one.

        Returns:
            float, (G, D); features.
        """

    def static_parts(self, embedding: Tensor) -> Tensor:
        """Static parts of elements, float (..., W): u and, without a ReLU, A u of each projection."""
        width, weight = self.input_dim, self.fusion.weight
        bias = self.fusion.bias + weight[:, width:] @ self.pose.bias
        u = F.linear(embedding, weight[:, :width], bias)
        return torch.cat([u, *(layer(u) for layer in self._stored_projections())], -1).to(weight.dtype)

    def relative_weight(self) -> Tensor:
        """Map of relative parts to elements and their projections, [P, A P, ...]; float (R, W)."""
        p = self.fusion.weight[:, self.input_dim :] @ self.pose.weight  # (D, R)
        return torch.cat([p, *(layer.weight @ p for layer in self._stored_projections())]).T

    def elements(self, static: Tensor, relative: Tensor, relative_weight: Tensor) -> tuple[Tensor, ...]:
        """Elements psi and their projections A psi, float (G, L, D) each; args as in `read`."""
        if static.is_contiguous():
            summed = torch.addmm(static.flatten(0, 1), relative.flatten(0, 1), relative_weight).view(static.shape)
        else:  # a view of the log while acting, which `addmm` would copy first
            summed = (relative.flatten(0, 1) @ relative_weight).view(static.shape).add_(static)
        if not self.config.rectified:
            return summed.split(self.config.dim, -1)
        psi = summed.relu()
        return psi, *(layer(psi) for layer in self.projections())

    def _stored_projections(self) -> tuple[nn.Linear, ...]:
        return () if self.config.rectified else self.projections()

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return an empty log of static parts and poses; see `Memory.initial_state`."""
        shapes = {"static": (self.config.dim * (1 + len(self._stored_projections())),), "pose": (3,)}
        return empty_log(batch_size, self.config.capacity, shapes, self.fusion.weight)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Advance every sequence by one step, without gradient; see `Memory.step`."""
        check_inputs(x, self.input_dim, self.uses_pose)
        state = append(state, self._record(x), x.trial_start, self.config.capacity)
        log, n_valid = view_log(state, self.config.capacity)
        return self._read(log["static"], log["pose"], n_valid, self.relative_weight()), state

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Process T steps at once, to learn; see `Memory.forward`.

        With a state, the steps follow those in it, through which no gradient flows. Without a state, the returned state
        is None.
        """
        batch, steps = check_inputs(x, self.input_dim, self.uses_pose)
        n_last = n_last_steps(steps, last)
        new = self._record(x)
        resets = x.trial_start
        at = torch.arange(steps - n_last, steps, device=resets.device).expand(batch, -1)  # (B, n_last)
        if state is None:
            return self._decisions(new, self._oldest(resets, torch.zeros_like(at[:, 0])), at, 0), None
        past, n_valid = view_log(state, self.config.capacity)
        joined = {name: torch.cat([past[name], value], 1) for name, value in new.items()}  # (B, P + T, ...)
        features = self._decisions(joined, self._oldest(resets, n_valid), at, past["pose"].shape[1])
        return features, append(state, new, resets, self.config.capacity)

    def features_at(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute the features of some steps only; see `Memory.features_at`."""
        batch, _ = check_inputs(x, self.input_dim, self.uses_pose)
        no_past = torch.zeros(batch, dtype=torch.int64, device=at.device)
        return self._decisions(self._record(x), self._oldest(x.trial_start, no_past), at, 0)

    def _record(self, x: StepInputs) -> State:
        """Return what the log stores of T steps: `static`, (B, T, W), and `pose`, (B, T, 3)."""
        pose = x.embedding.new_zeros(*x.trial_start.shape, 3) if not self.uses_pose else x.pose
        assert pose is not None
        return {"static": self.static_parts(x.embedding), "pose": pose.to(self.fusion.weight.dtype)}

    def _oldest(self, resets: Tensor, n_valid: Tensor) -> Tensor:
        """Find the oldest step that each of T steps reads.

        Args:
            resets: bool, (B, T).
            n_valid: int64, (B,); earlier steps since the last reset.

        Returns:
            int64, (B, T); index counted from the first of the T steps, negative for an earlier step.
        """
        now = torch.arange(resets.shape[1], device=resets.device)
        return torch.maximum(last_reset(resets, n_valid), now - self.config.capacity + 1)

    def _decisions(self, elements: State, oldest: Tensor, at: Tensor, past: int) -> Tensor:
        """Compute the features of S steps of B sequences.

        Steps that read similar numbers of elements are computed together, to save padding.

        Args:
            elements: `static` and `pose` of K steps, float (B, K, ...): first the past ones, then the T new ones.
            oldest: int64, (B, T); from `_oldest`.
            at: int64, (B, S); indices of the wanted steps among the T.
            past: Number of past steps, K - T.

        Returns:
            float, (B, S, D).
        """
        static, poses = (elements[name].flatten(0, 1) for name in ("static", "pose"))  # (B K, ...)
        relative_weight = self.relative_weight()
        # Indices into the B K flattened steps.
        first_new = torch.arange(len(at), device=at.device)[:, None] * elements["pose"].shape[1] + past  # (B, 1)
        newest = (first_new + at).flatten()  # (B S,): each wanted step, which is the newest that it reads
        first = (first_new + oldest.gather(1, at)).flatten()  # (B S,): the oldest that it reads
        lengths, order = (newest - first + 1).sort()
        device = "cuda" if at.is_cuda else "cpu"
        is_large = int(lengths.sum()) > CHECKPOINTED_ELEMENTS[device]

        # Tensors with gradients are arguments, so that checkpointing tracks them.
        def read_group(group: Tensor, n_valid: Tensor, static: Tensor, relative_weight: Tensor) -> Tensor:
            longest = int(n_valid[-1])  # lengths ascend
            slots = newest[group, None] + torch.arange(1 - longest, 1, device=at.device)  # (G, longest)
            slots = torch.maximum(slots, first[group, None])  # padding repeats the oldest step; `_read` masks it
            own_static, own_poses = (
                x.index_select(0, slots.flatten()).unflatten(0, slots.shape) for x in (static, poses)
            )
            return self._read(own_static, own_poses, n_valid, relative_weight)

        groups = order.split(group_sizes(lengths.tolist(), ELEMENTS_AT_ONCE[device]))
        counts = lengths.split([len(group) for group in groups])
        features = [
            checkpointed(read_group, group, n_valid, static, relative_weight, when=is_large)
            for group, n_valid in zip(groups, counts, strict=True)
        ]
        # Undo the sorting.
        inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return torch.cat(features).index_select(0, inverse).unflatten(0, at.shape)

    def _read(self, static: Tensor, poses: Tensor, n_valid: Tensor, relative_weight: Tensor) -> Tensor:
        """Compute the relative parts of elements, and read them.

        Args:
            static: float, (G, L, W); the last slot is the current step.
            poses: float, (G, L, 3).
            n_valid: int64, (G,); number of last slots that hold an element of the row; the others are padding.
            relative_weight: As in `read`.

        Returns:
            float, (G, D).
        """
        longest = static.shape[1]
        age = torch.arange(longest - 1, -1, -1, device=poses.device)  # (L,)
        exact = torch.promote_types(poses.dtype, torch.float32)  # half precision has no integers above 256
        relative = embed_age(age.to(exact), self.config).to(poses.dtype).expand(len(poses), -1, -1)  # (G, L, E)
        if self.uses_pose:
            relative = torch.cat([embed_relative_poses(poses, poses[:, -1:]), relative], -1)  # (G, L, R)
        absent = None if int(n_valid.min()) == longest else age >= n_valid[:, None]
        return self.read(static, relative, relative_weight, absent)


def group_sizes(lengths: list[int], max_elements: int) -> list[int]:
    """Pack steps into groups of at most `max_elements` elements, padding included.

    Args:
        lengths: Number of elements that each step reads, ascending.
        max_elements: Largest number of elements of a group; a single step may have more.

    Returns:
        Number of steps of each group.
    """
    sizes, count = [], 0
    for length in lengths:
        if count > 0 and (count + 1) * length > max_elements:  # each is padded to the longest
            sizes.append(count)
            count = 0
        count += 1
    return [*sizes, count]
