"""Parts that all scene memories share: elements of steps, relative to the present pose."""

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
from memenvs.agents.memory.base import Memory, ResetOn, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.memory.step_log import append, empty_log, view_log
from memenvs.checks import check_fields, check_int

TimeEmbedding = Literal["exponential", "sinusoidal", "none"]
POSITION_SCALE = 5.0
"""Metres that count as 1."""
SINES = 16
"""Width of the sinusoidal embedding of an age."""
ELEMENTS_AT_ONCE = {"cpu": 2048, "cuda": 1 << 17}
"""Memory elements of decisions that are computed together; more are slower on a CPU, whose caches they leave."""
KEPT_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 21}
"""Memory elements above which learning computes decisions again in the backward pass; keeping them takes 10 kB each."""


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """Settings that all scene memories have.

    Attributes:
        dim: Width D of a memory element and of the features; >= 1.
        capacity: Newest steps that are kept, the present one among them; >= 1.
        poses: Whether elements encode the pose at which they were observed; False leaves them their age (an ablation).
        pose_dim: Width of the embedded pose; >= 1.
        time: Encoding of the age of an element: "exponential" (e^(-age / tau) for each tau), "sinusoidal" (8 sines
            and 8 cosines of the age) or "none".
        tau: Steps, > 0, one number or several; 1 unless `time` is "exponential".
        rectified: Whether elements pass a ReLU. Without it they are linear in their pose, so that keys and values can
            be kept.
        reset_on: Start that empties the memory: of a trial or of an episode. Poses must be in one frame between resets.
    """

    dim: int = 128
    capacity: int = 500
    poses: bool = True
    pose_dim: int = 16
    time: TimeEmbedding = "exponential"
    tau: float | Sequence[float] = 1.0
    rectified: bool = False
    reset_on: ResetOn = "trial"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("dim", "capacity", "pose_dim"):
            check_int(name, getattr(self, name))
        are_numbers = all(isinstance(tau, (int, float)) and not isinstance(tau, bool) for tau in self.scales)
        if not self.scales or not are_numbers or not all(0 < tau < math.inf for tau in self.scales):
            raise ValueError(f"tau must be one or several numbers above 0, got {self.tau!r}")
        if self.time != "exponential" and self.scales != (1.0,):
            raise ValueError(f"tau must be 1.0 with time {self.time!r}, which has no scale, got {self.tau!r}")
        if not self.view_dim:
            raise ValueError("time must not be 'none' without poses: nothing would distinguish elements")

    @property
    def scales(self) -> tuple[float, ...]:
        """`tau` as a tuple."""
        return (self.tau,) if isinstance(self.tau, (int, float)) else tuple(self.tau)

    @property
    def view_dim(self) -> int:
        """Width V of a view: 4 numbers of the relative pose and those of the age."""
        return 4 * self.poses + {"exponential": len(self.scales), "sinusoidal": SINES, "none": 0}[self.time]


