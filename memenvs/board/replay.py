"""Actions of agents on test sets: recorded as they act, and played again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.actions import check_actions
from memenvs.board.entry import Entry, Run
from memenvs.certificates.playing import Player, play_scores, played_steps
from memenvs.certificates.test_sets import find_test_set
from memenvs.core import TrialVectorEnv
from memenvs.progress import Progress, no_progress
from memenvs.registry import find_environment
from memenvs.task import Observation

#: (observation, state, trial_start, episode_start) -> (actions, state), for N environments. Arrays have N rows; the
#: state is None at first, then what the last call returned. Where `trial_start`, the agent has to forget everything.
Agent = Callable[[Observation, Any, np.ndarray, np.ndarray], tuple[np.ndarray, Any]]
#: Largest difference of two equal scores, relative or absolute.
TOLERANCE = 1e-9


class FunctionPlayer:
    """Plays an agent that is a function.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent, self._state = agent, None

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Keep the starts for the next call of the agent."""
        self._starts = trial_start.copy(), episode_start.copy()

    def actions(self, observation: Observation) -> np.ndarray:
        """Return the actions of the agent."""
        actions, self._state = self._agent(observation, self._state, *self._starts)
        return np.asarray(actions)

    def steps_back(self) -> None:
        """Return None: nothing is known of its facts."""


class ReplayPlayer:
    """Takes recorded actions.

    Args:
        env: The environments that it plays.
        trials: Actions of each trial.
    """

    def __init__(self, env: TrialVectorEnv, trials: Sequence[np.ndarray]) -> None:
        self._env, self._trials = env, trials
        self._trial = np.arange(env.num_envs) - env.num_envs  # the order of `played_steps`
        self.steps = [0] * len(trials)

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Go on to the next trials."""
        self._trial += trial_start * self._env.num_envs

    def actions(self, observation: Observation) -> np.ndarray:
        """Return the next actions.

        Raises:
            ValueError: The actions of a trial are over, but the trial is not.
        """
        space = self._env.single_action_space
        if isinstance(space, gym.spaces.Box):
            actions = np.repeat(space.low[None], self._env.num_envs, 0)
        else:
            actions = self._env.action_masks().argmax(1)  # possible ones, for where no trial is left
        for i, k in enumerate(self._trial.tolist()):
            if k < len(self._trials):
                if self.steps[k] == len(self._trials[k]):
                    raise ValueError(f"trial {k} goes on after its {self.steps[k]} actions")
                actions[i] = self._trials[k][self.steps[k]]
                self.steps[k] += 1
        return actions

    def steps_back(self) -> None:
        """Return None: nothing is known of its facts."""


def record_actions(
    id: str, agent: Agent, test_set: str = "v0", *, observed: Mapping[str, Any] | None = None
) -> list[np.ndarray]:
    """Let an agent of any library play a test set, and keep its actions.

    Args:
        id: The id; the namespace may be left out.
        agent: The agent.
        test_set: Name of the test set.
        observed: Settings of what the agent observes that are not those of the id, such as {"obs": "one_hot"}.

    Returns:
        Actions of each trial, (T,) or (T, A).

    Raises:
        ValueError: There is no such id or test set, or a setting changes more than what is observed.

    Example:
        >>> def agent(observation, state, trial_start, episode_start):
        ...     return policy(observation, state, reset=trial_start)
        >>> run = replay("memenvs/Darkroom-Gap-v0", record_actions("memenvs/Darkroom-Gap-v0", agent))
    """
    trials = find_test_set(id, test_set)
    env = trials.make_env(observed or {})
    try:
        return played_actions(env, FunctionPlayer(agent), trials.seeds)
    finally:
        env.close()


def played_actions(
    env: TrialVectorEnv, player: Player, seeds: Sequence[int], progress: Progress = no_progress
) -> list[np.ndarray]:
    """Let a policy play trials, and keep its actions.

    Args:
        env: Environments with `autoreset_mode` "Disabled".
        player: The policy, just made.
        seeds: Seed of each trial.
        progress: Called with the share of the trials that have begun.

    Returns:
        Actions of each trial, (T,) or (T, A).
    """
    actions: list[list[np.ndarray]] = [[] for _ in seeds]
    for step in played_steps(env, player, seeds):
        for i in np.flatnonzero(step.trial >= 0).tolist():
            actions[step.trial[i]].append(step.actions[i])
        progress(sum(map(bool, actions)) / len(seeds))
    return [np.array(trial) for trial in actions]


def replay(
    id: str,
    actions: Sequence[np.ndarray],
    test_set: str = "v0",
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Run:
    """Play recorded actions in the trials of a test set.

    Args:
        id: The id; the namespace may be left out.
        actions: Actions of each trial, (T,) or (T, A).
        test_set: Name of the test set.
        seed: Seed of the training of who took them.
        progress: Called with the share of the trials that are over.

    Returns:
        The run, with its scores.

    Raises:
        TypeError: Actions are no integers, or for a `Box` no numbers.
        ValueError: Actions have a wrong shape, are out of range, impossible, or more or fewer than the steps of their
            trial.
    """
    trials, spec = find_test_set(id, test_set), find_environment(id)
    if len(actions) != trials.trials:
        raise ValueError(f"actions must be of {trials.trials} trials, got {len(actions)}")
    env = trials.make_env(spec.rule_settings)  # the same episodes, and often cheaper to observe
    try:
        for k, trial in enumerate(actions):
            try:
                check_actions(env.task.action_space, trial, len(trial))
            except (ValueError, TypeError) as error:
                raise type(error)(f"trial {k}: {error}") from None
        player = ReplayPlayer(env, actions)
        played = play_scores(env, player, trials.seeds, spec.score_key, progress)
    finally:
        env.close()
    for k, steps in enumerate(player.steps):
        if steps != len(actions[k]):
            raise ValueError(f"trial {k} is over after {steps} steps, it has {len(actions[k])} actions")
    return Run(seed, played.episodes, tuple(player.steps), tuple(actions))


def check_replay(entry: Entry, progress: Progress = no_progress) -> None:
    """Play the actions of an entry, and compare the scores with its rows.

    Raises:
        TypeError: Actions are no numbers of the id.
        ValueError: Its actions are not those of the trials (`replay`), or give other scores.
    """
    for run in entry.runs:
        assert run.actions is not None
        again = replay(entry.id, run.actions, entry.test_set, progress=progress)
        for k, (own, played) in enumerate(zip(run.scores, again.scores, strict=True)):
            if len(own) != len(played) or not np.allclose(own, played, rtol=TOLERANCE, atol=TOLERANCE):
                raise ValueError(f"trial {k} of seed {run.seed} must have the scores {list(played)}, got {list(own)}")
