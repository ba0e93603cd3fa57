"""Acting in trials, one segment of a rollout at a time; what is learned from it is the business of a subclass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffer import TrialRolloutBuffer
from agents.distributed import Processes
from agents.memory import State
from agents.policies import MemoryPolicy
from agents.ppo_config import PPOConfig
from agents.vec_env import TrialVecEnv, check_encoder, encoder_fingerprint


class TrialAlgorithm(OnPolicyAlgorithm):
    """A Stable-Baselines3 algorithm that acts with a memory, in trials, and hands over a segment of a rollout at a time.

    After every c = T / K steps `train` of the subclass is called. A rollout of T steps begins with a new trial and an empty memory, unless the
    environment has no trials and the memory can be carried on.

    Of several processes each acts in its own copies of the environment, `n_envs` of them, for as many steps as the others; `num_timesteps` counts
    the steps of all. Process r has the copies r * n_envs ... (r + 1) * n_envs - 1 and their seeds.
    """

    config: PPOConfig
    processes: Processes
    policy: MemoryPolicy  # type: ignore[assignment]
    rollout_buffer: TrialRolloutBuffer  # type: ignore[assignment]
    policy_aliases = {"MemoryPolicy": MemoryPolicy}  # noqa: RUF012  (declared so by Stable-Baselines3)

    # ------------------------------------------------------------------ set-up

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        seed = self.seed if self.seed is not None else int(np.random.default_rng().integers(2**31))
        with torch.random.fork_rng(devices=[]):  # weights from the seed; the global generator stays as it was
            torch.manual_seed(seed)
            policy = self.policy_class(
                self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
            ).to(self.device)
        assert isinstance(policy, MemoryPolicy)
        self.policy = policy
        self.processes.broadcast(list(policy.state_dict().values()))
        if self.env is not None:
            self._check_horizon(self.env)
            policy.encoder_fingerprint = encoder_fingerprint(self.env)
        self._trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.policy.generator = torch.Generator(self.device)
        self.rollout_buffer = self._make_buffer()
        self._state: State | None = None
        self._has_trials = False
        self._carries_on = False  # whether the next rollout goes on with the memory of this one
        self._begun = False  # whether the environment was reset for the rollout that comes next
        self._resume_options: list[dict[str, Any]] | None = None
        self._log_due: int | None = None
        self._seed_generators(seed)
        if self.seed is not None and self.env is not None:
            self._seed_env(self.env, self.seed)

    def _make_buffer(self) -> TrialRolloutBuffer:
        return TrialRolloutBuffer(
            self.n_envs,
            self.config.n_steps,
            self.observation_space,
            self.action_space,
            self.device,
            self.policy.features_dim if self.policy.freeze_features else None,
            self.policy.memory.uses_pose,
        )

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Goes on in another environment, of any number of copies; the next rollout begins with a reset.

        Args:
            env: With the spaces of the model.
            force_reset: Must be True: a rollout cannot go on in another environment.

        Raises:
            ValueError: Other spaces, episodes too long for the memory, or `force_reset` is False.
        """
        if not force_reset:
            raise ValueError("force_reset must be True: a rollout cannot go on in another environment, got False")
        env = self._wrap_env(env, self.verbose)
        for name in ("observation_space", "action_space"):
            if getattr(env, name) != getattr(self, name):
                raise ValueError(f"{name} must be {getattr(self, name)}, got {getattr(env, name)}")
        check_encoder(self.policy.encoder_fingerprint, env)
        self._check_horizon(env)
        if env.num_envs != self.n_envs:
            self.n_envs = env.num_envs
            self.rollout_buffer = self._make_buffer()
        super().set_env(env)
        self._state, self._has_trials, self._resume_options = None, False, None

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

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seeds every generator of the learner, and the environment; None leaves them. Nothing global is touched."""
        if seed is not None:
            self._seed_generators(seed)
            if self.env is not None:
                self._seed_env(self.env, seed)

    def _seed_env(self, env: VecEnv, seed: int) -> None:
        env.seed(seed + self.processes.rank * env.num_envs)

    def _seed_generators(self, seed: int) -> None:
        rank = self.processes.rank
        draws = np.random.SeedSequence(seed, spawn_key=(rank,) if rank > 0 else ()).generate_state(4)
        self.policy.generator.manual_seed(int(draws[0]))
        memory_generator = getattr(self.policy.memory, "generator", None)
        if memory_generator is not None:
            memory_generator.manual_seed(int(draws[1]))
        self._order_rng = np.random.default_rng(int(draws[2]))
        self._shuffle_rng = np.random.default_rng(int(draws[3]))
        self.action_space.seed(seed)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if self.env is None:
            raise RuntimeError("learn was called without an environment; pass one to load, or call set_env")
        if reset_num_timesteps or self._last_obs is None:  # these are reset by Stable-Baselines3
            if self._resume_options is not None:
                self.env.set_options(self._resume_options)
                self._resume_options = None
            elif self._has_trials:
                self.env.set_options({"new_trial": True})
            self._begun, self._state = True, None
            self.rollout_buffer.reset()
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

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
            with processes.agreed():
                self._begin_rollout(env)
        assert self._state is not None
        self._segment_begin, self._segment_state, self._is_segment_kept = buffer.pos, self._state, False
        callback.on_rollout_start()
        goes_on = True
        with processes.agreed():
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
                    observations, acted.features, acted.previous, episode_start, trial_start,
                    actions, torch.as_tensor(rewards, device=self.device), values, log_probs, acted.pose,
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

    def _when(self) -> str:
        """How far learning has come, for messages."""
        return f"after {self.num_timesteps} environment steps and {self._n_updates} updates"

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
            if not self._begun and not self._trials_are_fresh():
                if self._has_trials:
                    env.set_options({"new_trial": True})
                self._last_obs = env.reset()  # type: ignore[assignment]
            self._state = self.policy.initial_state(env.num_envs, max_steps=self.config.n_steps + 1)
            self._episode_start = torch.ones(env.num_envs, dtype=torch.bool, device=self.device)
            self._trial_start = self._episode_start.clone()
        self._begun = False

    def _drop_rollout(self) -> None:
        """Forgets a rollout that a callback has cut short; learning goes on with a reset."""
        self.rollout_buffer.reset()
        self._last_obs = None

    def _trials_are_fresh(self) -> bool:
        """Whether every environment has just begun a trial by itself."""
        return self._has_trials and self._state is not None and bool(self._trial_start.all())

    def _note_starts(self, env: VecEnv, dones: np.ndarray) -> None:
        """Which environments start an episode, and a trial, with the observation that came last."""
        self._last_episode_starts = dones
        if not dones.any():
            self._episode_start = self._trial_start = torch.zeros(len(dones), dtype=torch.bool, device=self.device)
            return
        trial = dones.copy()
        if self._has_trials:
            for i in np.flatnonzero(dones).tolist():
                trial[i] = env.unwrapped.reset_infos[i]["trial_start"]
        self._episode_start = torch.as_tensor(dones, device=self.device)
        self._trial_start = torch.as_tensor(trial, device=self.device)
        if self.config.prefix_grad == "detach" and trial.any() and not self._is_segment_kept:
            # acting on in a new trial writes over the old one, which the update of this segment still looks back on
            self._segment_state = {key: value.clone() for key, value in self._segment_state.items()}
            self._is_segment_kept = True

    def _value_of(self, observations: Any, episode_start: Tensor, trial_start: Tensor) -> Tensor:
        """Value of the next observation, float (N,), without keeping it in memory: the state's counters stay as they are."""
        with torch.no_grad():
            tensors = obs_as_tensor(observations, self.device)
            features, pose = self.policy.features(tensors), self.policy.pose(tensors)
            assert self._state is not None
            return self.policy.step(features, self._state, episode_start, trial_start, pose)[1]

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

    # ------------------------------------------------------------------ use

    def predict(  # type: ignore[override]
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: State | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, State]:
        """Actions and the next state; see `MemoryPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic)

    def remember_moves(self, state: State, moves: np.ndarray) -> State:
        """The state with what was done instead; see `MemoryPolicy.remember_moves`."""
        return self.policy.remember_moves(state, moves)

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
