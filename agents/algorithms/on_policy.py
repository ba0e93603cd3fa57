"""Collection of rollouts for on-policy learning: trials, one segment of a rollout at a time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.episode_allocator import EpisodeAllocator, check_strategies, common_limits
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.rollout_buffer import TrialRolloutBuffer, allocating
from memenvs.agents.memory import ExtraInputs, State
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.memory.base import STRATEGY
from memenvs.agents.policies.acting import ActingPolicy, observation_tensors
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import TrialVecEnv, episode_horizon, episode_is_trial
from memenvs.task import defines


class OnPolicyMemoryAlgorithm(MemoryAlgorithm, OnPolicyAlgorithm):
    """A `MemoryAlgorithm` that learns from rollouts, one segment at a time.

    A rollout has T = `n_steps` steps and K = `n_updates` segments; `train` of the subclass is called after each segment
    of T / K steps. A rollout begins with a new trial and an empty memory, unless the environment has no trials and the
    memory can be carried on.

    Each of several processes acts in `n_envs` environments of its own: process r has the environments
    r * n_envs ... (r + 1) * n_envs - 1 and their seeds. `num_timesteps` counts the steps of all processes.
    """

    config: PPOConfig
    config_type = PPOConfig
    rng_names = ("order", "shuffle")
    action_spaces = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)
    learns_in_processes = True
    policy: MemoryPolicy  # type: ignore[assignment]
    rollout_buffer: TrialRolloutBuffer  # type: ignore[assignment]

    def _sb3_arguments(self) -> dict[str, Any]:
        names = ("n_steps", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm")
        return {
            **{name: getattr(self.config, name) for name in names},
            "use_sde": False,
            "sde_sample_freq": -1,
            "_init_setup_model": False,  # the constructor of `MemoryAlgorithm` does it
        }

    def _setup_model(self) -> None:
        self._process_batch_size = self.processes.split_evenly("batch_size", self.config.batch_size)
        super()._setup_model()
        self._trained = self.policy.optimizer.param_groups[0]["params"]  # not those of the allocator
        self._is_cloning = False  # True in a rollout in which the oracle acts
        self._carries_memory = False  # True if the next rollout goes on with the memory of this one
        self._may_miss_ends = True  # until an episode has ended, or a warning
        self._pending_log: int | None = None  # iteration whose log is written after its update

    def _new_policy(self, seed: int) -> ActingPolicy:
        """Make a policy and, with `allocator`, the allocator that chooses its strategies."""
        policy = super()._new_policy(seed)
        settings = self.config.allocator
        if settings is not None:
            assert isinstance(policy, MemoryPolicy)
            check_strategies(policy.memory, policy.memory_name, settings.strategies)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                allocator = AdaptiveAllocator(1, settings.strategies, settings.hidden_dim).to(self.device)
            policy.add_allocator(allocator, settings.learning_rate)
        return policy

    def _setup_env(self) -> None:
        self._episodes: EpisodeAllocator | None = None
        if self.env is not None:
            self._check_horizon(self.env)
            if self.config.cloning_steps is not None:
                self._check_oracle(self.env)
            if self.policy.allocator is not None:
                self._check_episodes(self.env)
                self._episodes = EpisodeAllocator(self.policy.allocator, self.n_envs)
        with allocating(f"n_steps ({self.config.n_steps}) of {self.n_envs} environments"):
            self.rollout_buffer = TrialRolloutBuffer(
                self.n_envs,
                self.config.n_steps,
                self.observation_space,
                self.action_space,
                self.device,
                self.policy.features_dim if self.policy.freeze_features else None,
                self.policy.memory.required_inputs,
                with_strategy=self.policy.allocator is not None,
            )
        self._state: State | None = None

    def _check_oracle(self, env: VecEnv) -> None:
        """Raise a ValueError if there is no oracle whose actions could be cloned."""
        if not isinstance(self.action_space, spaces.Discrete):
            raise ValueError(f"cloning_steps must be None unless actions are Discrete, got {self.action_space}")
        inner = env.unwrapped
        if not isinstance(inner, TrialVecEnv) or not defines(type(inner.env.task), "oracle_actions"):
            raise ValueError(
                f"cloning_steps must be None for an environment that has no oracle, got {self.config.cloning_steps}"
            )

    def _check_horizon(self, env: VecEnv) -> None:
        """Raise a ValueError if the memory is too short for an episode, or to value the observation after its end."""
        limit = self.policy.max_episode_steps
        if self.config.bootstrap_truncated and limit is not None:
            horizon = episode_horizon(env)
            if horizon is not None and horizon >= limit:
                raise ValueError(
                    f"memory_kwargs['max_episode_steps'] must be above the {horizon} of the environment with "
                    f"bootstrap_truncated (the observation after the last step gets a value), got {limit}"
                )
        self.policy.check_episodes(env)

    def _check_episodes(self, env: VecEnv) -> None:
        """Raise a ValueError if an allocator could not learn from the episodes of an environment."""
        limits = common_limits(env)
        self._stay_steps = 0
        if self._resets_each_rollout(limits.has_trials):  # what a rollout cuts off has no return
            self._stay_steps = limits.check_rollout(self.config.n_steps)

    def _discard_rollout(self) -> None:
        self._state = None
        self.rollout_buffer.reset()

    def collect_rollouts(self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Act for one segment, T / K steps.

        Args:
            env: N environments.
            callback: Called after each step.
            rollout_buffer: Ignored, as the next; the learner's own buffer is filled.
            n_rollout_steps: Arguments of Stable-Baselines3's method.

        Returns:
            False if the callback wants to stop.

        Raises:
            ValueError: The policy's outputs or a reward are not finite.
        """
        policy = self.policy
        buffer = self.rollout_buffer
        processes = self.processes
        policy.set_training_mode(False)
        if buffer.pos in (0, buffer.n_steps):
            with processes.fail_together():
                self._begin_rollout(env)
        assert self._state is not None
        self._segment_begin = buffer.pos
        self._segment_state = self._state  # memory before the segment
        self._is_segment_state_copied = False
        callback.on_rollout_start()
        self._is_unfinished = True  # until the update is made
        continue_training = True
        with processes.fail_together():
            for _ in range(self.config.segment):
                observations = observation_tensors(self._last_obs, self.device)
                episode_start = self._episode_start
                trial_start = self._trial_start
                extra_inputs = self._choose_strategies()
                taken = self._oracle_actions(env) if self._is_cloning else None
                output = policy.act(observations, self._state, episode_start, trial_start, taken=taken)
                self._check_outputs(output.is_finite)
                new_obs, rewards, dones, infos = self._step_env(env, policy.environment_actions(output.actions))
                self.num_timesteps += processes.count * env.num_envs
                callback.update_locals(locals())
                continue_training = callback.on_step()
                if not continue_training:
                    break
                if dones.any():
                    self._may_miss_ends = False
                    self._update_info_buffer(infos, dones)
                self._state = output.state
                self._last_obs = new_obs
                self._update_starts(env, dones)
                if self._episodes is not None:
                    self._episodes.end(torch.as_tensor(rewards, device=self.device), self._trial_start)
                if self.config.bootstrap_truncated:
                    rewards = rewards + self.gamma * self._truncated_values(dones, infos)
                buffer.add(
                    observations=observations,
                    embeddings=output.features,
                    previous_action=output.previous_action,
                    episode_start=episode_start,
                    trial_start=trial_start,
                    actions=output.actions,
                    rewards=torch.as_tensor(rewards, device=self.device),
                    values=output.values,
                    log_probs=output.log_probs,
                    extra_inputs=output.extra_inputs | extra_inputs,
                )
            else:
                self._last_values = self._value_of(self._last_obs, self._episode_start, self._trial_start)
        if not all(processes.gather(continue_training)):
            self.num_timesteps = max(processes.gather(self.num_timesteps))  # the same in all processes
            return False
        callback.update_locals(locals())
        callback.on_rollout_end()
        self._warn_of_unseen_ends()
        return True

    def _warn_of_unseen_ends(self) -> None:
        """Warn once if rollouts are too short for an episode, and each begins with new ones."""
        if self.rollout_buffer.pos < self.config.n_steps or not self._may_miss_ends or self._carries_memory:
            return
        self._may_miss_ends = False
        warnings.warn(
            f"no episode ended within the first n_steps={self.config.n_steps}, and each rollout begins with new ones: "
            "ends that come later, and their rewards, are never seen; set n_steps to at least an episode's length, or "
            "reset_each_rollout to False (with n_updates=1)",
            stacklevel=4,  # the call of `learn`, which calls `collect_rollouts`
        )

    def _begin_rollout(self, env: VecEnv) -> None:
        """Empty the buffer and, unless the memory is carried on, the memory; start trials."""
        config = self.config
        self.rollout_buffer.reset()
        self._is_cloning = config.cloning_steps is not None and self.num_timesteps < config.cloning_steps
        if self._state is None:
            known_trials = ["trial_start" in info for info in env.unwrapped.reset_infos]
            self._has_trials = all(known_trials)
            if self._episodes is not None and any(known_trials) != self._has_trials:
                raise ValueError(
                    "allocator must be None with copies of an environment whose episodes differ, got 'trial_start' in "
                    f"the info of {sum(known_trials)} of {len(known_trials)}"
                )
            self.policy.resets_with_episode = not self._has_trials
            self.policy.episode_is_trial = episode_is_trial(env)
            if config.credit_across_episodes and not self._has_trials:
                raise ValueError(
                    "credit_across_episodes must be False for an environment without trials (`info` at a reset has no "
                    "'trial_start'), got True"
                )
        resets = self._resets_each_rollout(self._has_trials)
        self._carries_memory = not resets
        if self._state is None or resets:
            self._start_trials(env)
            # one step more than the rollout has: the observation after it gets a value
            self._state = self.policy.initial_state(env.num_envs, max_steps=config.n_steps + 1)

    def _resets_each_rollout(self, has_trials: bool) -> bool:
        """Return whether a rollout begins with new trials.

        Raises:
            ValueError: It must, and `reset_each_rollout` is False.
        """
        config = self.config
        # Refilling the memory after a partial update needs all steps of the trial, so it must start in this rollout.
        must_reset = config.n_updates > 1 or not self.policy.memory.bounded
        if config.reset_each_rollout is None:
            return has_trials or must_reset
        if must_reset and not config.reset_each_rollout:
            raise ValueError(
                f"reset_each_rollout must be True with n_updates {config.n_updates} and memory "
                f"{self.policy.memory_name!r}, got False"
            )
        return config.reset_each_rollout

    def _all_at_trial_start(self) -> bool:
        return self._state is not None and super()._all_at_trial_start()

    def _oracle_actions(self, env: VecEnv) -> Tensor:
        """Return the actions of the oracle, int64, (N,), counted from 0."""
        assert isinstance(env.unwrapped, TrialVecEnv) and isinstance(self.action_space, spaces.Discrete)
        return torch.as_tensor(env.unwrapped.oracle_actions() - self.action_space.start, device=self.device)

    def _choose_strategies(self) -> ExtraInputs:
        """Choose the strategy of each memory that is emptied, and return all; empty without an allocator."""
        settings = self.config.allocator
        if self._episodes is None or settings is None:
            return {}
        assert self._state is not None
        epsilon = settings.epsilon_at(self.num_timesteps, self._total_timesteps)
        # a generator of its own would change the checkpoints of every run
        is_whole = self.rollout_buffer.pos + self._stay_steps <= self.config.n_steps
        self._state = self._episodes.begin(
            self._trial_start, self._state, epsilon, self.rngs["order"], is_whole=is_whole
        )
        return {STRATEGY: self._state[STRATEGY]}

    def _update_starts(self, env: VecEnv, dones: np.ndarray) -> None:
        super()._update_starts(env, dones)
        if self.config.prefix_grad == "detach" and not self._is_segment_state_copied and bool(self._trial_start.any()):
            # A new trial overwrites the memory in place, but the update still needs the memory before the segment.
            self._segment_state = {key: value.clone() for key, value in self._segment_state.items()}
            self._is_segment_state_copied = True

    def _value_of(self, observations: Any, episode_start: Tensor, trial_start: Tensor) -> Tensor:
        """Value of observations, float (N,); the state is not advanced."""
        with torch.no_grad():
            tensors = observation_tensors(observations, self.device)
            features = self.policy.features(tensors)
            extra_inputs = self.policy.extra_inputs(tensors)
            assert self._state is not None
            return self.policy.step(features, self._state, episode_start, trial_start, extra_inputs)[1]

    def _truncated_values(self, dones: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        """Value of the last observation of each episode that the time limit truncated, float32 (N,); 0 elsewhere."""
        truncated = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos]) & dones
        if not truncated.any():
            return np.zeros(len(truncated), np.float32)
        if isinstance(self._last_obs, dict):
            observations: Any = {key: value.copy() for key, value in self._last_obs.items()}
            for i in np.flatnonzero(truncated).tolist():
                for key, value in infos[i]["terminal_observation"].items():
                    observations[key][i] = value
        else:
            observations = np.array(self._last_obs)
            for i in np.flatnonzero(truncated).tolist():
                observations[i] = infos[i]["terminal_observation"]
        no_start = torch.zeros(len(truncated), dtype=torch.bool, device=self.device)
        values = self._value_of(observations, no_start, no_start).cpu().numpy()
        return np.where(truncated, values, 0.0).astype(np.float32)

    @property
    def is_between_rollouts(self) -> bool:
        """True if no rollout is half played and none waits for its update."""
        return super().is_between_rollouts and self.rollout_buffer.pos in (0, self.config.n_steps)

    @property
    def at_rollout_boundary(self) -> bool:
        """True if a learner that is saved now resumes exactly.

        See `MemoryAlgorithm.at_rollout_boundary`. A checkpoint has no memory. A memory that the next rollout carries on
        can be left out only where every environment starts a trial.
        """
        return super().at_rollout_boundary and (not self._carries_memory or self._all_at_trial_start())
