"""Which trial, episode and step of an episode each step of a batch of sequences is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from memenvs.agents.memory.base import State


@dataclass(frozen=True)
class StepClock:
    """Where T steps of B sequences lie, given what came before them.

    Attributes:
        episode_index: int64, (B, T); 1 in the first episode of a trial.
        episode_step: int64, (B, T); steps since the start of the episode; 0 at its first step.
        trial_first: int64, (B, T); the step at which the trial began, counted from the first of the T steps; negative if earlier.
        episode_first: int64, (B, T); the same for the episode.
    """

    episode_index: Tensor
    episode_step: Tensor
    trial_first: Tensor
    episode_first: Tensor

    @staticmethod
    def read(episode_start: Tensor, trial_start: Tensor, before: State | None = None) -> StepClock:
        """The clock of T steps.

        Args:
            episode_start: bool, (B, T).
            trial_start: bool, (B, T); the start of a trial is also one of an episode.
            before: Counters as `after` gives them; None, or a length of 0, is a trial that starts with the first step.
        """
        batch, steps = trial_start.shape
        if before is None:
            before = StepClock.zeros(batch, trial_start.device)
        length = before["length"][:, None]
        trial_start = torch.cat([trial_start[:, :1] | (length == 0), trial_start[:, 1:]], dim=1)
        episode_start = episode_start | trial_start
        now = torch.arange(steps, device=trial_start.device)
        trial = torch.where(trial_start, now, -1).cummax(1).values
        episode = torch.where(episode_start, now, -1).cummax(1).values
        episode_first = torch.where(episode >= 0, episode, -before["episode_step"][:, None])
        count = episode_start.cumsum(1)
        before_trial = torch.where(
            trial >= 0, count.gather(1, trial.clamp(min=0)) - 1, -before["episode_index"][:, None]
        )
        return StepClock(
            count - before_trial, now - episode_first, torch.where(trial >= 0, trial, -length), episode_first
        )

    @staticmethod
    def zeros(batch: int, device: torch.device) -> State:
        """Counters before the first step, int64 (B,) each: steps of the trial, index of the episode, steps of the episode."""
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
