"""Episodes as bits: the hash of an id, and the proof that ignored actions change nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from memenvs.certificates.playing import DrawnPlayer, Player, played_steps
from memenvs.core import TrialVectorEnv
from memenvs.progress import Progress, no_progress
from memenvs.registry import EnvironmentSpec
from memenvs.task import PHASE, Observation

#: Episodes of a hash, and those of one trial at most.
NUM_EPISODES, TRIAL_EPISODES = 100, 10
#: Bytes of observations of one episode that are hashed at most: longer ones are cut after as many steps.
EPISODE_BYTES = 2**24
#: Number of the drawn actions.
ACTIONS, IGNORED_ACTIONS = 10, (11, 12)

Key = tuple[int, int]  # trial and episode


def hash_episodes(spec: EnvironmentSpec, *, num_envs: int = 10, progress: Progress = no_progress) -> str:
    """Compute the hash of 100 episodes of an id with its default settings.

    Fixed actions are drawn among the possible ones. The hash is of all observations, rewards and ends, of the first
    steps alone where observations are large. It does not depend on `num_envs` and on the number of threads.

    Args:
        spec: Row of the id, with a `BatchTask`.
        num_envs: Environments that play, >= 1.
        progress: Called with the share of the episodes that is over.

    Returns:
        "sha256:" and 64 hexadecimal digits.
    """
    assert spec.task is not None
    env = TrialVectorEnv(spec.task, num_envs, autoreset_mode="Disabled", **spec.defaults)
    try:
        episodes = min(TRIAL_EPISODES, env.trial_episodes or TRIAL_EPISODES)
        trials = -(-NUM_EPISODES // episodes)
        digests = episode_digests(
            env,
            DrawnPlayer(env, ACTIONS),
            range(max(trials, num_envs)),
            most_episodes=episodes,
            most_steps=max(1, EPISODE_BYTES // observation_bytes(env)),
            progress=progress,
        )
    finally:
        env.close()
    sha = hashlib.sha256()
    for key in sorted(digests)[:NUM_EPISODES]:
        sha.update(digests[key])
    return f"sha256:{sha.hexdigest()}"


def observation_bytes(env: TrialVectorEnv) -> int:
    """Size of the arrays of one observation, bytes; 1 at least."""
    assert isinstance(env.single_observation_space, gym.spaces.Dict)
    sizes = (
        int(np.prod(space.shape)) * space.dtype.itemsize
        for space in env.single_observation_space.spaces.values()
        if space.shape is not None and space.dtype is not None
    )
    return max(1, sum(sizes))


def episode_digests(
    env: TrialVectorEnv,
    player: Player,
    seeds: Sequence[int],
    *,
    most_episodes: int | None = None,
    most_steps: int | None = None,
    progress: Progress = no_progress,
) -> dict[Key, bytes]:
    """Hash the observations, rewards and ends of each episode; see `played_steps`.

    Returns:
        (trial, episode) -> digest, of all episodes that were played to their end or to `most_steps`.
    """
    running: dict[Key, Any] = {}
    digests: dict[Key, bytes] = {}
    for step in played_steps(env, player, seeds, most_episodes=most_episodes, most_steps=most_steps):
        over = step.terminated | step.truncated | step.cut
        for i in np.flatnonzero(step.trial >= 0).tolist():
            key = int(step.trial[i]), int(step.episode[i])
            if step.first[i]:
                running[key] = hashlib.sha256()
                _add(running[key], step.seen, i)
            running[key].update(np.float64(step.rewards[i]).tobytes())
            running[key].update(bytes([bool(step.terminated[i]), bool(step.truncated[i])]))
            _add(running[key], step.observation, i)
            if over[i]:
                digests[key] = running.pop(key).digest()
        if over.any():
            progress(len({trial for trial, _ in digests}) / len(seeds))
    return digests


def _add(sha: Any, observation: Observation, i: int) -> None:
    """Add the observation of environment `i` to a hash."""
    for key in sorted(observation):
        sha.update(key.encode())
        value = observation[key][i]
        sha.update(value.encode() if isinstance(value, str) else np.ascontiguousarray(value))


def ignored_actions(
    env: TrialVectorEnv, seeds: Sequence[int]
) -> tuple[Literal["proved", "none"], Literal["none", "world"]]:
    """Play trials twice, with other actions where `phase` is 0.

    Args:
        env: Environments with `autoreset_mode` "Disabled".
        seeds: Seed of each trial, at least N.

    Returns:
        "proved" if not a bit of an observation or a reward differs, "none" without such steps; and "none" if in each
        trial all steps before the first one with `phase` 1 have `phase` 0 and none after it, so that an agent learns
        nothing after its actions begin to count, else "world".

    Raises:
        ValueError: The actions change something.
    """
    assert isinstance(env.single_observation_space, gym.spaces.Dict)
    if PHASE not in env.single_observation_space.spaces:
        return "none", "world"
    watched = _Watched(DrawnPlayer(env, ACTIONS, IGNORED_ACTIONS[0]))
    first = episode_digests(env, watched, seeds)
    second = episode_digests(env, DrawnPlayer(env, ACTIONS, IGNORED_ACTIONS[1]), seeds)
    different = [key for key in first if first[key] != second.get(key)]
    if different or len(first) != len(second):
        trial, episode = different[0] if different else (0, 0)
        raise ValueError(
            f"actions at phase 0 must be ignored, those in episode {episode} of trial 0 of seed {seeds[trial]} are not"
        )
    is_closed = env.trial_episodes == 1 and watched.begins_ignored and not watched.ignores_again
    return "proved" if watched.ignores else "none", "none" if is_closed else "world"


class _Watched:
    """A player that notes the order of the phases."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._acted: np.ndarray | None = None
        self._is_first: np.ndarray | None = None
        self.ignores, self.ignores_again, self.begins_ignored = False, False, True

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        self._player.start(trial_start, episode_start)
        acted = np.zeros(len(episode_start), bool) if self._acted is None else self._acted
        self._acted, self._is_first = acted & ~episode_start, episode_start

    def actions(self, observation: Observation) -> np.ndarray:
        assert self._acted is not None and self._is_first is not None
        acts = observation[PHASE] != 0
        self.begins_ignored &= not (acts & self._is_first).any()
        self.ignores |= bool((~acts).any())
        self.ignores_again |= bool((self._acted & ~acts).any())
        self._acted = self._acted | acts
        return self._player.actions(observation)

    def steps_back(self) -> None:
        return None
