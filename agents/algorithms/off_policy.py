"""Collection of whole episodes for off-policy learning from a replay buffer."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.replay_buffer import EpisodeReplayBuffer
from memenvs.agents.algorithms.rollout_buffer import Observations, allocating
from memenvs.agents.memory import ExtraInputs
from memenvs.agents.policies.acting import observation_tensors
from memenvs.agents.policies.distributions import Categorical, check_action_mask
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import episode_horizon


class OffPolicyMemoryAlgorithm(MemoryAlgorithm):
    """A `MemoryAlgorithm` that plays whole episodes into a replay buffer.

    Actions are uniform until the buffer is full. After that a share `epsilon` of them is uniform and the policy draws
    the others.

    Attributes:
        filled_at: Environment steps after which the replay buffer was full; -1 before.
    """

    config: DQNConfig
    config_type = DQNConfig
    saved_attributes = ("filled_at",)
    policy: MemoryPolicy

    def _setup_model(self) -> None:
        super()._setup_model()
        self.filled_at = -1
        self._replay: EpisodeReplayBuffer | None = None
        self._lacks_replay = False  # True if it was loaded without the episodes that it learned from

    def _setup_env(self) -> None:
        if self.env is None:
            return
        limit = self.config.episode_steps
        horizon = episode_horizon(self.env)
        if horizon is not None and horizon > limit:
            raise ValueError(
                f"episode_steps must be at least the {horizon} steps of the environment's episodes, got {limit}"
            )
        if self.n_envs > self.config.capacity:
            raise ValueError(
                f"capacity must be at least the number of environments, {self.n_envs}, got {self.config.capacity}"
            )
        self.policy.check_episodes(self.env)

    @property
    def replay(self) -> EpisodeReplayBuffer:
        """The replay buffer, allocated on first use: a learner that only acts needs none."""
        if self._replay is None:
            with allocating(f"capacity ({self.config.capacity}) times episode_steps ({self.config.episode_steps})"):
                self._replay = EpisodeReplayBuffer(
                    self.config.capacity,
                    self.config.episode_steps,
                    self.observation_space,
                    self.device,
                    self.policy.features_dim if self.policy.freeze_features else None,
                    self.policy.memory.required_inputs,
                )
        return self._replay

    @property
    def replay_buffer(self) -> EpisodeReplayBuffer:
        """`replay`, by the name that Stable-Baselines3's `CheckpointCallback` reads."""
        return self.replay

    @property
    def epsilon(self) -> float:
        """Share of uniform actions in the next iteration; falls linearly to `final_epsilon`."""
        if self.filled_at < 0:
            return 1.0
        decay_steps = self.config.exploration * max(1, self._total_timesteps - self.filled_at)
        progress = min(1.0, (self.num_timesteps - self.filled_at) / decay_steps)
        return 1.0 + progress * (self.config.final_epsilon - 1.0)

    def _collect_episodes(self, env: VecEnv, callback: BaseCallback) -> bool:
        """Play one episode of every environment into the replay buffer.

        Args:
            env: N environments.
            callback: Called after each step.

        Returns:
            False if the callback wants to stop; the running episodes are then dropped.

        Raises:
            ValueError: The policy's outputs or a reward are not finite, or an episode does not end.
        """
        replay = self.replay
        self.policy.set_training_mode(False)
        self._has_trials = all("trial_start" in info for info in env.unwrapped.reset_infos)
        self._start_trials(env)
        callback.on_rollout_start()
        self._is_unfinished = True  # until the updates are made
        rows = replay.start_episodes(env.num_envs)
        try:
            if not self._play_episodes(env, callback, rows):
                return False
        finally:
            replay.discard_running()  # the episodes of an exception or of a callback that stops
        if self.filled_at < 0 and replay.is_full:
            self.filled_at = self.num_timesteps
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _play_episodes(self, env: VecEnv, callback: BaseCallback, rows: Tensor) -> bool:
        """Play episodes from the start to their end; arguments, result and errors as in `_collect_episodes`.

        Args:
            env: N environments.
            callback: Called after each step.
            rows: int64, (N,); rows of the replay buffer for the episodes.
        """
        policy = self.policy
        replay = self.replay
        epsilon = self.epsilon
        running = np.ones(env.num_envs, bool)  # environments whose first episode goes on
        state = policy.initial_state(env.num_envs, max_steps=self.config.episode_steps + 1)
        for t in range(self.config.episode_steps):
            observations = observation_tensors(self._last_obs, self.device)
            actions = self._uniform_actions(env.num_envs, policy.action_mask(observations))
            if epsilon == 1.0:
                stored, extra_inputs = self._stored_observations(observations)
                env_actions = policy.environment_actions(actions)
            else:
                # The memory is of one episode, also where a trial has several: each episode start is a trial start.
                output = self._act(observations, state, self._episode_start, self._episode_start)
                is_uniform = torch.rand(env.num_envs, generator=policy.generator, device=self.device) < epsilon
                actions = torch.where(is_uniform, actions, output.actions)
                env_actions = policy.environment_actions(actions)
                state = policy.update_previous_action(output.state, env_actions)
                stored = output.features if policy.freeze_features else observations
                extra_inputs = output.extra_inputs
            new_obs, rewards, dones, infos = self._step_env(env, env_actions)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            ignored = policy.ignores_action(observations)
            step_rewards = torch.as_tensor(rewards)
            replay.add(rows, torch.as_tensor(running), t, stored, extra_inputs, actions, step_rewards, ignored)
            ended = np.flatnonzero(running & dones).tolist()
            if ended:
                self._end_episodes(rows[ended], t + 1, [infos[i] for i in ended])
            self._last_obs = new_obs
            self._update_starts(env, dones)
            running &= ~dones
            if not running.any():
                return True
        raise ValueError(
            f"episodes must end within episode_steps ({self.config.episode_steps}) steps, got one that goes on"
        )

    def _end_episodes(self, rows: Tensor, steps: int, infos: list[dict[str, Any]]) -> None:
        """Store the last observations of episodes that have ended.

        Args:
            rows: int64, (B,); their rows in the replay buffer.
            steps: Steps of each of them.
            infos: Their final infos.
        """
        self._update_info_buffer(infos, np.ones(len(infos), bool))
        last = [info["terminal_observation"] for info in infos]
        if isinstance(last[0], dict):
            stacked: Any = {key: np.stack([observation[key] for observation in last]) for key in last[0]}
        else:
            stacked = np.stack(last)
        observations, extra_inputs = self._stored_observations(observation_tensors(stacked, self.device))
        terminated = torch.tensor([not info.get("TimeLimit.truncated", False) for info in infos])
        self.replay.end_episodes(rows, steps, observations, extra_inputs, terminated)

    def _uniform_actions(self, count: int, action_mask: Tensor | None) -> Tensor:
        """Draw uniform actions among the available ones, int64 (count,)."""
        if action_mask is not None:
            check_action_mask(action_mask)
            logits = torch.zeros(action_mask.shape, device=self.device).masked_fill(~action_mask, -torch.inf)
            return Categorical(logits).sample(self.policy.generator)
        n_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        return torch.randint(n_actions, (count,), generator=self.policy.generator, device=self.device)

    def _stored_observations(self, observations: Any) -> tuple[Observations | Tensor, ExtraInputs]:
        """Return observations as the replay stores them (embeddings if frozen), and the memory's other inputs."""
        stored = self.policy.features(observations) if self.policy.freeze_features else observations
        return stored, self.policy.extra_inputs(observations)

    def _restore(self, saved: Checkpoint, rank: int) -> None:
        super()._restore(saved, rank)
        self._lacks_replay = True

    def save_replay_buffer(self, path: str | PathLike[str]) -> None:
        """Write the replay buffer to a file.

        With this file and one of `save` from the same step, learning resumes exactly.
        """
        self.replay.save(path, self.num_timesteps)

    def load_replay_buffer(self, path: str | PathLike[str]) -> None:
        """Load the replay buffer from a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is cut short, of another step of learning, or of a learner with other observations.
        """
        self.replay.load(path, self.num_timesteps)
        self._lacks_replay = False
