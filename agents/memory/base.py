"""The contract of all memories: inputs of a step, state between calls, and the calls."""

from __future__ import annotations

import abc
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

State = dict[str, Tensor]
"""State of a memory between calls: tensors with the batch first, so that rows can be sliced, moved and saved."""

ExtraInputs = dict[str, Tensor]
"""Inputs that some memories need beside the embedding: name (a key of `EXTRA_INPUTS`) -> tensor."""
EXTRA_INPUTS: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
    "pose": (torch.float32, (3,)),
    "place": (torch.int64, ()),
    "move": (torch.int64, ()),
}
"""dtype and shape of each extra input, for one step of one sequence."""

STRATEGY = "strategy"
"""Key of the eviction strategy in the state of a memory that has `Memory.strategies`."""


@dataclass(frozen=True)
class StepInputs:
    """Inputs of T consecutive steps of B sequences.

    Attributes:
        embedding: float, (B, T, D_in); the encoded observations.
        episode_start: bool, (B, T); True at the first step of an episode.
        trial_start: bool, (B, T); True at the first step of a trial. Implies `episode_start`.
        pose: float, (B, T, 3); x m, y m, heading rad; None unless the memory requires it.
        place: int64, (B, T); number of the room or cell of the agent; None unless the memory requires it.
        move: int64, (B, T); number of the movement that led to this step, in tasks where the environment moves the
            agent; None unless the memory requires it.
        strategy: int64, (B, T); number of the eviction strategy in `memenvs.retention.STRATEGY_NAMES`. That of the step
            before which the memory is emptied holds until it is emptied again. None: that of the state. Only memories
            with `Memory.strategies` read it.
    """

    embedding: Tensor
    episode_start: Tensor
    trial_start: Tensor
    pose: Tensor | None = None
    place: Tensor | None = None
    move: Tensor | None = None
    strategy: Tensor | None = None

    def steps(self, begin: int, end: int) -> StepInputs:
        """Steps `begin` to `end` (exclusive) of every sequence."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        sliced: dict[str, Any] = {
            name: None if value is None else value[:, begin:end] for name, value in values.items()
        }
        return StepInputs(**sliced)


class Memory(nn.Module, abc.ABC):
    """Turns the embedding of each step into features that also depend on earlier steps.

    `forward` over T steps and T calls of `step` give the same features; every registered memory is tested for it.

    Attributes:
        input_dim: Width of the embedding.
        output_dim: Width D of the features.
        bounded: Whether the size of the state does not grow with the number of steps, so that a trial may be endless.
        uses_pose: Whether `StepInputs.pose` must be given.
        uses_place: Whether `StepInputs.place` must be given.
        uses_move: Whether `StepInputs.move` must be given.
        strategies: Names of the eviction strategies that a caller can choose from, by `StepInputs.strategy` in learning
            and by `strategy` in the state, int64 (B,), in acting, where it may change as the memory is emptied. Empty
            where nothing is evicted, or there is nothing to choose.
    """

    input_dim: int
    output_dim: int
    bounded: bool = True
    uses_pose: bool = False
    uses_place: bool = False
    uses_move: bool = False
    strategies: tuple[str, ...] = ()

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
            max_steps: Steps of the longest trial, for memories that allocate in advance; None grows as needed.
        """

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Advance every sequence by one step, to act, without gradient.

        Memories that have a shorter way than `forward` with T = 1 override this.

        Args:
            x: Inputs of one step, T = 1.
            state: From `initial_state` or the last call. May be changed in place, so do not use it again.

        Returns:
            float (B, D) features, and the state for the next call.
        """
        features, after = self(x, state)
        return features[:, 0], after

    @abc.abstractmethod
    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Process T steps at once, to learn; gradients flow through all of them.

        Args:
            x: T steps; episodes and trials may start at any of them.
            state: State before the first of these steps; None for an empty memory.
            last: Return the features of only the last `last` steps, 1 to T; None for all.

        Returns:
            float (B, `last` or T, D) features, and the state after the last step. Some memories return None for the
            state if `state` was None.
        """

    def features_at(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute the features of some steps of whole trials, for off-policy learning.

        Gradients flow as in `forward`.

        Args:
            x: T steps, from the first one of a trial on.
            at: int64, (B, S); indices of the wanted steps, 0 ... T - 1.

        Returns:
            float, (B, S, D); equal to those of `forward` at these steps.
        """
        # Memories that can compute a few steps without all others override this.
        features, _ = self(x)
        return features.gather(1, at[..., None].expand(-1, -1, features.shape[-1]))

    def auxiliary_loss(self) -> Tensor | None:
        """Take a loss of the memory's own, which a learner adds to that of the task.

        Returns:
            float, (); of the last `forward` in training mode with gradients, the mean over its sequences. None where a
            memory has none, and at a second call.
        """
        return None

    def standardize(self, embedding: Tensor) -> bool:
        """Scale the initial weights to the inputs; learners call it before their first update.

        Args:
            embedding: float, (M, D_in); embeddings of M steps of an untrained policy.

        Returns:
            Whether the weights have changed; False for most memories, and once they are scaled.
        """
        return False

    @torch.no_grad()
    def prefill(self, x: StepInputs, state: State, last: int | None = None) -> tuple[Tensor, State]:
        """Run `forward` without gradient and without dropout, to get the state after T past steps.

        Args:
            x: T steps.
            state: State before the first of them; may be changed in place.
            last: As in `forward`.

        Returns:
            As `forward`; the state is never None.
        """
        was_training = self.training
        self.eval()
        features, after = self(x, state, last)
        self.train(was_training)
        assert after is not None
        return features, after


def n_last_steps(steps: int, last: int | None) -> int:
    """Return `last`, or the number of steps if it is None, after a check.

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
    """Cut steps into segments of `length` steps; None makes a single one.

    Returns:
        (begin, end) of each segment; `end` is exclusive.
    """
    length = length or steps
    return [(begin, min(begin + length, steps)) for begin in range(0, steps, length)]


def check_inputs(
    x: StepInputs, input_dim: int, uses_pose: bool = False, uses_place: bool = False, uses_move: bool = False
) -> tuple[int, int]:
    """Check the shapes and dtypes of step inputs.

    Args:
        x: The inputs.
        input_dim: Expected width of the embedding.
        uses_pose: Whether the pose is required.
        uses_place: Whether the place is required.
        uses_move: Whether the move is required.

    Returns:
        (B, T).

    Raises:
        ValueError: The embedding is not (B, T, input_dim), a start flag is not bool (B, T), or a required pose is not
            (B, T, 3), or a required place or move is not int64 (B, T).
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
        value = getattr(x, name)
        if required and (value is None or tuple(value.shape) != shape[:2] or value.dtype != torch.int64):
            got = "None" if value is None else f"{value.dtype} {tuple(value.shape)}"
            raise ValueError(f"{name} must be int64 {shape[:2]}, got {got}")
    return shape[0], shape[1]
