"""Base class of all algorithms with a memory: constructor, generators, trials, acting."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from inspect import signature
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, PyTorchObs
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.finite import check_finite
from memenvs.agents.algorithms.saving import SavableAlgorithm
from memenvs.agents.devices import torch_device
from memenvs.agents.memory import State
from memenvs.agents.policies.acting import ActingPolicy, PolicyOutput
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import check_observation_space, encoder_fingerprint, vocabulary_fingerprint
from memenvs.checks import choices_for, plain

MAX_ACTION_NUMBERS = 512
"""Most numbers of a `Box` action; those of the picture tasks of `memenvs` have 768 at least."""


class MemoryAlgorithm(SavableAlgorithm):
    """A Stable-Baselines3 algorithm whose policy has a memory and whose episodes form trials.

    Subclasses collect experience and learn from it. No global generator is seeded: weights are drawn inside
    `torch.random.fork_rng`, everything else from generators of the learner.

    Args:
        policy: Name of a policy class in `policy_aliases`, or a subclass of one.
        env: Any Gymnasium environment or `VecEnv`; `memenvs.agents.make_vec_env` makes fast ones. None to act only.
        config: Settings of class `config_type`; None for the defaults.
        policy_kwargs: Settings of the policy.
        tensorboard_log: Folder for TensorBoard; None for none.
        verbose: 0 is silent, 1 prints training logs.
        seed: Seed of weights, actions and environments; None draws one.
        device: "auto", "cpu" or "cuda".
        processes: Processes that learn together, see `launched_processes` in `memenvs.agents.algorithms.distributed`;
            None: this one alone.
        **overrides: Fields of the config to change.

    Attributes:
        config: Settings of the learner.
        rngs: NumPy generators, by the names in `rng_names`.

    Raises:
        ValueError: A setting is not allowed, there is no such device, or several processes are given to a learner that
            learns in one.
        TypeError: A setting does not exist.
    """

    action_spaces: ClassVar[tuple[type[spaces.Space], ...]] = (spaces.Discrete,)
    """Types of action space that the algorithm supports."""
    update_statistics: ClassVar[tuple[str, ...]] = ()
    """Names under `train/` that an update logs and that callbacks can read at the end of the next rollout."""
    learns_in_processes: ClassVar[bool] = False
    """True if several processes can train one policy together."""

    def __init__(
        self,
        policy: str | type[ActingPolicy],
        env: GymEnv | str | None,
        config: Any = None,
        *,
        policy_kwargs: dict[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        processes: Processes | None = None,
        _init_setup_model: bool = True,
        **overrides: Any,
    ) -> None:
        settings = [field.name for field in fields(self.config_type)]
        for name in overrides:
            if name not in settings:
                raise TypeError(f"unknown setting {name!r}; {choices_for(name, settings)}")
            if callable(overrides[name]):  # a schedule of Stable-Baselines3
                raise TypeError(f"{name} must be a number, as a checkpoint holds no functions, got {overrides[name]!r}")
        if config is not None and not issubclass(type(config), self.config_type):
            raise TypeError(
                f"config must be a {self.config_type.__name__} or None, got {config!r}; single settings go by name"
            )
        self.config = replace(self.config_type() if config is None else config, **overrides)
        device = torch_device(device)
        env = None if env is None else maybe_make_env(env, verbose)
        if env is not None:
            self._check_action_space(env.action_space)
        self.processes = processes or Processes()
        if self.processes.count > 1 and not self.learns_in_processes:
            raise ValueError(f"{type(self).__name__} learns in one process, got a launch of {self.processes.count}")
        super().__init__(
            policy,
            env,
            learning_rate=self.config.learning_rate,
            policy_kwargs=self._complete_policy_kwargs(policy_kwargs or {}),
            tensorboard_log=tensorboard_log if self.processes.is_first else None,
            verbose=verbose if self.processes.is_first else 0,
            seed=seed,
            device=device,
            supported_action_spaces=self.action_spaces,
            **self._sb3_arguments(),
        )
        if _init_setup_model:
            self._setup_model()

    def _check_action_space(self, space: spaces.Space) -> None:
        """Raise a ValueError if the learner cannot act in a space; Stable-Baselines3 has bare assertions for it."""
        if not isinstance(space, self.action_spaces):
            allowed = " or ".join(kind.__name__ for kind in self.action_spaces)
            raise ValueError(f"the action space of {type(self).__name__} must be {allowed}, got {space}")
        if isinstance(space, spaces.Box) and math.prod(space.shape) > MAX_ACTION_NUMBERS:
            raise ValueError(
                f"the action space must have at most {MAX_ACTION_NUMBERS} numbers, got {math.prod(space.shape):,}: an "
                "action of that size is a picture, and reinforcement, which tries out noise in each number, does not "
                "learn to draw it; learn to predict it, as `memenvs train sat-pictures` does"
            )
        if isinstance(space, spaces.Box) and not space.is_bounded():
            raise ValueError(
                f"the action space must have finite bounds, as gymnasium.wrappers.RescaleAction gives, got {space}"
            )

    def _complete_policy_kwargs(self, policy_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return `policy_kwargs` with the settings that follow from the config added."""
        return policy_kwargs

    def _sb3_arguments(self) -> dict[str, Any]:
        """Return further arguments of the constructor of Stable-Baselines3's class (the next one in the MRO)."""
        return {"support_multi_env": True}

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        seed = self.seed if self.seed is not None else int(np.random.default_rng().integers(2**31))
        self.policy = self._new_policy(seed)
        self.processes.broadcast(list(self.policy.state_dict().values()))  # all start with the weights of the first
        if self.env is not None:  # stored in checkpoints, so that a policy refuses features of another encoder
            self.policy.encoder_fingerprint = encoder_fingerprint(self.env)
            self.policy.vocabulary_fingerprint = vocabulary_fingerprint(self.env)
        self.policy.generator = torch.Generator(self.device)
        self._is_update_logged = False  # True if the logger still has the statistics of an update that was logged
        self._has_trials = False  # True if several episodes form a trial; known after the first reset
        self._trial_start = torch.zeros(1, dtype=torch.bool)  # (N,); True where the latest observation starts a trial
        self._is_reset = False  # True if the environment was reset and has made no step since
        self._is_unfinished = False  # True from the first step of a rollout to the end of its update
        self._resume_trials = None
        self._setup_env()
        self._seed_generators(seed)
        if self.seed is not None and self.env is not None:
            self._seed_env(self.env, self.seed)

    def _new_policy(self, seed: int) -> ActingPolicy:
        """Make a policy with weights drawn from the seed; the global generator is left as it was."""
        if not issubclass(self.policy_class, ActingPolicy):
            raise TypeError(f"policy must be {self.default_policy} or a subclass, got {self.policy_class.__name__}")
        self.policy_kwargs = plain(self.policy_kwargs)
        parameters = signature(self.policy_class).parameters.values()
        settings = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        for name in self.policy_kwargs:
            if name not in settings and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
                raise TypeError(
                    f"unknown setting {name!r} of {self.policy_class.__name__}; {choices_for(name, settings)}"
                )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            policy: ActingPolicy = self.policy_class(
                self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
            ).to(self.device)
        for name, value in policy.json_kwargs().items():  # not after hours of learning, when it is saved
            try:
                json.dumps(value)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{name} must be numbers, texts, lists and dicts, which a checkpoint can hold, got {value!r} "
                    f"({error})"
                ) from None
        return policy

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        check_observation_space(env.observation_space)  # before the wrappers, whose error would name no key
        return SavableAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _get_policy_from_name(self, policy_name: str) -> type[BasePolicy]:
        if policy_name not in self.policy_aliases:
            raise ValueError(
                f"unknown policy {policy_name!r}; choose from {list(self.policy_aliases)} or pass a subclass; "
                "policy_kwargs choose its features extractor and its memory"
            )
        return self.policy_aliases[policy_name]

    def _setup_env(self) -> None:
        """Check the environment and allocate what depends on it; called at the start and by `set_env`.

        Raises:
            ValueError: The learner cannot learn in `env`.
        """

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Replace the environment; the next rollout begins with a reset.

        Args:
            env: Any number of copies of an environment with the spaces of the learner.
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
        before = (self.env, self.n_envs)  # to restore if the environment is refused
        self.env = env
        self.n_envs = env.num_envs
        try:
            self._setup_env()
        except ValueError:
            self.env, self.n_envs = before
            raise
        super().set_env(env)
        self._has_trials = False
        self._resume_trials = None

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed every generator of the learner, and the environment; None changes nothing."""
        if seed is not None:
            self._seed_generators(seed)
            if self.env is not None:
                self._seed_env(self.env, seed)

    def _seed_env(self, env: VecEnv, seed: int) -> None:
        """Seed environment i with seed * n + i, where n counts the environments of all processes.

        Runs with different seeds then share no environment seed. With seed + i, as in Stable-Baselines3, they would.
        """
        # `VecEnv.seed` adds the number of the environment within this process.
        env.seed((seed * self.processes.count + self.processes.rank) * env.num_envs)

    def _seed_generators(self, seed: int) -> None:
        """Seed the policy's generators and `rngs`, differently in each process."""
        rank = self.processes.rank
        draws = np.random.SeedSequence(seed, spawn_key=(rank,) if rank > 0 else ()).generate_state(4)
        # Two draws for the policy's generators (it has one or two), the rest for `rngs`.
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
        if self._is_unfinished and not reset_num_timesteps:  # an exception, Ctrl-C or a callback ended `learn`
            warnings.warn(
                "learning stopped in the middle of a rollout or of its update, which is dropped: it goes on with a new "
                f"rollout, {self._progress()}",
                stacklevel=3,
            )
        resets = reset_num_timesteps or self._is_unfinished or self._last_obs is None
        if resets:
            self._last_obs = None  # Stable-Baselines3 then resets the environment
            self._is_reset = self._is_unfinished = False
            self._discard_rollout()
            if self._resume_trials is not None:
                self.env.set_options([{"trial": trial} for trial in self._resume_trials["trial"]])
            elif self._has_trials:
                self.env.set_options({"new_trial": True})
        try:
            return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        finally:
            if resets and self._last_obs is not None:  # the reset has succeeded, whatever failed after it
                self._is_reset = True
                self._resume_trials = None

    def _discard_rollout(self) -> None:
        """Discard what belongs to the running rollout, because the environment is reset."""

    def load_features(self, path: str | PathLike[str]) -> None:
        """Load the features extractor of a checkpoint; see `checkpoint.load_features`."""
        assert isinstance(self.policy, MemoryPolicy)
        checkpoint.load_features(self.policy, path)

    def _start_trials(self, env: VecEnv) -> None:
        """Bring every environment to the start of a trial (of an episode if there are no trials)."""
        if not self._is_reset and not self._all_at_trial_start():
            if self._has_trials:
                env.set_options({"new_trial": True})
            self._last_obs = env.reset()  # type: ignore[assignment]
        self._is_reset = True
        self._episode_start = torch.ones(env.num_envs, dtype=torch.bool, device=self.device)
        self._trial_start = self._episode_start.clone()

    def _all_at_trial_start(self) -> bool:
        """Return True if every environment has just started a new trial, by its automatic reset."""
        return self._has_trials and bool(self._trial_start.all())

    def _act(self, observations: PyTorchObs, state: State, episode_start: Tensor, trial_start: Tensor) -> PolicyOutput:
        """Let the policy act; raise a ValueError if its outputs are not finite."""
        output = self.policy.act(observations, state, episode_start, trial_start)
        self._check_outputs(output.is_finite)
        return output

    def _check_outputs(self, is_finite: bool) -> None:
        if not is_finite:
            raise ValueError(
                f"the policy's outputs must be finite, got NaN or infinity {self._progress()}; lower learning_rate or "
                "max_grad_norm, or check the observations"
            )

    def _step_env(self, env: VecEnv, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; raise a ValueError if a reward is not finite.

        Args:
            env: N environments.
            actions: Actions as the environment takes them, (N, ...).

        Returns:
            Observations, rewards float32 (N,), dones bool (N,), and infos, as `VecEnv.step` returns them.
        """
        self._is_reset = False
        observations, rewards, dones, infos = env.step(actions)
        if not np.isfinite(rewards).all():
            raise ValueError(f"rewards must be finite, got {rewards[~np.isfinite(rewards)]} {self._progress()}")
        return observations, rewards, dones, infos

    def _update_starts(self, env: VecEnv, dones: np.ndarray) -> None:
        """Mark where the latest observation starts an episode, and where it starts a trial.

        Args:
            env: N environments.
            dones: bool, (N,); True where the latest step ended an episode.
        """
        self._last_episode_starts = dones
        if not dones.any():
            self._episode_start = self._trial_start = torch.zeros(len(dones), dtype=torch.bool, device=self.device)
            return
        trial_start = dones.copy()
        if self._has_trials:
            for i in np.flatnonzero(dones).tolist():
                trial_start[i] = env.unwrapped.reset_infos[i]["trial_start"]  # info of the automatic reset
        self._episode_start = torch.as_tensor(dones, device=self.device)
        self._trial_start = torch.as_tensor(trial_start, device=self.device)

    def _progress(self) -> str:
        """Return the progress of learning, for messages."""
        return f"after {self.num_timesteps} environment steps and {self._n_updates} updates"

    def _check_update(self, statistics: dict[str, float]) -> None:
        """Raise a ValueError if a loss or gradient of the current update is not finite."""
        check_finite(statistics, f"in update {self._n_updates + 1}, {self._progress()}")

    def _dump_log(self, dump: Callable[[], None]) -> None:
        """Write the log, and leave the statistics of the update in the logger.

        Callbacks then find them there at the end of the next rollout, as in Stable-Baselines3, which writes the log of
        an update only after that rollout.

        Args:
            dump: Writes the log and empties the logger.
        """
        logger = self.logger
        names = [f"train/{name}" for name in self.update_statistics if f"train/{name}" in logger.name_to_value]
        kept = {name: (logger.name_to_value[name], logger.name_to_excluded[name]) for name in names}
        dump()
        for name, (value, excluded) in kept.items():
            logger.record(name, value, excluded)
        self._is_update_logged = True

    def _begin_update_log(self) -> None:
        """Remove the statistics that `_dump_log` has left, so that each is logged once."""
        if self._is_update_logged:
            for name in self.update_statistics:
                self.logger.name_to_value.pop(f"train/{name}", None)
                self.logger.name_to_excluded.pop(f"train/{name}", None)
        self._is_update_logged = False

    def _record_episodes(self) -> None:
        """Log return, length and success rate of the latest episodes."""
        if self.ep_info_buffer:
            self.logger.record("rollout/ep_rew_mean", safe_mean([info["r"] for info in self.ep_info_buffer]))
            self.logger.record("rollout/ep_len_mean", safe_mean([info["l"] for info in self.ep_info_buffer]))
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))

    @property
    def is_between_rollouts(self) -> bool:
        """True if no rollout is half played and none waits for its update."""
        return not self._is_unfinished

    @property
    def has_resumable_trials(self) -> bool:
        """True if a checkpoint can name the trials with which the environments go on.

        False in an environment whose `info` at a reset has no `seed` and no `trial_id`: a learner that is loaded goes
        on there in other episodes.
        """
        return self._last_obs is None or self._next_trials() is not None

    @property
    def at_rollout_boundary(self) -> bool:
        """True if a learner that is saved now resumes exactly.

        It is between rollouts, the next one begins with new trials, and a checkpoint can name these.
        """
        return self.is_between_rollouts and self.has_resumable_trials

    def predict(  # type: ignore[override]
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: State | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        trial_start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, State]:
        """Return actions and the next state; see `ActingPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic, trial_start)

    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state; see `ActingPolicy.update_previous_action`."""
        return self.policy.update_previous_action(state, actions)
