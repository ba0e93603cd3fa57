"""Trials of N environments: the seed, trial and episode of each, and their generators."""

from __future__ import annotations

import numpy as np

from memenvs.task import BatchTask, Options

#: Keeps the generator of led motions apart from that of the episode.
_MOTIONS = 1


class Trials:
    """Counters of N environments, and the random generators that follow from them.

    Args:
        num_envs: N.

    Attributes:
        seed: int64, (N,); -1 for an environment that was never seeded.
        trial: int64, (N,); number of the trial; -1 before the first one of a seed.
        layout: int64, (N,); number of the trial's layout.
        episode: int64, (N,); index of the episode in its trial.
        episode_steps: int64, (N,); steps of the episode so far.
        trial_steps: int64, (N,); steps of the trial so far.
        trial_start: bool, (N,); True from a reset that began a trial until the step after it.
        is_due: bool, (N,); True where the next reset begins a trial for another reason than the number of episodes; see
            `are_over`.
    """

    def __init__(self, num_envs: int) -> None:
        self.seed = np.full(num_envs, -1, np.int64)
        self.trial = np.full(num_envs, -1, np.int64)
        self.layout = np.zeros(num_envs, np.int64)
        self.episode = np.zeros(num_envs, np.int64)
        self.episode_steps = np.zeros(num_envs, np.int64)
        self.trial_steps = np.zeros(num_envs, np.int64)
        self.trial_start = np.zeros(num_envs, bool)
        self.is_due = np.ones(num_envs, bool)

    def are_over(self, max_episodes: int | None) -> np.ndarray:
        """Mask of the environments whose next reset begins a trial, bool, (N,).

        Args:
            max_episodes: Episodes in a trial, >= 1; None for no limit.
        """
        if max_episodes is None:
            return self.is_due.copy()
        return self.is_due | (self.episode + 1 >= max_episodes)

    def set_seed(self, i: int, seed: int) -> None:
        """Give environment `i` a seed; its next reset begins trial 0."""
        self.seed[i] = seed
        self.trial[i] = -1  # the trial that begins next adds 1
        self.is_due[i] = True

    def begins_trial(self, i: int, max_episodes: int | None, options: Options, layout: int | None) -> bool:
        """Check whether a reset of environment `i` begins a trial.

        Args:
            i: Index of the environment.
            max_episodes: Episodes in a trial, >= 1; None for no limit.
            options: Those of an explicit reset; empty for an autoreset.
            layout: Layout that was requested; None for none.
        """
        is_requested = options.get("trial") is not None or options.get("new_trial", False)
        layout_changes = layout is not None and layout != self.layout[i]
        is_over = max_episodes is not None and self.episode[i] + 1 >= max_episodes
        return bool(self.is_due[i] or is_over or layout_changes or is_requested)

    def begin_trial(self, i: int, trial: int | None, layout: int | None, num_layouts: int) -> None:
        """Begin a trial of environment `i`; see `go_to` for its generator.

        Args:
            i: Index of the environment.
            trial: Its number; None for the one after the last.
            layout: Its layout; None to draw one.
            num_layouts: Layouts are drawn from 0 ... num_layouts - 1.
        """
        self.trial[i] = self.trial[i] + 1 if trial is None else trial
        drawn_layout = int(np.random.default_rng([self.seed[i], self.trial[i], 0]).integers(num_layouts))
        self.layout[i] = drawn_layout if layout is None else layout
        self.episode[i] = self.trial_steps[i] = 0

    def go_to(self, i: int, letter: int, task: BatchTask) -> tuple[int, np.random.Generator]:
        """Find the layout of a letter of the itinerary in the present trial of environment `i`.

        The letters have different homes, or different layouts where none is shared. A letter has the same layout
        whatever the rest of the itinerary.

        Args:
            i: Index of the environment.
            letter: Number of the letter; 0 is the layout of the trial.
            task: Draws from its layouts.

        Returns:
            Number of the layout, and the generator of the trial there, the same at each visit.
        """
        homes: set[int] = set()
        for number in range(letter + 1):
            rng = np.random.default_rng([self.seed[i], self.trial[i], 0, *([number] if number else [])])
            # Drawn even if not used, so that the option `layout` changes no other draw.
            layout = int(rng.integers(task.num_layouts))
            if number == 0:
                layout = int(self.layout[i])
            while task.home_of(layout) in homes:
                layout = int(rng.integers(task.num_layouts))
            homes.add(task.home_of(layout))
        return layout, rng

    def begin_episode(self, i: int, episode: int | None, *, is_first: bool) -> np.random.Generator:
        """Begin an episode of environment `i`.

        Args:
            i: Index of the environment.
            episode: Its index in the trial; None for the one after the last.
            is_first: True right after `begin_trial`.

        Returns:
            Generator of the episode.
        """
        if episode is not None:
            self.episode[i] = episode
        elif not is_first:
            self.episode[i] += 1
        self.trial_start[i] = is_first
        self.is_due[i] = False
        self.episode_steps[i] = 0
        return np.random.default_rng([self.seed[i], self.trial[i], 1 + self.episode[i]])

    def motion_rng(self, i: int) -> np.random.Generator:
        """Return the generator of the motions that lead environment `i` in this episode."""
        return np.random.default_rng([self.seed[i], self.trial[i], 1 + self.episode[i], _MOTIONS])

    def step(self, active: np.ndarray, max_steps: int | None) -> np.ndarray:
        """Count a step.

        Args:
            active: bool, (N,); environments that took it.
            max_steps: Steps in a trial, >= 1; None for no limit.

        Returns:
            bool, (N,); True where the step was the last of a trial.
        """
        self.episode_steps += active
        self.trial_steps += active
        self.trial_start &= ~active
        if max_steps is None:
            return np.zeros(len(active), bool)
        at_limit = active & (self.trial_steps >= max_steps)
        self.is_due |= at_limit
        return at_limit

    def info(self) -> dict[str, np.ndarray]:
        """Return the counters by their keys in `info`."""
        return {
            "seed": self.seed,
            "trial_id": self.trial,
            "trial_start": self.trial_start,
            "episode_index": self.episode,
            "layout_id": self.layout,
            "num_steps": self.episode_steps,
        }
