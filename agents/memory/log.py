"""A log of the newest steps in a memory's state: tensors that are written one step at a time and seen as one run of slots.

There is room for twice the capacity. Steps are appended in place, and when the room is full the newest ones move to new tensors: a state
that was kept from before stays what it was, and the cost of moving is one copy per step. A state holds the log's tensors, float
(B, room, width), and the counters `length`, steps since the last reset, and `end`, the slot after the newest step, int64 (B,) each.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from agents.memory.base import State

COUNTERS = ("length", "end")


def empty_log(batch: int, capacity: int, widths: Mapping[str, int], like: Tensor) -> State:
    """A log before the first step.

    Args:
        batch: Rows, B.
        capacity: Steps that can be seen, >= 1.
        widths: Name of each tensor -> its width.
        like: Device and dtype.
    """
    counters = {name: torch.zeros(batch, dtype=torch.int64, device=like.device) for name in COUNTERS}
    return counters | {name: like.new_zeros(batch, 2 * capacity, width) for name, width in widths.items()}


def view_log(state: State, capacity: int) -> tuple[State, Tensor]:
    """The steps that count.

    Args:
        state: With a log.
        capacity: As given to `empty_log`.

    Returns:
        The log's tensors, float (B, L, width), the newest step last, where L is the number of steps of the row with most; and int64 (B,), how
        many of the last slots count in each row.
    """
    live = state["length"].clamp(max=capacity)
    longest, ends = int(live.max()), state["end"]
    end = int(ends[0])
    if bool((ends == end).all()):
        return {name: value[:, end - longest : end] for name, value in _tensors(state).items()}, live
    return _newest(state, longest), live


def append(state: State, new: State, resets: Tensor, capacity: int) -> State:
    """Adds steps; the tensors of the state are written in place if there is room for all rows side by side.

    Args:
        state: With a log.
        new: The log's tensors of T steps, float (B, T, width).
        resets: bool, (B, T); everything before such a step no longer counts.
        capacity: As given to `empty_log`.

    Returns:
        The state after them.
    """
    steps = resets.shape[1]
    ends, tensors = state["end"], _tensors(state)
    room = next(iter(tensors.values())).shape[1]
    end = int(ends[0])
    if end + steps > room or not bool((ends == end).all()):
        kept = _newest(state, capacity)
        tensors = {name: torch.zeros_like(value) for name, value in tensors.items()}
        end = max(0, capacity - steps)
        for name, value in tensors.items():
            value[:, :end] = kept[name][:, capacity - end :]
        if steps > room:
            new, end, steps = {name: value[:, -capacity:] for name, value in new.items()}, 0, capacity
    for name, value in tensors.items():
        value[:, end : end + steps] = new[name].detach()
    now = torch.arange(resets.shape[1], device=resets.device)
    first = torch.where(resets, now, -1).amax(1)
    length = torch.where(first >= 0, resets.shape[1] - first, state["length"] + resets.shape[1])
    return tensors | {"length": length, "end": torch.full_like(ends, end + steps)}


def _tensors(state: State) -> State:
    """The log's tensors without its counters."""
    return {name: value for name, value in state.items() if name not in COUNTERS}


def _newest(state: State, count: int) -> State:
    """The last slots of each row, float (B, count, width); what a row does not have is filled with others."""
    slots = (state["end"][:, None] - count + torch.arange(count, device=state["end"].device)).clamp(min=0)
    return {
        name: value.gather(1, slots[..., None].expand(-1, -1, value.shape[2]))
        for name, value in _tensors(state).items()
    }
