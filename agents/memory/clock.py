"""Counters of the steps of a batch: episode of the trial, step of the episode."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from memenvs.agents.memory.base import State


def last_reset(resets: Tensor, past: Tensor) -> Tensor:
    """Index of the newest reset up to and including each step.

    Args:
        resets: bool, (B, T).
        past: int64, (B,); steps since the last reset before the first of the T steps.

    Returns:
        int64, (B, T); counted from the first of the T steps, so -`past` where none of them has reset yet.
    """
    now = torch.arange(resets.shape[1], device=resets.device)
    return torch.where(resets, now, -past[:, None]).cummax(1).values


@dataclass(frozen=True)
class StepClock:
    """Counters of T steps of B sequences, given what came before them.

    Attributes:
        episode_index: int64, (B, T); 1 in the first episode of a trial.
        episode_step: int64, (B, T); steps since the start of the episode; 0 at its first step.
        trial_first: int64, (B, T); step at which the trial began, counted from the first of the T steps; negative if
            earlier.
        episode_first: int64, (B, T); the same for the episode.
    """

    episode_index: Tensor
    episode_step: Tensor
    trial_first: Tensor
    episode_first: Tensor

    @staticmethod
    def count(episode_start: Tensor, trial_start: Tensor, before: State | None = None) -> StepClock:
        """Count T steps.

        Args:
            episode_start: bool, (B, T).
            trial_start: bool, (B, T); the start of a trial is also one of an episode.
            before: Counters from `after`; None, or a length of 0, is a trial that starts with the first step.
        """
        batch, steps = trial_start.shape
        if before is None:
            before = StepClock.zeros(batch, trial_start.device)
        episode_start = episode_start | trial_start
        trial_first = last_reset(trial_start, before["length"])
        episode_first = last_reset(episode_start, before["episode_step"])
        now = torch.arange(steps, device=trial_start.device)
        episodes = episode_start.cumsum(1)
        # episodes of the T steps that belong to an earlier trial; negative: episodes of this trial before the T steps
        earlier = torch.where(
            trial_first >= 0, episodes.gather(1, trial_first.clamp(min=0)) - 1, -before["episode_index"][:, None]
        )
        return StepClock(episodes - earlier, now - episode_first, trial_first, episode_first)

    @staticmethod
    def zeros(batch: int, device: torch.device) -> State:
        """Counters before the first step, int64 (B,) each.

        `length` counts steps of the trial, `episode_index` its episodes, `episode_step` steps of the episode.
        """
        return {
            name: torch.zeros(batch, dtype=torch.long, device=device)
            for name in ("length", "episode_index", "episode_step")
        }

    def after(self) -> State:
        """Counters after the last step."""
        return {
            "length": self.episode_index.shape[1] - self.trial_first[:, -1],
            "episode_index": self.episode_index[:, -1],
            "episode_step": self.episode_step[:, -1] + 1,
        }
