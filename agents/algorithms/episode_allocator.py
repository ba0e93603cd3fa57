"""Strategies of memories in reinforcement learning, and the returns that they lead to."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.memory import Memory, State
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.memory.base import STRATEGY
from memenvs.wrappers.trial import TrialWrapper


class EpisodeAllocator:
    """Chooses a strategy where a memory is emptied, and sums the rewards until it is again.

    The steps in memory follow from places and strategy alone. So a learner stores the strategy of each step, and
    computes the memory again with gradients.

    Args:
        allocator: The allocator that chooses.
        num_envs: N.

    Attributes:
        finished: (number of the strategy, undiscounted return) of each stay that has ended and that nothing could cut
            off, in the order of steps and environments, since `take_finished`.
        begun: Number of stays that have begun since then, by the number of the strategy.

    Source:
        Ours; the paper names PPO only.
    """

    def __init__(self, allocator: AdaptiveAllocator, num_envs: int) -> None:
        self.allocator = allocator
        device = allocator.numbers.device
        self.strategies = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.finished: list[tuple[int, float]] = []
        self.begun: Counter[int] = Counter()
        self._returns = torch.zeros(num_envs, dtype=torch.float64, device=device)
        self._is_whole = torch.zeros(num_envs, dtype=torch.bool, device=device)

    def begin(
        self, starts: Tensor, state: State, epsilon: float, rng: np.random.Generator, *, is_whole: bool = True
    ) -> State:
        """Choose a strategy where a memory is emptied; call it before each step.

        Args:
            starts: bool, (N,); True at a step before which the memory is emptied.
            state: State with `strategy`, int64 (N,).
            epsilon: Probability of a random strategy, 0 to 1.
            rng: Random generator of the strategies.
            is_whole: Whether a stay that begins here can take all of its steps before the rollout ends. Of the others
                only short ones end, so that their mean return is that of short stays; they do not count.

        Returns:
            The state, with the strategies of the current stays.
        """
        if bool(starts.any()):
            chosen = self.allocator.choose(self.allocator.constant(len(starts)), epsilon, rng)
            self.strategies = torch.where(starts, chosen, self.strategies)
            self._returns = self._returns.masked_fill(starts, 0.0)
            self._is_whole = self._is_whole.masked_fill(starts, is_whole)
            self.begun.update(self.strategies[starts].tolist())
        return state | {STRATEGY: self.strategies}

    def end(self, rewards: Tensor, ends: Tensor) -> None:
        """Add rewards to the returns; call it after each step.

        Args:
            rewards: float, (N,); undiscounted.
            ends: bool, (N,); True where the memory is emptied before the next step.
        """
        self._returns = self._returns + rewards
        ends = ends & self._is_whole
        self.finished += zip(self.strategies[ends].tolist(), self._returns[ends].tolist(), strict=True)

    def take_finished(self) -> tuple[list[tuple[int, float]], Counter[int]]:
        """Return `finished` and `begun`, and empty both."""
        taken = self.finished, self.begun
        self.finished, self.begun = [], Counter()
        return taken


def check_strategies(memory: Memory, name: str, strategies: tuple[str, ...]) -> None:
    """Raise a ValueError unless a memory can follow each of these strategies.

    Args:
        memory: The memory.
        name: Its name, for messages.
        strategies: Names of strategies.
    """
    config = getattr(memory, "config", None)
    if not memory.strategies:
        unlimited = getattr(config, "capacity", 0) is None
        reason = "a capacity: with None nothing is evicted" if unlimited else "eviction strategies"
        raise ValueError(f"allocator must be None with a memory without {reason}, got memory {name!r}")
    for strategy in strategies:
        if strategy not in memory.strategies:
            raise ValueError(
                f"allocator.strategies must be of those that the memory {name!r} with {config} has, "
                f"{list(memory.strategies)}, got {strategy!r}"
            )


class EpisodeLimits(NamedTuple):
    """Limits of the episodes of one copy of an environment.

    Attributes:
        episode_steps: Steps of an episode; None for no or an unknown limit.
        trial_episodes: Episodes of a trial; None for no limit, or without trials.
        steps_of_trials: Steps of a trial; None for no limit, or without trials.
        has_trials: Whether several episodes can form a trial.
    """

    episode_steps: int | None
    trial_episodes: int | None = None
    steps_of_trials: int | None = None
    has_trials: bool = False

    @property
    def trial_steps(self) -> int | None:
        """Most steps that a trial can take; None for no limit."""
        of_episodes = None
        if self.trial_episodes is not None and self.episode_steps is not None:
            of_episodes = self.trial_episodes * self.episode_steps
        return min((steps for steps in (of_episodes, self.steps_of_trials) if steps is not None), default=None)

    def check_rollout(self, n_steps: int) -> int:
        """Return the most steps of a stay, a trial or, without trials, an episode.

        Raises:
            ValueError: A rollout that begins with new trials cannot finish such a stay.
        """
        unit, steps = ("trial", self.trial_steps) if self.has_trials else ("episode", self.episode_steps)
        if steps is None:
            limits = "trial_episodes or trial_steps" if self.has_trials else "max_episode_steps"
            raise ValueError(
                f"allocator needs {unit}s that end, whose returns it learns: give the environment {limits}, got {self}"
            )
        if steps > n_steps:
            raise ValueError(
                f"n_steps must be at least the {steps} that a {unit} may take with allocator, which learns from "
                f"finished ones, got {n_steps}"
            )
        return steps


def common_limits(env: VecEnv) -> EpisodeLimits:
    """Return the limits of the episodes of all copies of an environment.

    Raises:
        ValueError: They differ; the returns of all copies teach one Q, so their episodes must be alike.
    """
    names = ("max_episode_steps", "trial_episodes", "trial_steps")
    if all(env.has_attr(name) for name in names) and not any(env.env_is_wrapped(TrialWrapper)):
        values = zip(*(env.get_attr(name) for name in names), strict=True)
        limits = [EpisodeLimits(episode, episodes, trial, True) for episode, episodes, trial in values]
    else:
        limits = [EpisodeLimits(None if spec is None else spec.max_episode_steps) for spec in env.get_attr("spec")]
    differing = list(dict.fromkeys(limits))
    if len(differing) > 1:
        raise ValueError(
            f"allocator must be None with copies of an environment whose episodes differ, got {differing[0]} and "
            f"{differing[1]}"
        )
    return limits[0]
