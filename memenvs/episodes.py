"""The loop in which an episode of one environment is played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import gymnasium as gym


class EnvPolicy(Protocol):
    """A policy that plays one environment."""

    def begin(self) -> None:
        """Prepare for an episode; called after each reset."""

    def action(self) -> Any:
        """Choose the next action."""


class Transition(NamedTuple):
    """One step of an episode.

    Attributes:
        action: The action that was taken.
        observation: Observation after it.
        reward: Its reward.
        terminated: Whether the task ended the episode.
        truncated: Whether the limit of steps ended it.
        info: `info` after the step.
    """

    action: Any
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def is_last(self) -> bool:
        """True if the episode is over."""
        return self.terminated or self.truncated


def play_episode(env: gym.Env, policy: EnvPolicy) -> Iterator[Transition]:
    """Play an episode to its end, or until the caller stops iterating.

    Args:
        env: The environment, just reset.
        policy: Chooses the actions.

    Yields:
        Each step.
    """
    policy.begin()
    is_over = False
    while not is_over:
        action = policy.action()
        observation, reward, terminated, truncated, info = env.step(action)
        step = Transition(action, observation, float(reward), terminated, truncated, info)
        yield step
        is_over = step.is_last
