"""The loop in which a policy acts in environments, and policies that need no training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.vec_env import TrialVecEnv
from memenvs.rules import Rule
from memenvs.task import defines


class Policy(Protocol):
    """A policy that acts as a Stable-Baselines3 model does.

    If the previous action is part of its state, it also has `update_previous_action(state, actions)`, as
    `MemoryPolicy`. If its `predict` has an argument `trial_start`, it gets the starts of trials: bool, (B,).
    """

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Choose an action for each of N environments.

        Args:
            observation: Array (N, ...), or a dict of such.
            state: What the last call returned; None at first.
            episode_start: bool, (N,); environments in which an episode starts.
            deterministic: True for the most likely actions, False to sample.

        Returns:
            Actions, (N,) or (N, A), and the next state.
        """


class RandomPolicy:
    """Draw every action uniformly.

    Args:
        action_space: Space of one action.
        seed: Seed of the draws.
    """

    def __init__(self, action_space: spaces.Space, seed: int = 0) -> None:
        self._space = action_space
        self._space.seed(seed)

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Draw one action per row of `episode_start`; `candidate_mask` may exclude some."""
        count = 1 if episode_start is None else len(episode_start)
        masks = observation.get("candidate_mask") if isinstance(observation, dict) else None
        if masks is not None:
            return np.stack([self._space.sample(mask) for mask in np.asarray(masks, np.int8)]), state
        return np.stack([self._space.sample() for _ in range(count)]), state


class OraclePolicy:
    """Take the actions of the environment's oracle.

    Args:
        env: The environment that the policy acts in.
    """

    def __init__(self, env: TrialVecEnv) -> None:
        self._env = env

    def predict(
        self, observation: Any, state: Any = None, episode_start: np.ndarray | None = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return the oracle's actions; see `Policy.predict`."""
        return self._env.oracle_actions(), state


class RulePolicy:
    """Take the actions of a scripted rule.

    Args:
        rule: The rule, made for the task of the environment.

    Attributes:
        has_memory: False for a rule that sees the present observation alone.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.has_memory = rule.way != "present"

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        trial_start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Any]:
        """Return the rule's actions.

        The rule forgets all steps before `trial_start`, or without it `episode_start`.
        """
        assert episode_start is not None
        self._rule.start(episode_start if trial_start is None else trial_start, episode_start)
        return self._rule.actions(observation), state


class DemonstratedPolicy:
    """A policy whose actions the oracle replaces in some environments.

    The policy is called at each step, so that its memory takes in the demonstration. The oracle's action then replaces
    its own, also as the previous action of the next step.

    Args:
        policy: The policy.
        env: The environment that the policy acts in, with `oracle_actions`.

    Attributes:
        demonstrated: bool, (N,); environments in which the oracle acts next. Set it between two steps.
    """

    def __init__(self, policy: Policy, env: VecEnv) -> None:
        self._policy = policy
        self._env = env
        self._takes_trial_start = takes_trial_start(policy)
        self.demonstrated = np.zeros(env.num_envs, bool)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        trial_start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Any]:
        """Return actions of the oracle where `demonstrated`, else of the policy."""
        start_input = {"trial_start": trial_start} if self._takes_trial_start else {}
        actions, state = self._policy.predict(observation, state, episode_start, deterministic, **start_input)
        if self.demonstrated.any():
            actions = actions.copy()
            actions[self.demonstrated] = self._env.oracle_actions()[self.demonstrated]  # type: ignore[attr-defined]
            update_previous_action = getattr(self._policy, "update_previous_action", None)
            if update_previous_action is not None:
                state = update_previous_action(state, actions)
        return actions, state


def check_map(env: TrialVecEnv, *methods: str) -> None:
    """Check that the paths of a task can be drawn.

    Args:
        env: The environment; it is reset and seeded again, so that its next reset is as before.
        methods: Optional methods of the task that are needed, such as "draw_map".

    Raises:
        ValueError: The task has no `pose` in `info`, or lacks one of the methods.
    """
    task = env.env.task
    env.reset()
    env.seed(env.reset_infos[0]["seed"])  # the others follow: seeds are consecutive
    missing = [] if "pose" in env.reset_infos[0] else ["'pose' in info"]
    missing += [method for method in methods if not defines(type(task), method)]
    if missing:
        raise ValueError(f"{type(task).__name__} cannot be drawn from above: it lacks {' and '.join(missing)}")


class PlayedStep(NamedTuple):
    """One step of N environments.

    Attributes:
        actions: (N, ...); actions that were taken.
        rewards: float, (N,).
        dones: bool, (N,); True where the step ended an episode.
        infos: N dicts; where an episode ended, its final info.
        observation: Observation after the step, of the next episode where `dones`.
        state: State of the policy after the step.
    """

    actions: np.ndarray
    rewards: np.ndarray
    dones: np.ndarray
    infos: list[dict[str, Any]]
    observation: Any
    state: Any


def trial_options(first: int, count: int, layouts: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Reset options of the next trials, by number, so that they do not depend on the policy.

    Args:
        first: Number of the first of these trials in the whole evaluation, a multiple of `count`.
        count: Number of environments, N.
        layouts: Layout of each trial of the evaluation, repeated from the start; None for those of the environment.

    Returns:
        N options: trial `first // N` of each environment, and its layout.
    """
    options: list[dict[str, Any]] = [{"trial": first // count} for _ in range(count)]
    if layouts is not None:
        for i, option in enumerate(options):
            option["layout"] = int(layouts[(first + i) % len(layouts)])
    return options


def takes_trial_start(policy: Policy) -> bool:
    """Return True if `predict` of a policy has an argument `trial_start`."""
    return "trial_start" in signature(policy.predict).parameters


def _trial_starts(env: VecEnv, episode_start: np.ndarray) -> np.ndarray | None:
    """Return where a trial starts, bool (N,); None if the environment does not report it."""
    infos = env.unwrapped.reset_infos  # those of the latest resets; a wrapper has a list of its own, never filled
    if not all("trial_start" in info for info in infos):
        return None
    return episode_start & np.array([bool(info["trial_start"]) for info in infos])


def play_trials(
    policy: Policy, env: VecEnv, observation: Any, *, deterministic: bool = False, fresh_visits: bool = False
) -> Iterator[PlayedStep]:
    """Let a policy act from a reset on until the caller stops iterating.

    The policy starts with an empty memory. If its `predict` has `trial_start`, it gets the starts of trials.

    Args:
        policy: The policy.
        env: N environments that were just reset.
        observation: Observation of the reset.
        deterministic: Take the most likely actions instead of drawn ones.
        fresh_visits: With an itinerary: the policy gets each visit as a trial of its own.

    Yields:
        Each step.

    Example:
        >>> env.set_options(trial_options(0, env.num_envs))
        >>> for step in play_trials(policy, env, env.reset()):
        ...     returns += step.rewards
        ...     if step.dones.all():
        ...         break
    """
    state = None
    episode_start = np.ones(env.num_envs, bool)
    takes_start = takes_trial_start(policy)
    legs = np.zeros(env.num_envs, np.int64)  # number of the visit of each environment
    while True:
        trial_start = _trial_starts(env, episode_start)
        if fresh_visits and trial_start is not None:
            left, legs = legs, np.array([info.get("leg", 0) for info in env.unwrapped.reset_infos])
            trial_start |= legs != left
        start_input = {"trial_start": trial_start} if takes_start else {}
        actions, state = policy.predict(observation, state, episode_start, deterministic, **start_input)
        observation, rewards, episode_start, infos = env.step(actions)
        yield PlayedStep(actions, rewards, episode_start, infos, observation, state)
