"""The loop in which policies play fixed trials of a task, N at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from memenvs.actions import draw_actions
from memenvs.core import TrialVectorEnv
from memenvs.progress import Progress, no_progress
from memenvs.task import PHASE, Observation


class Player(Protocol):
    """A policy for the N environments of a batch; every `memenvs.rules.Rule` is one."""

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Start trials and episodes, bool (N,).

        It comes before `actions` is called with their first observation.
        """

    def actions(self, observation: Observation) -> np.ndarray:
        """Choose the next actions, int64 (N,), or for a `Box` float32 (N, A)."""

    def steps_back(self) -> np.ndarray | None:
        """Return how far back the fact lies that the last `actions` needed, int64 (N,).

        None if it is not known.
        """


class DrawnPlayer:
    """Draws among the possible actions; of a `Box` one vector an episode.

    The actions of an episode follow from the stream, the number of its trial and its index alone.

    Args:
        env: The environments that it plays.
        stream: Number of the actions where they count.
        ignored_stream: Number of the actions where they are ignored (`phase` 0).
    """

    def __init__(self, env: TrialVectorEnv, stream: int, ignored_stream: int | None = None) -> None:
        self._env = env
        self._streams = (stream, stream if ignored_stream is None else ignored_stream)
        self._is_discrete = isinstance(env.single_action_space, gym.spaces.Discrete)
        self._trial = np.arange(env.num_envs) - env.num_envs  # the order of `played_steps`
        self._episode = np.zeros(env.num_envs, int)
        shape = (2, env.num_envs, env.max_episode_steps) if self._is_discrete else (2, *(env.action_space.shape or ()))
        self._drawn = np.zeros(shape, np.float64 if self._is_discrete else np.float32)
        self._step = np.zeros(env.num_envs, int)

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Draw the actions of the episodes that start."""
        self._trial += trial_start * self._env.num_envs
        self._episode = np.where(trial_start, 0, self._episode + episode_start)
        self._step[episode_start] = 0
        for i in np.flatnonzero(episode_start).tolist():
            for k, stream in enumerate(self._streams):
                rng = np.random.default_rng([stream, self._trial[i], self._episode[i]])
                if self._is_discrete:
                    self._drawn[k, i] = rng.random(self._drawn.shape[-1])
                else:
                    self._drawn[k, i] = draw_actions(self._env.task.action_space, 1, rng)[0]

    def actions(self, observation: Observation) -> np.ndarray:
        """Return the drawn actions of this step."""
        rows = np.arange(self._env.num_envs)
        streams = (observation[PHASE] == 0).astype(int) if PHASE in observation else np.zeros(len(rows), int)
        if not self._is_discrete:
            return self._drawn[streams, rows]
        possible = self._env.action_masks()
        rank = (self._drawn[streams, rows, self._step] * possible.sum(1)).astype(int)  # among the possible ones
        self._step += 1
        return (possible.cumsum(1) > rank[:, None]).argmax(1)

    def steps_back(self) -> None:
        """Return None: it needs no fact."""


class OraclePlayer:
    """Takes the actions of the oracle.

    Args:
        env: The environments that it plays.
    """

    def __init__(self, env: TrialVectorEnv) -> None:
        self._env = env

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Do nothing: it has no state."""

    def actions(self, observation: Observation) -> np.ndarray:
        """Return the actions of the oracle."""
        return self._env.oracle_actions()

    def steps_back(self) -> None:
        """Return None: it knows the truth."""


class TrialStep(NamedTuple):
    """One step of N environments, before the ended episodes are reset.

    Attributes:
        trial: int64, (N,); number of the trial; -1 where no trial is left and the environment only keeps pace.
        episode: int64, (N,); index of the episode in its trial.
        first: bool, (N,); True where it is the first step of the episode.
        seen: Observation before the step.
        actions: (N,) or (N, A).
        rewards: float64, (N,).
        terminated: bool, (N,).
        truncated: bool, (N,).
        cut: bool, (N,); True where `most_steps` ends the episode.
        observation: Observation after the step.
        info: Info after the step.
    """

    trial: np.ndarray
    episode: np.ndarray
    first: np.ndarray
    seen: Observation
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    cut: np.ndarray
    observation: Observation
    info: dict[str, Any]


