"""The contract of all memories: inputs of a step, state between calls, and the calls."""

from __future__ import annotations

import abc
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from torch import Tensor, nn

State = dict[str, Tensor]
"""State of a memory between calls: tensors with the batch first, so that rows can be sliced, moved and saved."""

ExtraInputs = dict[str, Tensor]
"""Inputs that a memory requires beside the embedding: fields of `StepInputs` by name, those in `EXTRA_INPUTS`."""
EXTRA_INPUTS: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
    "pose": (torch.float32, (3,)),
    "place": (torch.int64, ()),
    "move": (torch.int64, ()),
}
"""Type and shape of each extra input of one step."""

ResetOn = Literal["trial", "episode"]
"""Start that empties a memory."""


@dataclass(frozen=True)
class StepInputs:
    """Inputs of T consecutive steps of B sequences.

    Attributes:
        embedding: float, (B, T, D_in); the encoded observations.
        episode_start: bool, (B, T); True at the first step of an episode.
        trial_start: bool, (B, T); True at the first step of a trial, which empties the memory. Implies `episode_start`.
        pose: float, (B, T, 3); x m, y m, heading rad; None unless the memory requires it.
        place: int64, (B, T); index of the place; None unless the memory requires it.
        move: int64, (B, T); action that led to the step, where the body is moved by the environment; None unless the
            memory requires it.
    """

    embedding: Tensor
    episode_start: Tensor
    trial_start: Tensor
    pose: Tensor | None = None
    place: Tensor | None = None
    move: Tensor | None = None

    def steps(self, begin: int, end: int) -> StepInputs:
        """Steps `begin` to `end` (exclusive) of every sequence."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        cut = {name: None if value is None else value[:, begin:end] for name, value in values.items()}
        return StepInputs(**cut)

    def resets(self, reset_on: ResetOn) -> Tensor:
        """Steps before which a memory is emptied, bool (B, T)."""
        return self.trial_start if reset_on == "trial" else self.trial_start | self.episode_start


class Memory(nn.Module, abc.ABC):
    """Turns the embedding of each step into features that also depend on earlier steps.

    `forward` over T steps and T calls of `step` give the same features; every registered memory is tested for it.

    Attributes:
        input_dim: Width of the embedding.
        output_dim: Width D of the features.
        bounded: Whether the state keeps its size however many steps it has seen, so that it can be carried on for ever.
        uses_pose: Whether `StepInputs.pose` must be given.
        uses_place: Whether `StepInputs.place` must be given.
        uses_move: Whether `StepInputs.move` must be given.
    """

    input_dim: int
    output_dim: int
    bounded: bool = True
    uses_pose: bool = False
    uses_place: bool = False
    uses_move: bool = False

    @property
    def required_inputs(self) -> tuple[str, ...]:
        """Fields of `StepInputs` that must be given beside the embedding."""
        required = {"pose": self.uses_pose, "place": self.uses_place, "move": self.uses_move}
        return tuple(name for name in EXTRA_INPUTS if required[name])

    @abc.abstractmethod
    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return the state before the first step, on the module's device and in its dtype.

        Args:
            batch_size: Sequences in the batch, B.
            max_steps: Most steps of a trial, for memories that reserve room; None grows as needed.
        """

    @abc.abstractmethod
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence.

        Args:
            x: T = 1.
            state: From `initial_state` or the last call; may be changed in place.

        Returns:
            float (B, D) features, and the state for the next call.
        """

    @abc.abstractmethod
    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Learn: T steps at once, with gradients through all of them.

        Args:
            x: T steps; starts may be anywhere.
            state: From before the first step; None is the empty memory.
            last: Number of last steps whose features are returned, 1 to T; None for all.

        Returns:
            float (B, `last` or T, D) features, and the state after the last step (None where a memory
            keeps none when it started from None).
        """

    def decide(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute features of a few steps of whole trials, with gradients, for off-policy learning.

        Args:
            x: T steps, from the first one of a trial on.
            at: int64, (B, S); index of each wanted step, 0 ... T - 1.

        Returns:
            float, (B, S, D); as `forward` gives at these steps. A memory that can compute fewer steps than all
            overrides it.
        """
        features, _ = self(x)
        return features.gather(1, at[..., None].expand(-1, -1, features.shape[-1]))

    @torch.no_grad()
    def prefill(self, x: StepInputs, state: State, last: int | None = None) -> tuple[Tensor, State]:
        """Run `forward` without gradient, for the state after a past that is given at once.

        Args:
            x: T steps.
            state: From before the first step; may be changed in place.
            last: As in `forward`.

        Returns:
            As `forward`, with a state in any case.
        """
        features, after = self(x, state, last)
        assert after is not None
        return features, after


def last_steps(steps: int, last: int | None) -> int:
    """Return the number of last steps whose features are wanted.

    Args:
        steps: Steps in the input, T.
        last: As in `Memory.forward`.

    Raises:
        ValueError: `last` is not between 1 and T.
    """
    if last is None:
        return steps
    if not 1 <= last <= steps:
        raise ValueError(f"last must be between 1 and the number of steps ({steps}), got {last}")
    return last


def step_ranges(steps: int, length: int | None) -> list[tuple[int, int]]:
    """Begin and end of each run of `length` steps; all steps in one run if that is None."""
    length = length or steps
    return [(begin, min(begin + length, steps)) for begin in range(0, steps, length)]


def check_inputs(
    x: StepInputs, input_dim: int, uses_pose: bool = False, uses_place: bool = False, uses_move: bool = False
) -> tuple[int, int]:
    """Return (B, T) of an input whose shapes fit together.

    Raises:
        ValueError: The embedding is not (B, T, input_dim), a flag is not bool (B, T), or required poses, places or
            moves are not (B, T, 3) or int64 (B, T).
    """
    shape = tuple(x.embedding.shape)
    if len(shape) != 3 or shape[2] != input_dim or shape[1] < 1:
        raise ValueError(f"embedding must be (B, T, {input_dim}) with T >= 1, got {shape}")
    for name in ("episode_start", "trial_start"):
        flag = getattr(x, name)
        if tuple(flag.shape) != shape[:2] or flag.dtype != torch.bool:
            raise ValueError(f"{name} must be bool {shape[:2]}, got {flag.dtype} {tuple(flag.shape)}")
    pose = None if x.pose is None else tuple(x.pose.shape)
    if uses_pose and pose != (*shape[:2], 3):
        raise ValueError(f"pose must be {(*shape[:2], 3)}, got {pose}")
    for name, required in (("place", uses_place), ("move", uses_move)):
        number = getattr(x, name)
        if required and (number is None or tuple(number.shape) != shape[:2] or number.dtype != torch.int64):
            got = "None" if number is None else f"{number.dtype} {tuple(number.shape)}"
            raise ValueError(f"{name} must be int64 {shape[:2]}, got {got}")
    return shape[0], shape[1]