def relative_poses(poses: Tensor, now: Tensor) -> Tensor:
    """Transform poses into the frame of another.

    Args:
        poses: float, (..., 3); x m, y m, heading rad.
        now: float, (..., 3); the other.

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
    """Encode ages.

    Args:
        age: float, (L,); steps, >= 0.
        config: `time` and `tau`.

    Returns:
        float, (L, 1 for each tau, 16 or 0).

    Source:
        Fang et al., 2019, section 3.2 (exponential); Vaswani et al., 2017 (sinusoidal).
    """
    if config.time == "exponential":
        return torch.exp(-age[:, None] / age.new_tensor(config.scales))
    if config.time == "none":
        return age.new_zeros(len(age), 0)
    return sinusoid(age, SINES)


class SceneMemory(Memory):
    """Keeps an element for each of the newest steps and reads them all for each decision.

    An element is psi = W_f [x, W_p v], where the view v, the relative pose and the age, differs at every decision.
    Without a ReLU,

        psi = u + P v     u = W_x x + b, of the step alone

    and so are linear maps of psi, the queries, keys and values of a first attention: A psi = A u + (A P) v. Their
    static parts are computed once per step and kept, and a decision adds (A P) v. Kept parts are those of the weights
    that made them.

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
        self.pose = nn.Linear(config.view_dim, config.pose_dim)
        self.fusion = nn.Linear(input_dim + config.pose_dim, config.dim)

    @abc.abstractmethod
    def projections(self) -> tuple[nn.Linear, ...]:
        """Linear maps without bias, D to D, that a decision needs of every element."""

    @abc.abstractmethod
    def read(self, static: Tensor, view: Tensor, view_weight: Tensor, absent: Tensor | None) -> Tensor:
        """Compute decisions, each over its own elements; the last of them is the present step.

        Args:
            static: float, (G, L, W); static parts of each element.
            view: float, (G, L, V); relative pose and age of each element.
            view_weight: float, (V, W); elements are `static + view @ view_weight`, see `elements`.
            absent: bool, (G, L); True for slots without an element; None if there are none.

        Returns:
            float, (G, D).
        """

    # ------------------------------------------------------------------ elements

    def static_parts(self, embedding: Tensor) -> Tensor:
        """Static parts, float (..., W): u and, without a ReLU, its projections."""
        width, weight = self.input_dim, self.fusion.weight
        bias = self.fusion.bias + weight[:, width:] @ self.pose.bias
        u = F.linear(embedding, weight[:, :width], bias)
        return torch.cat([u, *(layer(u) for layer in self._stored_projections())], -1).to(weight.dtype)

    def view_weight(self) -> Tensor:
        """Map from a view to its share of elements and projections, [P, A P, ...]; float (V, W)."""
        p = self.fusion.weight[:, self.input_dim :] @ self.pose.weight  # (D, V)
        return torch.cat([p, *(layer.weight @ p for layer in self._stored_projections())]).T

    def elements(self, static: Tensor, view: Tensor, view_weight: Tensor) -> tuple[Tensor, ...]:
        """Elements and their projections, float (G, L, D) each; args as in `read`."""
        whole = torch.addmm(static.flatten(0, 1), view.flatten(0, 1), view_weight).view(static.shape)  # (G, L, W)
        if not self.config.rectified:
            return whole.split(self.config.dim, -1)
        psi = whole.relu()
        return psi, *(layer(psi) for layer in self.projections())

    def _stored_projections(self) -> tuple[nn.Linear, ...]:
        return () if self.config.rectified else self.projections()

    # ------------------------------------------------------------------ contract

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """An empty log of static parts and poses; see `Memory.initial_state`."""
        shapes = {"static": (self.config.dim * (1 + len(self._stored_projections())),), "pose": (3,)}
        return empty_log(batch_size, self.config.capacity, shapes, self.fusion.weight)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence, without gradient; see `Memory.step`."""
        check_inputs(x, self.input_dim, self.uses_pose)
        state = append(state, self._record(x), x.resets(self.config.reset_on), self.config.capacity)
        log, live = view_log(state, self.config.capacity)
        return self._read(log["static"], log["pose"], live, self.view_weight()), state

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Learn: T steps at once; see `Memory.forward`.

        With a state, the steps go on after the past that it holds, through which no gradient flows. Without one None is
        returned for it.
        """
        batch, steps = check_inputs(x, self.input_dim, self.uses_pose)
        kept = last_steps(steps, last)
        new, resets = self._record(x), x.resets(self.config.reset_on)
        at = torch.arange(steps - kept, steps, device=resets.device).expand(batch, -1)  # (B, kept)
        if state is None:
            return self._decisions(new, self._oldest(resets, torch.zeros_like(at[:, 0])), at, 0), None
        past, live = view_log(state, self.config.capacity)
        whole = {name: torch.cat([past[name], value], 1) for name, value in new.items()}
        features = self._decisions(whole, self._oldest(resets, live), at, past["pose"].shape[1])
        return features, append(state, new, resets, self.config.capacity)

    def features_at(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute the features of some steps of whole trials, and only these; see `Memory.features_at`."""
        batch, _ = check_inputs(x, self.input_dim, self.uses_pose)
        no_past = torch.zeros(batch, dtype=torch.int64, device=at.device)
        return self._decisions(self._record(x), self._oldest(x.resets(self.config.reset_on), no_past), at, 0)

    def _record(self, x: StepInputs) -> State:
        """Static parts and poses of T steps."""
        pose = x.embedding.new_zeros(*x.trial_start.shape, 3) if not self.uses_pose else x.pose
        assert pose is not None
        return {"static": self.static_parts(x.embedding), "pose": pose.to(self.fusion.weight.dtype)}

    def _oldest(self, resets: Tensor, live: Tensor) -> Tensor:
        """Oldest step that each of T steps reads.

        Args:
            resets: bool, (B, T).
            live: int64, (B,); steps of the past that still count.

        Returns:
            int64, (B, T); counted from the first of the T steps, negative if it came before.
        """
        now = torch.arange(resets.shape[1], device=resets.device)
        return torch.maximum(last_reset(resets, live), now - self.config.capacity + 1)

    # ------------------------------------------------------------------ decisions

    def _decisions(self, elements: State, oldest: Tensor, at: Tensor, past: int) -> Tensor:
        """Compute decisions of B sequences; those with similar numbers of elements are computed together.

        Args:
            elements: Static parts and poses of K steps, float (B, K, ...).
            oldest: int64, (B, T); from `_oldest`.
            at: int64, (B, S); steps of the T.
            past: Steps of the K that came before the T.

        Returns:
            float, (B, S, D).
        """
        static, poses = (elements[name].flatten(0, 1) for name in ("static", "pose"))  # (B K, ...)
        steps, view_weight = elements["pose"].shape[1], self.view_weight()
        rows = torch.arange(len(at), device=at.device)[:, None] * steps + past
        newest = (rows + at).flatten()  # (B S,): index of the present step of each decision
        first = (rows + oldest.gather(1, at)).flatten()
        lengths, order = (newest - first + 1).sort()
        kind = "cuda" if at.is_cuda else "cpu"
        is_large = int(lengths.sum()) > KEPT_ELEMENTS[kind]

        def decide(group: Tensor, live: Tensor, static: Tensor, view_weight: Tensor) -> Tensor:
            longest = int(live[-1])
            slots = newest[group, None] + torch.arange(1 - longest, 1, device=at.device)  # (G, longest)
            slots = torch.maximum(slots, first[group, None])
            own_static, own_poses = (
                each.index_select(0, slots.flatten()).unflatten(0, slots.shape) for each in (static, poses)
            )
            return self._read(own_static, own_poses, live, view_weight)

        groups = order.split(group_sizes(lengths.tolist(), ELEMENTS_AT_ONCE[kind]))
        counts = lengths.split([len(group) for group in groups])
        features = [
            checkpointed(decide, group, live, static, view_weight, when=is_large)
            for group, live in zip(groups, counts, strict=True)
        ]
        back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return torch.cat(features).index_select(0, back).unflatten(0, at.shape)

    def _read(self, static: Tensor, poses: Tensor, live: Tensor, view_weight: Tensor) -> Tensor:
        """Read elements whose last slot is the present step.

        Args:
            static: float, (G, L, W).
            poses: float, (G, L, 3).
            live: int64, (G,); number of last slots that count.
            view_weight: As in `read`.
        """
        longest = static.shape[1]
        age = torch.arange(longest - 1, -1, -1, device=poses.device)
        view = embed_age(age.to(poses.dtype), self.config).expand(len(poses), -1, -1)
        if self.uses_pose:
            view = torch.cat([relative_poses(poses, poses[:, -1:]), view], -1)  # (G, L, V)
        absent = None if int(live.min()) == longest else age >= live[:, None]
        return self.read(static, view, view_weight, absent)


def group_sizes(lengths: list[int], at_most: int) -> list[int]:
    """Pack decisions into groups of at most `at_most` elements, padding included.

    Args:
        lengths: Elements of each decision, ascending.
        at_most: Elements of a group; a single decision may have more.

    Returns:
        Decisions of each group.
    """
    sizes, count = [], 0
    for length in lengths:
        if count > 0 and (count + 1) * length > at_most:
            sizes.append(count)
            count = 0
        count += 1
    return [*sizes, count]
