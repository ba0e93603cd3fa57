"""What every learner with a memory is: a policy with its generators, in an environment with trials, saved without pickle."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields, replace
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.memory import State
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import encoder_fingerprint, vocabulary_fingerprint
from memenvs.checks import choices_for


class MemoryAlgorithm(BaseAlgorithm):
    """A Stable-Baselines3 algorithm that acts with a memory, in trials; how it collects and learns is the business of a subclass.

    Nothing global is seeded: weights are drawn inside `torch.random.fork_rng`, everything else from generators of the model's own.

    Attributes:
        config: Settings of the learner, of the class `config_type`.
        rngs: NumPy's generators by the names in `rng_names`.
    """

    config: Any
    config_type: ClassVar[type]
    rng_names: ClassVar[tuple[str, ...]]
    saved_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes, plain numbers, that a checkpoint keeps of this kind of learner."""
    processes: Processes
    policy: ActingPolicy
    default_policy: ClassVar[str] = "MemoryPolicy"
    """Name of the class of its policy in `policy_aliases`."""
    policy_aliases = {"MemoryPolicy": MemoryPolicy}  # noqa: RUF012  (declared so by Stable-Baselines3)

    # ------------------------------------------------------------------ set-up

    def _configure(self, config: Any, overrides: dict[str, Any], processes: Processes | None) -> None:
        """Takes over what Stable-Baselines3's constructor does not know; called before it, as it takes some of its arguments from here.

        Args:
            config: Settings of the class `config_type`; None for the defaults.
            overrides: Fields of it to change.
            processes: Those that learn together; None: this one alone.

        Raises:
            ValueError: A setting is not allowed.
            TypeError: A setting does not exist.
        """
        known = [field.name for field in fields(self.config_type)]
        for name in overrides:
            if name not in known:
                raise TypeError(f"unknown setting {name!r}; {choices_for(name, known)}")
        self.config = replace(self.config_type() if config is None else config, **overrides)
        self.processes = processes or Processes()

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        seed = self.seed if self.seed is not None else int(np.random.default_rng().integers(2**31))
        self.policy = self._new_policy(seed)
        self.processes.broadcast(list(self.policy.state_dict().values()))
        if self.env is not None:
            self.policy.encoder_fingerprint = encoder_fingerprint(self.env)
            self.policy.vocabulary_fingerprint = vocabulary_fingerprint(self.env)
        self.policy.generator = torch.Generator(self.device)
        self._has_trials = False
        self._trial_start = torch.zeros(1, dtype=torch.bool)
        self._begun = False  # whether the environment was reset for the rollout that comes next
        self._resume_options: list[dict[str, Any]] | None = None
        self._fit_env()
        self._seed_generators(seed)
        if self.seed is not None and self.env is not None:
            self._seed_env(self.env, self.seed)

    def _new_policy(self, seed: int) -> ActingPolicy:
        """A policy with weights drawn from the seed; the global generator stays as it was."""
        taken = signature(self.policy_class).parameters.values()
        known = [each.name for each in taken if each.kind is each.KEYWORD_ONLY]
        for name in self.policy_kwargs:
            if name not in known and not any(each.kind is each.VAR_KEYWORD for each in taken):
                raise TypeError(f"unknown setting {name!r} of {self.policy_class.__name__}; {choices_for(name, known)}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            policy = self.policy_class(
                self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
            ).to(self.device)
        assert isinstance(policy, ActingPolicy)
        return policy

    def _fit_env(self) -> None:
        """Makes room for what `n_envs` environments bring; called before the first rollout and in another environment.

        Raises:
            ValueError: The policy cannot act in `env`.
        """

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
        self.policy.check_env(env)
        before = self.env, self.n_envs
        self.env, self.n_envs = env, env.num_envs
        try:
            self._fit_env()
        except ValueError:
            self.env, self.n_envs = before
            raise
        super().set_env(env)
        self._has_trials, self._resume_options = False, None

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seeds every generator of the learner, and the environment; None leaves them. Nothing global is touched."""
        if seed is not None:
            self._seed_generators(seed)
            if self.env is not None:
                self._seed_env(self.env, seed)

    def _seed_env(self, env: VecEnv, seed: int) -> None:
        """Environment i of n, in all processes, gets seed * n + i, so that learners of other seeds share none (SB3's seed + i does)."""
        env.seed((seed * self.processes.count + self.processes.rank) * env.num_envs)

    def _seed_generators(self, seed: int) -> None:
        rank = self.processes.rank
        draws = np.random.SeedSequence(seed, spawn_key=(rank,) if rank > 0 else ()).generate_state(4)
        for generator, draw in zip(self.policy.generators.values(), draws[:2], strict=False):
            generator.manual_seed(int(draw))
        self.rngs = {name: np.random.default_rng(int(draws[2 + i])) for i, name in enumerate(self.rng_names)}
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
            self._begun = True
            self._forget_rollout()
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    def _forget_rollout(self) -> None:
        """Drops what was collected of a rollout that does not go on."""

    def load_features(self, path: str | PathLike[str]) -> None:
        """Starts with the encoder of another learner; see `memenvs.agents.algorithms.checkpoint.load_features`."""
        assert isinstance(self.policy, MemoryPolicy)
        checkpoint.load_features(self.policy, path)

    # ------------------------------------------------------------------ acting

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

    def _start_trials(self, env: VecEnv) -> None:
        """Brings every environment to the first observation of a trial (of an episode where there are no trials)."""
        if not self._begun and not self._trials_are_fresh():
            if self._has_trials:
                env.set_options({"new_trial": True})
            self._last_obs = env.reset()  # type: ignore[assignment]
        self._begun = False
        self._episode_start = torch.ones(env.num_envs, dtype=torch.bool, device=self.device)
        self._trial_start = self._episode_start.clone()

    def _trials_are_fresh(self) -> bool:
        """Whether every environment has just begun a trial by itself."""
        return self._has_trials and bool(self._trial_start.all())

    def _when(self) -> str:
        """How far learning has come, for messages."""
        return f"after {self.num_timesteps} environment steps and {self._n_updates} updates"

    # ------------------------------------------------------------------ use

    @property
    @abstractmethod
    def at_rollout_boundary(self) -> bool:
        """Whether the model can be saved so that it resumes exactly: no rollout is half done."""

    def predict(  # type: ignore[override]
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: State | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, State]:
        """Actions and the next state; see `MemoryPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic)

    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state; see `ActingPolicy.update_previous_action`."""
        return self.policy.update_previous_action(state, actions)

    def saved_tensors(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps of this kind of learner, besides the policy's; they are restored in place."""
        return {}

    def save(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Writes weights, optimiser, generators and settings to one file, without pickle; see `memenvs.agents.algorithms.checkpoint`."""
        checkpoint.save(self, path)

    @classmethod
    def load(  # type: ignore[override]
        cls, path: str | PathLike[str], env: GymEnv | None = None, device: torch.device | str = "auto", **overrides: Any
    ) -> Self:
        """The model of a file; see `memenvs.agents.algorithms.checkpoint.load`."""
        return checkpoint.load(cls, path, env, device, **overrides)
