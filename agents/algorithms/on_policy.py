"""Acting in trials, one segment of a rollout at a time; what is learned from it is the business of a subclass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.rollout_buffer import TrialRolloutBuffer
from memenvs.agents.memory import State
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import TrialVecEnv


class OnPolicyMemoryAlgorithm(MemoryAlgorithm, OnPolicyAlgorithm):
    """A Stable-Baselines3 algorithm that acts with a memory, in trials, and hands over a segment of a rollout at a time.

    After every c = T / K steps `train` of the subclass is called. A rollout of T steps begins with a new trial and an empty memory, unless the
    environment has no trials and the memory can be carried on.

    Of several processes each acts in its own copies of the environment, `n_envs` of them, for as many steps as the others; `num_timesteps` counts
    the steps of all. Process r has the copies r * n_envs ... (r + 1) * n_envs - 1 and their seeds.
    """

    config: PPOConfig
    config_type = PPOConfig
    rng_names = ("order", "shuffle")
    policy: MemoryPolicy  # type: ignore[assignment]
    rollout_buffer: TrialRolloutBuffer  # type: ignore[assignment]

    # ------------------------------------------------------------------ set-up

    def _setup_model(self) -> None:
        super()._setup_model()
        self._trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self._carries_on = False  # whether the next rollout goes on with the memory of this one
        self._log_due: int | None = None

    def _fit_env(self) -> None:
        if self.env is not None:
            self._check_horizon(self.env)
        self.rollout_buffer = TrialRolloutBuffer(
            self.n_envs,
            self.config.n_steps,
            self.observation_space,
            self.action_space,
            self.device,
            self.policy.features_dim if self.policy.freeze_features else None,
            self.policy.memory.required_inputs,
        )
        self._state: State | None = None

    def _check_horizon(self, env: VecEnv) -> None:
        """Raises a ValueError if a memory with a table of steps has none left for the observation after the last step of an episode."""
        steps = getattr(getattr(self.policy.memory, "config", None), "max_episode_steps", None)
        if self.config.bootstrap_truncated and steps is not None:
            horizon = episode_horizon(env)
            if horizon is not None and horizon >= steps:
                raise ValueError(
                    f"max_episode_steps of the memory must be above the {horizon} of the environment with bootstrap_truncated "
                    f"(the observation after the last step is asked for its value), got {steps}"
                )

    def _forget_rollout(self) -> None:
        self._state = None
        self.rollout_buffer.reset()

    # ------------------------------------------------------------------ collecting

    def collect_rollouts(self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Acts for one segment of c steps (not for `n_rollout_steps`, which is the whole rollout).

        Returns:
            False if the callback asked to stop.

        Raises:
            ValueError: The policy's outputs or a reward are not finite; the message says when.
        """
        policy, buffer, processes = self.policy, self.rollout_buffer, self.processes
        policy.set_training_mode(False)
        if buffer.pos in (0, buffer.n_steps):
            with processes.fail_together():
                self._begin_rollout(env)
        assert self._state is not None
        self._segment_begin, self._segment_state, self._is_segment_kept = buffer.pos, self._state, False
        callback.on_rollout_start()
        goes_on = True
        with processes.fail_together():
            for _ in range(self.config.segment):
                observations = obs_as_tensor(self._last_obs, self.device)  # type: ignore[arg-type]
                episode_start, trial_start = self._episode_start, self._trial_start
                acted = policy.act(observations, self._state, episode_start, trial_start)
                actions, values, log_probs = acted.actions, acted.values, acted.log_probs
                if not acted.is_finite:
                    raise ValueError(
                        f"the policy's outputs must be finite, got NaN or infinity {self._when()}; "
                        "lower learning_rate or max_grad_norm, or look at the observations"
                    )
                new_obs, rewards, dones, infos = env.step(policy.environment_actions(actions))
                if not np.isfinite(rewards).all():
                    raise ValueError(f"rewards must be finite, got {rewards[~np.isfinite(rewards)]} {self._when()}")
                self.num_timesteps += processes.count * env.num_envs
                callback.update_locals(locals())
                goes_on = callback.on_step()
                if not goes_on:
                    break
                if dones.any():
                    self._update_info_buffer(infos, dones)
                self._state = acted.state
                self._last_obs = new_obs  # type: ignore[assignment]
                self._note_starts(env, dones)
                if self.config.bootstrap_truncated:
                    rewards = rewards + self.gamma * self._truncated_values(dones, infos)
                buffer.add(
                    observations, acted.features, acted.previous_action, episode_start, trial_start,
                    actions, torch.as_tensor(rewards, device=self.device), values, log_probs, acted.extra_inputs,
                )  # fmt: skip
            else:
                self._last_values = self._value_of(self._last_obs, self._episode_start, self._trial_start)
        if not all(processes.gather(goes_on)):
            self.num_timesteps = max(processes.gather(self.num_timesteps))  # the same in all, whoever asked to stop
            self._drop_rollout()
            return False
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _begin_rollout(self, env: VecEnv) -> None:
        """Empties the buffer and, where rollouts are trials, the memory and the environment."""
        self.rollout_buffer.reset()
        if self._state is None:
            self._has_trials = all("trial_start" in info for info in env.unwrapped.reset_infos)
            self.policy.resets_with_episode = not self._has_trials
            if self.config.credit_across_episodes and not self._has_trials:
                raise ValueError(
                    "credit_across_episodes must be False for an environment without trials (`info` at a reset has no 'trial_start'), got True"
                )
        wanted = self.config.reset_each_rollout
        resets = self._has_trials or self.config.n_updates > 1 or not self.policy.memory.bounded
        if wanted is not None:
            if resets and not wanted and (self.config.n_updates > 1 or not self.policy.memory.bounded):
                raise ValueError(
                    f"reset_each_rollout must be True with n_updates {self.config.n_updates} and memory "
                    f"{self.policy.memory_name!r}, got False"
                )
            resets = wanted
        self._carries_on = not resets
        if self._state is None or resets:
            self._start_trials(env)
            self._state = self.policy.initial_state(env.num_envs, max_steps=self.config.n_steps + 1)

    def _drop_rollout(self) -> None:
        """Forgets a rollout that a callback has cut short; learning goes on with a reset."""
        self.rollout_buffer.reset()
        self._last_obs = None

    def _trials_are_fresh(self) -> bool:
        return self._state is not None and super()._trials_are_fresh()

    def _note_starts(self, env: VecEnv, dones: np.ndarray) -> None:
        super()._note_starts(env, dones)
        if self.config.prefix_grad == "detach" and not self._is_segment_kept and bool(self._trial_start.any()):
            # acting on in a new trial writes over the old one, which the update of this segment still looks back on
            self._segment_state = {key: value.clone() for key, value in self._segment_state.items()}
            self._is_segment_kept = True

    def _value_of(self, observations: Any, episode_start: Tensor, trial_start: Tensor) -> Tensor:
        """Value of the next observation, float (N,), without keeping it in memory: the state's counters stay as they are."""
        with torch.no_grad():
            tensors = obs_as_tensor(observations, self.device)
            features, where = self.policy.features(tensors), self.policy.extra_inputs(tensors)
            assert self._state is not None
            return self.policy.step(features, self._state, episode_start, trial_start, where)[1]

    def _truncated_values(self, dones: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        """Value of the last observation of each episode that the clock cut, float32 (N,), 0 elsewhere."""
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos]) & dones
        if not cut.any():
            return np.zeros(len(cut), np.float32)
        if isinstance(self._last_obs, dict):
            observations: Any = {key: value.copy() for key, value in self._last_obs.items()}
            for i in np.flatnonzero(cut).tolist():
                for key, value in infos[i]["terminal_observation"].items():
                    observations[key][i] = value
        else:
            observations = np.array(self._last_obs)
            for i in np.flatnonzero(cut).tolist():
                observations[i] = infos[i]["terminal_observation"]
        never = torch.zeros(len(cut), dtype=torch.bool, device=self.device)
        return np.where(cut, self._value_of(observations, never, never).cpu().numpy(), 0.0).astype(np.float32)

    @property
    def at_rollout_boundary(self) -> bool:
        """Whether the model can be saved so that it resumes exactly: no rollout is half done."""
        return self.rollout_buffer.pos in (0, self.config.n_steps)


def episode_horizon(env: VecEnv) -> int | None:
    """Steps after which the clock cuts an episode, the most of all copies; None if the environment does not say."""
    bare = env.unwrapped
    if isinstance(bare, TrialVecEnv):
        return bare.env.max_episode_steps
    limits = [spec.max_episode_steps for spec in env.get_attr("spec") if spec is not None]
    return max((limit for limit in limits if limit is not None), default=None)
