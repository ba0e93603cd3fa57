"""Counters of steps and episodes against a loop."""

from __future__ import annotations

import torch
from torch import Tensor

from memenvs.agents.memory.clock import StepClock, last_reset


def test_last_reset_by_hand() -> None:
    resets = torch.tensor([[0, 0, 1, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    got = last_reset(resets, torch.tensor([4, 7, 2]))
    assert got.tolist() == [[-4, -4, 2, 2, 4], [0, 0, 0, 0, 0], [-2, -2, -2, -2, -2]]


def count_plainly(episode_start: list[bool], trial_start: list[bool]) -> list[tuple[int, int, int, int]]:
    """Episode of the trial, step of the episode, and the first step of each, for all steps."""
    episode, episode_first, trial_first, counts = 0, 0, 0, []
    for t, (starts_episode, starts_trial) in enumerate(zip(episode_start, trial_start, strict=True)):
        if starts_trial or t == 0:
            episode, trial_first = 0, t
        if starts_episode or starts_trial or t == 0:
            episode, episode_first = episode + 1, t
        counts.append((episode, t - episode_first, trial_first, episode_first))
    return counts


def check(clock: StepClock, expected: Tensor, begin: int, end: int) -> None:
    """Compare with the counts of steps `begin` to `end`; indices of steps count from `begin`."""
    fields = (clock.episode_index, clock.episode_step, clock.trial_first + begin, clock.episode_first + begin)
    assert torch.equal(torch.stack(fields, 2), expected[:, begin:end])


def test_counters_equal_a_loop_whole_and_in_parts() -> None:
    batch, steps = 40, 12
    generator = torch.Generator().manual_seed(0)
    trial_start = torch.rand(batch, steps, generator=generator) < 0.15
    episode_start = torch.rand(batch, steps, generator=generator) < 0.3
    rows = zip(episode_start.tolist(), trial_start.tolist(), strict=True)
    expected = torch.tensor([count_plainly(*row) for row in rows])
    check(StepClock.count(episode_start, trial_start), expected, 0, steps)
    before = StepClock.zeros(batch, torch.device("cpu"))
    for begin, end in ((0, 1), (1, 5), (5, 6), (6, 12)):
        clock = StepClock.count(episode_start[:, begin:end], trial_start[:, begin:end], before)
        check(clock, expected, begin, end)
        before = clock.after()
        episode, _, trial_first, episode_first = expected[:, end - 1].unbind(1)
        counters = {"length": end - trial_first, "episode_index": episode, "episode_step": end - episode_first}
        assert set(before) == set(counters) and all(torch.equal(before[name], counters[name]) for name in counters)
