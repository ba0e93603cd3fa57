"""A log of the newest steps in a memory's state: tensors that are written one step at a time and seen as one run of slots.

There is room for twice the capacity. Steps are appended in place, and when the room is full the newest ones move to new tensors: a state
that was kept from before stays what it was, and the cost of moving is one copy per step. A state holds the log's tensors, float
(B, ..., room, width), and the counters `length`, steps since the last reset, and `end`, the slot after the newest step, int64 (B,) each.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from memenvs.agents.memory.base import State

COUNTERS = ("length", "end")


def empty_log(batch: int, capacity: int, shapes: Mapping[str, tuple[int, ...]], like: Tensor) -> State:
    """A log before the first step.

    Args:
        batch: Rows, B.
        capacity: Steps that can be seen, >= 1.
        shapes: Name of each tensor -> its shape in one slot; the last number is the width, those before come before the slots.
        like: Device and dtype.
    """
    counters = {name: torch.zeros(batch, dtype=torch.int64, device=like.device) for name in COUNTERS}
    room = {name: (batch, *shape[:-1], 2 * capacity, shape[-1]) for name, shape in shapes.items()}
    return counters | {name: like.new_zeros(shape) for name, shape in room.items()}


def view_log(state: State, capacity: int) -> tuple[State, Tensor]:
    """The steps that count.

    Args:
        state: With a log.
        capacity: The most that are seen; at most that given to `empty_log`.

    Returns:
        The log's tensors, float (B, ..., L, width), the newest step last, where L is the number of steps of the row with most; and int64
        (B,), how many of the last slots count in each row.
    """
    live = state["length"].clamp(max=capacity)
    longest, ends = int(live.max()), state["end"]
    end = int(ends[0])
    if bool((ends == end).all()):
        return {name: value[..., end - longest : end, :] for name, value in _tensors(state).items()}, live
    return _newest(state, longest), live


def reserve(state: State, capacity: int, steps: int) -> State:
    """The log with room for some steps at the same slots in all rows.

    Args:
        state: With a log.
        capacity: As given to `empty_log`.
        steps: 1 to `capacity`.

    Returns:
        The state itself, or one with new tensors.
    """
    ends, tensors = state["end"], _tensors(state)
    end = int(ends[0])
    if end + steps <= 2 * capacity and bool((ends == end).all()):
        return state
    end = capacity - steps  # those before no longer count after these steps
    opened = {name: torch.zeros_like(value) for name, value in tensors.items()}
    for name, value in _newest(state, end).items():
        opened[name][..., :end, :] = value
    return opened | {"length": state["length"], "end": torch.full_like(ends, end)}


def put(state: State, name: str, new: Tensor, before: int) -> Tensor:
    """Writes one step of one tensor behind the end, which does not yet count it, and shows it with some before it, without a copy.

    Args:
        state: From `reserve`; written in place.
        name: Of the tensor.
        new: float, (B, ..., 1, width).
        before: How many.

    Returns:
        float, (B, ..., before + 1, width).
    """
    end = int(state["end"][0])
    state[name][..., end : end + 1, :] = new
    return state[name][..., end - before : end + 1, :]


def append(state: State, new: State, resets: Tensor, capacity: int) -> State:
    """Adds steps; the tensors of the state are written in place if there is room for all rows side by side.

    Args:
        state: With a log.
        new: The log's tensors of T steps, float (B, ..., T, width).
        resets: bool, (B, T); everything before such a step no longer counts.
        capacity: As given to `empty_log`.

    Returns:
        The state after them.
    """
    steps, written = resets.shape[1], min(resets.shape[1], capacity)
    opened = reserve(state, capacity, written)
    end = int(opened["end"][0])
    for name, value in new.items():
        opened[name][..., end : end + written, :] = value[..., steps - written :, :].detach()
    first = torch.where(resets, torch.arange(steps, device=resets.device), -1).amax(1)
    length = torch.where(first >= 0, steps - first, opened["length"] + steps)
    return opened | {"length": length, "end": opened["end"] + written}


def _tensors(state: State) -> State:
    """The log's tensors without its counters."""
    return {name: value for name, value in state.items() if name not in COUNTERS}


def _newest(state: State, count: int) -> State:
    """The last slots of each row, float (B, ..., count, width); what a row does not have is filled with others."""
    rows = torch.arange(len(state["end"]), device=state["end"].device)
    slots = (state["end"][:, None] - count + torch.arange(count, device=rows.device)).clamp(min=0)
    taken = {name: value.movedim(-2, 1)[rows[:, None], slots] for name, value in _tensors(state).items()}
    return {name: value.movedim(1, -2) for name, value in taken.items()}
