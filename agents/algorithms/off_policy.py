"""Acting for learning from a replay: every environment plays one whole episode into it."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.on_policy import episode_horizon
from memenvs.agents.algorithms.replay_buffer import EpisodeReplayBuffer
from memenvs.agents.algorithms.rollout_buffer import Observations
from memenvs.agents.memory import ExtraInputs
from memenvs.agents.policies.distributions import Categorical
from memenvs.agents.policies.memory_policy import MemoryPolicy


class OffPolicyMemoryAlgorithm(MemoryAlgorithm):
    """A `MemoryAlgorithm` that plays whole episodes into a replay; how it learns from them is the business of a subclass.

    Until the replay is full actions are uniform, then the policy's but for a share `epsilon`.

    Attributes:
        filled_at: Environment steps after which the replay was full; -1 before.
    """

    config: DQNConfig
    config_type = DQNConfig
    policy: MemoryPolicy
    saved_attributes = ("filled_at",)

    # ------------------------------------------------------------------ set-up

    def _setup_model(self) -> None:
        super()._setup_model()
        self.filled_at = -1
        self._replay: EpisodeReplayBuffer | None = None
        self._is_collecting = False

    def _fit_env(self) -> None:
        if self.env is None:
            return
        room, horizon = self.config.episode_steps, episode_horizon(self.env)
        if horizon is not None and horizon > room:
            raise ValueError(
                f"episode_steps must be at least the {horizon} steps of the environment's episodes, got {room}"
            )
        if self.n_envs > self.config.capacity:
            raise ValueError(
                f"capacity must be at least the number of environments, {self.n_envs}, got {self.config.capacity}"
            )

    def _forget_rollout(self) -> None:
        self._is_collecting = False

    @property
    def replay(self) -> EpisodeReplayBuffer:
        """The episodes; made when first asked for, so that a policy that only acts needs no room for them."""
        if self._replay is None:
            self._replay = EpisodeReplayBuffer(
                self.config.capacity,
                self.config.episode_steps,
                self.observation_space,
                self.device,
                self.policy.features_dim if self.policy.freeze_features else None,
                self.policy.memory.required_inputs,
            )
        return self._replay

    # ------------------------------------------------------------------ collecting

    @property
    def epsilon(self) -> float:
        """Share of uniform actions in the next iteration."""
        if self.filled_at < 0:
            return 1.0
        span = self.config.exploration * max(1, self._total_timesteps - self.filled_at)
        done = min(1.0, (self.num_timesteps - self.filled_at) / span)
        return 1.0 + done * (self.config.final_epsilon - 1.0)

    def _collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        """Lets every environment play one episode into the replay.

        Returns:
            False if the callback asked to stop; the episodes that were running are forgotten.

        Raises:
            ValueError: The policy's outputs or a reward are not finite, or an episode has no end; the message says when.
        """
        policy, replay = self.policy, self.replay
        policy.set_training_mode(False)
        self._has_trials = all("trial_start" in info for info in env.unwrapped.reset_infos)
        self._start_trials(env)
        callback.on_rollout_start()
        self._is_collecting = True
        epsilon = self.epsilon
        rows = replay.begin(env.num_envs)
        running = np.ones(env.num_envs, bool)
        state = policy.initial_state(env.num_envs, max_steps=self.config.episode_steps + 1)
        for t in range(self.config.episode_steps):
            observations = obs_as_tensor(self._last_obs, self.device)  # type: ignore[arg-type]
            actions = self._uniform_actions(env.num_envs, policy.action_mask(observations))
            if epsilon == 1.0:
                seen, where = self._seen(observations)
            else:
                start = self._episode_start
                acted = policy.act(observations, state, start, start)
                if not acted.is_finite:
                    raise ValueError(
                        f"the policy's outputs must be finite, got NaN or infinity {self._when()}; lower learning_rate"
                    )
                is_uniform = torch.rand(env.num_envs, generator=policy.generator, device=self.device) < epsilon
                actions = torch.where(is_uniform, actions, acted.actions)
                state = policy.update_previous_action(acted.state, policy.environment_actions(actions))
                seen, where = (acted.features if policy.freeze_features else observations), acted.extra_inputs
            new_obs, rewards, dones, infos = env.step(policy.environment_actions(actions))
            if not np.isfinite(rewards).all():
                raise ValueError(f"rewards must be finite, got {rewards[~np.isfinite(rewards)]} {self._when()}")
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                replay.forget(rows)
                self._last_obs = None
                return False
            now = torch.as_tensor(running)
            replay.add(rows, now, t, seen, where, actions, torch.as_tensor(rewards))
            ended = np.flatnonzero(running & dones).tolist()
            if ended:
                self._update_info_buffer([infos[i] for i in ended], np.ones(len(ended), bool))
                seen, where = self._seen(self._last_observations([infos[i] for i in ended]))
                is_terminal = torch.tensor([not infos[i].get("TimeLimit.truncated", False) for i in ended])
                replay.end(rows[ended], t + 1, seen, where, is_terminal)
            self._last_obs = new_obs  # type: ignore[assignment]
            self._note_starts(env, dones)
            running &= ~dones
            if not running.any():
                break
        else:
            raise ValueError(
                f"episodes must end within episode_steps ({self.config.episode_steps}) steps, got one that goes on"
            )
        if self.filled_at < 0 and replay.is_full:
            self.filled_at = self.num_timesteps
        self._is_collecting = False
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _uniform_actions(self, count: int, allowed: Tensor | None) -> Tensor:
        assert isinstance(self.action_space, spaces.Discrete)
        if allowed is not None:
            logits = torch.zeros(allowed.shape, device=self.device).masked_fill(~allowed, -torch.inf)
            return Categorical(logits).sample(self.policy.generator)
        return torch.randint(int(self.action_space.n), (count,), generator=self.policy.generator, device=self.device)

    @torch.no_grad()
    def _seen(self, observations: Any) -> tuple[Observations | Tensor, ExtraInputs]:
        """What the replay keeps of observations: themselves or embeddings of them, and what the memory asks for."""
        where = self.policy.extra_inputs(observations)
        return (self.policy.features(observations) if self.policy.freeze_features else observations), where

    def _last_observations(self, infos: list[dict[str, Any]]) -> Observations:
        """The last observation of each of some ended episodes, (B, ...)."""
        last = [info["terminal_observation"] for info in infos]
        if isinstance(last[0], dict):
            return obs_as_tensor({key: np.stack([each[key] for each in last]) for key in last[0]}, self.device)
        return obs_as_tensor(np.stack(last), self.device)

    # ------------------------------------------------------------------ use

    @property
    def at_rollout_boundary(self) -> bool:
        """Whether the model can be saved so that it resumes exactly: no episode is running."""
        return not self._is_collecting

    def save_replay_buffer(self, path: str | PathLike[str]) -> None:
        """Writes the episodes to a file of their own; with a file of `save` of the same moment learning resumes exactly."""
        self.replay.save(path, self.num_timesteps)

    def load_replay_buffer(self, path: str | PathLike[str]) -> None:
        """Takes the episodes of a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is cut short, of another moment than this learner, or of a learner with other observations.
        """
        self.replay.load(path, self.num_timesteps)
