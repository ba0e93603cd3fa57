"""Log of the past steps of a token memory, joined with new steps: who is in memory when.

A log is in the state of the memory: tensors with a row for each past step. New steps are appended in place where there
is room in all sequences side by side. An older state shares the log and stays valid, as each state has its own
`step_index`, which marks the steps in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.memory.base import STRATEGY, State
from memenvs.agents.memory.chunking import ranks_within
from memenvs.retention import eviction_times


@dataclass(frozen=True)
class Timeline:
    """The past steps of a state's log, followed by T new ones: N in all.

    Attributes:
        steps: Fields of the log. `value`, float (B, N, D): the embedding. `step_index`, int64 (B, N): steps since the
            last reset; -1 if the step is no longer in memory. As far as the memory needs them, int64 (B, N): `place`,
            `move`, and `earlier_visits` (number of earlier steps at the same place since the reset).
        reset_count: int64, (B, N); number of resets among the new steps, up to and including this one; 0 for past
            steps.
        evicted_at: int64, (B, N); index of the step whose arrival evicts this one. N if it stays, its own index if it
            is never stored.
        past: Number of past steps, N - T.
        strategy: int64, (B,); number of the eviction strategy after the last step.
        is_appended: Whether the fields are views of the state's log, to which the new steps have been appended.
    """

    steps: State
    reset_count: Tensor
    evicted_at: Tensor
    past: int
    strategy: Tensor
    is_appended: bool


def join_steps(
    new: State,
    resets: Tensor,
    strategy: Tensor,
    strategies: Tensor,
    state: State | None,
    *,
    capacity: int | None,
    n_places: int,
) -> Timeline:
    """Join past and new steps, and compute when each is evicted.

    Args:
        new: Fields of T new steps; see `Timeline.steps`.
        resets: bool, (B, T); new steps that empty the memory first.
        strategy: int64, (B,); number of the eviction strategy before them.
        strategies: int64, (B, T); that at each of them.
        state: State with the log of past steps; its log is written in place where there is room and no gradient is
            needed. None for no past.
        capacity: Number of steps in memory; None for all.
        n_places: Number of places.
    """
    steps = resets.shape[1]
    reset_count = resets.cumsum(1)
    past = 0 if state is None else int(state["end"].max())
    is_appended = False
    if state is not None:
        is_appended = not torch.is_grad_enabled() and _has_room(state, past, steps)
        new = {
            name: _appended(state[name], value, past)
            if is_appended and name != "step_index"
            else torch.cat([state[name][:, :past], value], 1)
            for name, value in new.items()
        }
        resets = torch.cat([torch.zeros_like(resets[:, :1]).expand(-1, past), resets], 1)
        reset_count = torch.cat([torch.zeros_like(reset_count[:, :1]).expand(-1, past), reset_count], 1)
    strategies = torch.cat([strategy[:, None].expand(-1, past), strategies], 1)
    places = new.get("place", torch.zeros_like(new["step_index"]))
    evicted_at = eviction_times(
        places.masked_fill(new["step_index"] < 0, -1).cpu().numpy(),  # -1: no longer in memory
        strategies.cpu().numpy(),
        capacity,
        n_places=n_places,
        resets=resets.cpu().numpy(),
    )
    evicted = torch.from_numpy(evicted_at).to(resets.device)
    return Timeline(new, reset_count, evicted, past, strategies[:, -1], is_appended)


def earlier_visits(place: Tensor, reset_count: Tensor, before: Tensor | None) -> Tensor:
    """Count the earlier steps at the same place since the reset.

    Args:
        place: int64, (B, T).
        reset_count: int64, (B, T); as in `Timeline`.
        before: int64, (B, P); past steps at each place since the reset. None for no past.

    Returns:
        int64, (B, T).
    """
    keys = reset_count * (int(place.max()) + 1) + place  # one key for each pair of reset and place
    earlier = ranks_within(keys, torch.ones_like(keys, dtype=torch.bool))
    return earlier if before is None else earlier + before.gather(1, place) * (reset_count == 0)


def next_state(timeline: Timeline, state: State) -> State:
    """Return the state after the last step of a timeline that `state` was joined to."""
    total = timeline.reset_count.shape[1]  # N
    in_memory = timeline.evicted_at == total
    after = state | {"length": timeline.steps["step_index"][:, -1] + 1, STRATEGY: timeline.strategy}
    if "visits" in state:
        is_since_reset = timeline.reset_count == timeline.reset_count[:, -1:]
        is_since_reset[:, : timeline.past] = False  # `visits` counts them already
        place = timeline.steps["place"].clamp(min=0)  # -1 behind the end of a row with a shorter past
        visits = torch.zeros_like(state["visits"]).scatter_add(1, place, is_since_reset.long())
        after["visits"] = visits + state["visits"] * (timeline.reset_count[:, -1:] == 0)
    step_index = timeline.steps["step_index"].masked_fill(~in_memory, -1)
    fields = {name: value.detach() for name, value in timeline.steps.items() if name != "step_index"}
    slots = state["step_index"].shape[1]
    if timeline.is_appended or _has_room(state, timeline.past, total - timeline.past):
        if not timeline.is_appended:
            for name, value in fields.items():
                _appended(state[name], value[:, timeline.past :], timeline.past)
        after["step_index"] = F.pad(step_index, (0, slots - total), value=-1)
        after["end"] = torch.full_like(state["end"], total)
        return after
    return after | _compacted(fields | {"step_index": step_index}, in_memory, slots)


def take_steps(values: Tensor, at: Tensor) -> Tensor:
    """Select steps of each sequence.

    Args:
        values: (B, N) or (B, N, D).
        at: int64, (B, S); an expanded row where the steps are the same in all sequences, which is faster.

    Returns:
        (B, S) or (B, S, D).
    """
    if at.stride(0) == 0:
        return values.index_select(1, at[0])
    return values.gather(1, at if values.ndim == 2 else at[..., None].expand(-1, -1, values.shape[-1]))


def shifted(at: Tensor, by: int) -> Tensor:
    """Add a number to indices, (B, S), and keep an expanded row expanded."""
    return (at[:1] + by).expand_as(at) if at.stride(0) == 0 else at + by


def _has_room(state: State, past: int, steps: int) -> bool:
    """Return True if new steps can be appended in place: slots are left and all pasts are equally long."""
    return past + steps <= state["step_index"].shape[1] and bool((state["end"] == past).all())


def _appended(log: Tensor, new: Tensor, past: int) -> Tensor:
    """Write new steps, (B, T, ...), behind `past` steps of a log, and view all of them, (B, past + T, ...)."""
    end = past + new.shape[1]
    log[:, past:end] = new
    return log[:, :end]


def _compacted(fields: State, in_memory: Tensor, slots: int) -> State:
    """Copy the steps in memory to the front of new tensors.

    Args:
        fields: (B, N) or (B, N, D) each.
        in_memory: bool, (B, N).
        slots: Length of the new tensors. If more steps are in memory, the length is twice their number.

    Returns:
        The fields, (B, slots, ...), and `end`, int64 (B,), the number of slots in use.
    """
    count = int(in_memory.sum(1).max())
    slots = slots if count <= slots else 2 * count
    order = (~in_memory).long().argsort(dim=1, stable=True)[:, :count]  # those in memory first, in their order
    state = {}
    for name, value in fields.items():
        index = order if value.ndim == 2 else order[..., None].expand(-1, -1, value.shape[-1])
        moved = value.gather(1, index)  # (B, count, ...)
        state[name] = moved.new_full((len(moved), slots, *moved.shape[2:]), -1 if name == "step_index" else 0)
        state[name][:, :count] = moved
    return state | {"end": torch.full_like(order[:, 0], count)}