def played_steps(
    env: TrialVectorEnv,
    player: Player,
    seeds: Sequence[int],
    *,
    most_episodes: int | None = None,
    most_steps: int | None = None,
) -> Iterator[TrialStep]:
    """Let a policy play trials: trial k is trial 0 of the seed `seeds[k]`.

    Environment i plays the trials i, N + i, 2 N + i, ... So the trials do not depend on the policy, and an episode not
    on N.

    Args:
        env: Environments with `autoreset_mode` "Disabled".
        player: The policy, just made.
        seeds: Seed of each trial, at least N.
        most_episodes: Episodes of a trial at most; None for all.
        most_steps: Steps of an episode at most; None for all.

    Yields:
        Each step, until all trials are over.
    """
    count = env.num_envs
    trial = np.arange(count)
    observation, _ = env.reset(seed=list(seeds[:count]), options={"trial": 0})
    trial_start, episode_start = np.ones(count, bool), np.ones(count, bool)
    episode, steps = np.zeros(count, int), np.zeros(count, int)
    while (trial >= 0).any():
        player.start(trial_start, episode_start)
        actions = player.actions(observation)
        seen = observation
        observation, rewards, terminated, truncated, info = env.step(actions)
        steps += 1
        cut = np.zeros(count, bool) if most_steps is None else steps >= most_steps
        first = episode_start
        episode_start = terminated | truncated | cut
        yield TrialStep(
            trial.copy(), episode.copy(), first, seen, actions, rewards, terminated, truncated, cut, observation, info
        )
        trial_start = episode_start & env.trial_over
        if most_episodes is not None:
            trial_start |= episode_start & (episode + 1 >= most_episodes)
        if episode_start.any():
            trial = np.where(trial_start & (trial >= 0), trial + count, trial)
            trial[trial >= len(seeds)] = -1
            episode = np.where(trial_start, 0, episode + episode_start)
            steps[episode_start] = 0
            next_seeds = [
                seeds[k] if starts and k >= 0 else None for k, starts in zip(trial.tolist(), trial_start, strict=True)
            ]
            observation, _ = env.reset(seed=next_seeds, options={"reset_mask": episode_start})


@dataclass(frozen=True)
class TrialScores:
    """Scores of a policy.

    Attributes:
        scores: float64, (trials,); mean over the scored episodes of each trial.
        steps_back: float64; the largest `steps_back` of each scored episode; empty if the policy does not say it.
        episodes: Score of each episode of each trial, without one that the end of the trial cuts.
    """

    scores: np.ndarray
    steps_back: np.ndarray
    episodes: tuple[tuple[float, ...], ...]

    @property
    def mean(self) -> float:
        """Mean over trials."""
        return float(self.scores.mean())

    @property
    def stderr(self) -> float:
        """Standard error of the mean over trials."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))


def play_scores(
    env: TrialVectorEnv, player: Player, seeds: Sequence[int], score_key: str, progress: Progress = no_progress
) -> TrialScores:
    """Score a policy in trials.

    In trials of several episodes those after the first count, without one that the end of the trial cuts.

    Args:
        env: Environments with `autoreset_mode` "Disabled".
        player: The policy, just made.
        seeds: Seed of each trial, two at least.
        score_key: Key of the score in the `info` of an episode's last step; "return" is the sum of rewards if `info`
            does not have it.
        progress: Called with the share of the trials that are over.

    Raises:
        ValueError: `info` has no such key, or a trial has no episode that counts.
    """
    first = 0 if env.trial_episodes == 1 else 1
    episodes: list[list[float]] = [[] for _ in seeds]
    back: list[int] = []
    total, deepest = np.zeros(env.num_envs), np.full(env.num_envs, -1)
    for step in played_steps(env, player, seeds):
        total = np.where(step.first, 0.0, total) + step.rewards
        needed = player.steps_back()
        if needed is not None:
            acts = step.seen[PHASE] != 0 if PHASE in step.seen else True
            deepest = np.maximum(np.where(step.first, 0, deepest), np.where(acts, needed, 0))
        done = (step.terminated | step.truncated) & (step.trial >= 0)
        if score_key != "return" and score_key not in step.info:
            raise ValueError(f"score_key must be a key of info, got {score_key!r}")
        values = step.info.get(score_key, total)
        for i in np.flatnonzero(done & ~_cut_by_trial(env, step)).tolist():
            episodes[step.trial[i]].append(float(values[i]))
            if needed is not None and step.episode[i] >= first:
                back.append(int(deepest[i]))
        if done.any():
            progress(sum(len(trial) > first for trial in episodes) / len(seeds))
    empty = [k for k, trial in enumerate(episodes) if len(trial) <= first]
    if empty:
        raise ValueError(f"trials must have an episode after the first, got none in trial {empty[0]}")
    return TrialScores(
        np.array([np.mean(trial[first:]) for trial in episodes]),
        np.array(back, np.float64),
        tuple(map(tuple, episodes)),
    )


def _cut_by_trial(env: TrialVectorEnv, step: TrialStep) -> np.ndarray:
    """True where the end of the trial, and nothing else, ends an episode, bool (N,)."""
    if env.trial_steps is None:
        return np.zeros(env.num_envs, bool)
    return step.truncated & ~step.terminated & (step.info["num_steps"] < env.max_episode_steps)
