"""A log of the newest steps in a memory's state, read as one slice of slots.

The log has slots for twice the capacity. Steps are appended in place. When the slots are full, the newest steps are
copied to new tensors, so that an older state stays as it was. On average that copies one step for each step appended.
A state holds the tensors of the log, float (B, ..., slots, width), and two counters, int64 (B,): `length`, steps
since the last reset, and `end`, the slot after the newest step.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from memenvs.agents.memory.base import State

COUNTERS = ("length", "end")


def empty_log(batch: int, capacity: int, shapes: Mapping[str, tuple[int, ...]], like: Tensor) -> State:
    """Return a log before the first step.

    Args:
        batch: Rows, B.
        capacity: Largest number of steps that `view_log` shows, >= 1.
        shapes: Name of each tensor -> its shape in one slot, (..., width). The tensor is (B, ..., slots, width).
        like: Tensor with the device and dtype of the log.
    """
    counters = {name: torch.zeros(batch, dtype=torch.int64, device=like.device) for name in COUNTERS}
    full = {name: (batch, *shape[:-1], 2 * capacity, shape[-1]) for name, shape in shapes.items()}
    return counters | {name: like.new_zeros(shape) for name, shape in full.items()}


def view_log(state: State, capacity: int) -> tuple[State, Tensor]:
    """View the valid steps: those since the last reset, at most `capacity` of them.

    Args:
        state: State with a log.
        capacity: Largest number of steps in the view; at most that of `empty_log`.

    Returns:
        The log's tensors, float (B, ..., L, width), the newest step last; L is the largest number of valid steps of a
        row. And the number of valid steps of each row, int64 (B,): they are its last slots.
    """
    n_valid = state["length"].clamp(max=capacity)
    longest, ends = int(n_valid.max()), state["end"]
    end = int(ends[0])
    if bool((ends == end).all()):
        return {name: value[..., end - longest : end, :] for name, value in _tensors(state).items()}, n_valid
    return _newest(state, longest), n_valid


def reserve(state: State, capacity: int, steps: int) -> State:
    """Make room for some steps at the same slots in all rows.

    Args:
        state: State with a log.
        capacity: That of `empty_log`.
        steps: 1 to `capacity`.

    Returns:
        The state itself, or one with new tensors.
    """
    ends, tensors = state["end"], _tensors(state)
    end = int(ends[0])
    if end + steps <= 2 * capacity and bool((ends == end).all()):
        return state
    end = capacity - steps  # older steps are no longer valid once the new ones are there
    copies = {name: torch.zeros_like(value) for name, value in tensors.items()}
    for name, value in _newest(state, end).items():
        copies[name][..., :end, :] = value
    return copies | {"length": state["length"], "end": torch.full_like(ends, end)}


def put(state: State, name: str, new: Tensor, before: int) -> Tensor:
    """Write one step of one tensor behind the end, and view it with some steps before it.

    The counters do not include it yet.

    Args:
        state: From `reserve`; written in place.
        name: Name of the tensor.
        new: float, (B, ..., 1, width); the step.
        before: Number of steps before it to include in the view.

    Returns:
        float, (B, ..., before + 1, width); not a copy.
    """
    end = int(state["end"][0])
    state[name][..., end : end + 1, :] = new
    return state[name][..., end - before : end + 1, :]


def append(state: State, new: State, resets: Tensor, capacity: int) -> State:
    """Append steps, in place if there is room for all rows side by side.

    Args:
        state: State with a log.
        new: The log's tensors of T steps, float (B, ..., T, width).
        resets: bool, (B, T); everything before such a step becomes invalid.
        capacity: That of `empty_log`.

    Returns:
        The state after them.
    """
    steps = resets.shape[1]
    written = min(steps, capacity)
    reserved = reserve(state, capacity, written)
    end = int(reserved["end"][0])
    for name, value in new.items():
        reserved[name][..., end : end + written, :] = value[..., steps - written :, :].detach()
    newest_reset = torch.where(resets, torch.arange(steps, device=resets.device), -1).amax(1)
    length = torch.where(newest_reset >= 0, steps - newest_reset, reserved["length"] + steps)
    return reserved | {"length": length, "end": reserved["end"] + written}


def _tensors(state: State) -> State:
    """The log's tensors without its counters."""
    return {name: value for name, value in state.items() if name not in COUNTERS}


def _newest(state: State, count: int) -> State:
    """The last slots of each row, float (B, ..., count, width); where a row has fewer, arbitrary ones."""
    rows = torch.arange(len(state["end"]), device=state["end"].device)
    slots = (state["end"][:, None] - count + torch.arange(count, device=rows.device)).clamp(min=0)
    taken = {name: value.movedim(-2, 1)[rows[:, None], slots] for name, value in _tensors(state).items()}
    return {name: value.movedim(1, -2) for name, value in taken.items()}
