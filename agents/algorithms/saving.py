"""Saving and loading of learners; the format of the file is in `checkpoint.py`."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from gymnasium import Space
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, TensorDict
from stable_baselines3.common.utils import get_system_info
from torch import Tensor

from memenvs.agents.algorithms import archive, checkpoint
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.finite import check_finite_tensors, check_finite_weights
from memenvs.agents.algorithms.spaces import space_from_json, space_to_json
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import check_encoder, check_vocabulary
from memenvs.checks import choices_for
from memenvs.resets import SEED_LIMIT


class SavableAlgorithm(BaseAlgorithm):
    """A Stable-Baselines3 algorithm that is saved without pickle and resumes with the same bits.

    The base of `MemoryAlgorithm`, whose constructor `load` calls.

    Attributes:
        config: Config of the learner, of class `config_type`.
        rngs: NumPy generators, by the names in `rng_names`.
        processes: Processes that learn together.
    """

    config: Any
    config_type: ClassVar[type]
    rng_names: ClassVar[tuple[str, ...]] = ()
    saved_attributes: ClassVar[tuple[str, ...]] = ()
    """Names of attributes, plain numbers, that a checkpoint of this kind of learner stores."""
    default_policy: ClassVar[str] = "MemoryPolicy"
    """Name of the class of its policy in `policy_aliases`."""
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MemoryPolicy": MemoryPolicy}
    policy: ActingPolicy
    processes: Processes
    rngs: dict[str, np.random.Generator]
    _has_trials: bool
    _is_reset: bool
    _resume_trials: dict[str, list[int]] | None
    """Seeds and trials with which a loaded learner goes on; None where it starts at the first trial."""

    @abstractmethod
    def _progress(self) -> str:
        """Return the progress of learning, for messages."""

    @abstractmethod
    def _all_at_trial_start(self) -> bool:
        """Return True if every environment has just started a new trial, by its automatic reset."""

    def saved_tensors(self) -> dict[str, Tensor]:
        """Return tensors besides the policy's that a checkpoint stores; restored in place."""
        return {}

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def set_parameters(
        self,
        load_path_or_dict: archive.File | TensorDict,
        exact_match: bool = True,
        device: torch.device | str = "auto",
    ) -> None:
        """Replace weights and the state of optimizers by those of `get_parameters` or of a file.

        Args:
            load_path_or_dict: What `get_parameters` returns, or a file that `save` has written.
            exact_match: If True, everything that `get_parameters` returns must be given; otherwise what is left out
                stays as it is.
            device: Ignored: the tensors are copied to the device of the learner.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A name is unknown or missing, or a file is of another learner or has only a policy.
        """
        if isinstance(load_path_or_dict, dict):
            parameters: dict[str, Any] = load_path_or_dict
        else:
            path = load_path_or_dict
            _check_resumable(path, Checkpoint.read(path).config, self.processes)
            parameters = type(self).load(path, device=self.device, policy_kwargs=self.policy_kwargs).get_parameters()
        names = self._get_torch_save_params()[0]
        for name in parameters:
            if name not in names:
                raise ValueError(f"unknown parameters {name!r}; {choices_for(name, names)}")
        missing = [name for name in names if name not in parameters]
        if exact_match and missing:
            raise ValueError(
                f"parameters must have {names} with exact_match, {missing} missing; get_parameters returns all"
            )
        super().set_parameters(parameters, exact_match)

    def save(  # type: ignore[override]
        self, path: archive.File, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None
    ) -> None:
        """Write weights, optimizer, generators and settings to one file.

        Every process must call this. A learner that is saved at a rollout boundary resumes exactly. For the format see
        `memenvs.agents.algorithms.checkpoint`.

        Args:
            path: The file; replaced if it is there. A name without a suffix gets `.zip`.
            exclude: Argument of Stable-Baselines3's `save`; must be None or empty, as a checkpoint's content is fixed.
            include: As `exclude`.

        Raises:
            ValueError: A weight is NaN or infinite, or something is to be excluded or included; a file that is there
                stays.
            OSError: The file cannot be written. In processes other than the first a RuntimeError.
        """
        for name, excluded in (("exclude", exclude), ("include", include)):
            if excluded is not None and (excluded := list(excluded)):
                raise ValueError(
                    f"{name} must be None: a checkpoint holds settings, weights, optimizer and generators and nothing "
                    "else; memenvs.agents.algorithms.checkpoint.drop_training_state copies one without optimizer and "
                    f"generators, got {excluded}"
                )
        check_finite_weights(self.policy, path, self._progress())
        generators = {name: generator.get_state() for name, generator in self.policy.generators.items()}
        of_processes = self.processes.gather((self._process_state(), generators))
        with self.processes.fail_together():
            if self.processes.is_first:
                Checkpoint(
                    config={
                        "algorithm": type(self).__name__,
                        "config": asdict(self.config),
                        "policy_kwargs": self.policy.json_kwargs(),
                        "observation_space": space_to_json(self.observation_space),
                        "action_space": space_to_json(self.action_space),
                        "n_envs": self.processes.count * self.n_envs,
                        "processes": self.processes.count,
                        "encoder": self.policy.encoder_fingerprint,
                        "vocabulary": self.policy.vocabulary_fingerprint,
                    },
                    states=[state for state, _ in of_processes],
                    generators=[states for _, states in of_processes],
                    policy=archive.cpu_copies(self.policy.state_dict()),
                    optimizer=archive.cpu_copies(archive.optimizer_tensors(self.policy.optimizer)),
                    learner=archive.cpu_copies(self.saved_tensors()),
                ).write(path)

    def _process_state(self) -> dict[str, Any]:
        """Return counters, NumPy generators, recent episodes and next trials of this process, as JSON."""
        return {
            "num_timesteps": self.num_timesteps,
            "n_updates": self._n_updates,
            "seed": None if self.seed is None else int(self.seed),
            "resets_with_episode": self.policy.resets_with_episode,
            "episode_is_trial": self.policy.episode_is_trial,
            **{f"{name}_rng": rng.bit_generator.state for name, rng in self.rngs.items()},
            "recent_episodes": [{"r": float(info["r"]), "l": int(info["l"])} for info in self.ep_info_buffer or []],
            "recent_successes": [bool(value) for value in self.ep_success_buffer or []],
            "trials": self._next_trials(),
            **{name: getattr(self, name) for name in self.saved_attributes},
        }

    def _next_trials(self) -> dict[str, list[int]] | None:
        """Return seed and number of the trial that each environment starts next.

        None if there are no trials, or the seeds of the environments are not consecutive or too large for a file.
        """
        if self._resume_trials is not None:  # loaded, and not reset since
            return self._resume_trials
        infos = self.env.unwrapped.reset_infos if self.env is not None else []
        if not infos or not all("trial_id" in info and "seed" in info for info in infos):
            return None
        seeds = [int(info["seed"]) for info in infos]
        if seeds != list(range(seeds[0], seeds[0] + len(seeds))) or not 0 <= seeds[0] <= seeds[-1] < SEED_LIMIT:
            return None
        ahead = 0 if self._is_reset or self._all_at_trial_start() else 1  # a trial that has begun is not continued
        return {"seed": seeds, "trial": [int(info["trial_id"]) + ahead for info in infos]}

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: archive.File,
        env: GymEnv | None = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        *,
        policy_kwargs: dict[str, Any] | None = None,
        processes: Processes | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        **overrides: Any,
    ) -> Self:
        """Load a learner, ready to act, and to go on learning if an environment is given.

        Args:
            path: File that `save` has written, with or without its suffix `.zip`.
            env: Environment to go on in, with the spaces of the file; None to act only.
            device: Device of the learner. If it was saved on another kind of device, the generator of actions starts
                again from the seed.
            custom_objects: Must be None or empty: a checkpoint is plain data, in which nothing needs replacing.
            print_system_info: If True, print the versions of Python and packages.
            force_reset: Must be True: a rollout cannot go on in another environment.
            policy_kwargs: Changes to the saved settings of the policy.
            processes: Processes that go on learning together, as many as wrote the file; None: this one alone.
            tensorboard_log: As in the constructor.
            verbose: As in the constructor.
            **overrides: Fields of the config to change.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is cut short, not a checkpoint, of another algorithm or number of processes, or does
                not fit the environment or the settings; `custom_objects` are given or `force_reset` is False.
        """
        if custom_objects:
            raise ValueError(
                "custom_objects must be None: a checkpoint is plain data, in which nothing needs replacing; give "
                f"settings to change by name, such as learning_rate=1e-4 or policy_kwargs=..., got {custom_objects}"
            )
        if not force_reset:
            raise ValueError("force_reset must be True: a rollout cannot go on in another environment, got False")
        if print_system_info:
            get_system_info()
        processes = processes or Processes()
        saved = Checkpoint.read(path)
        config = saved.config
        if env is not None:
            _check_resumable(path, config, processes)
        if not isinstance(config["policy_kwargs"], dict):
            raise ValueError(f"{path}: config.json: policy_kwargs must be an object, got {config['policy_kwargs']!r}")
        if config["algorithm"] != cls.__name__:
            raise ValueError(f"{path}: algorithm must be {cls.__name__!r}, got {config['algorithm']!r}")
        rank = processes.rank if env is not None else 0
        for key in (*(f"{name}_rng" for name in cls.rng_names), *cls.saved_attributes):
            if key not in saved.states[rank]:
                raise ValueError(f"{path}: state.json lacks {key!r}")
        spaces_of_file = {name: _read_space(path, config, name) for name in ("observation_space", "action_space")}
        if env is not None:
            env = cls._wrap_env(env, verbose)  # as in training: images with their channels first
            for name, space in spaces_of_file.items():
                if space != getattr(env, name):
                    raise ValueError(f"{path}: {name} must be that of the file, {space}, got {getattr(env, name)}")
        model: Self = cast(Any, cls)(  # the constructor is that of `MemoryAlgorithm`
            cls.default_policy,
            env,
            archive.parse_config(path, config["config"], cls.config_type),
            policy_kwargs={**config["policy_kwargs"], **(policy_kwargs or {})},
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            seed=saved.states[rank]["seed"],
            device=device,
            processes=processes,
            _init_setup_model=False,
            **overrides,
        )
        model.observation_space = spaces_of_file["observation_space"]
        model.action_space = spaces_of_file["action_space"]
        if env is None:
            model.n_envs = 1
        try:
            if env is not None:
                check_encoder(config.get("encoder"), env)
                check_vocabulary(config.get("vocabulary"), env)
            model._setup_model()
            model._restore(saved, rank)
        except (
            TypeError,
            ValueError,
            ArithmeticError,
            LookupError,
            AttributeError,
            MemoryError,
            RuntimeError,
        ) as error:
            changed = [
                name for name, value in (policy_kwargs or {}).items() if config["policy_kwargs"].get(name) != value
            ]
            hint = f"; policy_kwargs changes the saved {', '.join(changed)}" if changed else ""
            raise ValueError(f"{path}: {error}{hint}") from error
        return model

    def _restore(self, saved: Checkpoint, rank: int) -> None:
        """Restore weights, counters and, unless the file is policy-only, optimizer and generators."""
        policy = self.policy
        state = saved.states[rank]
        policy.encoder_fingerprint = saved.config.get("encoder")
        policy.vocabulary_fingerprint = saved.config.get("vocabulary")
        flags = {"episode_is_trial": policy.episode_is_trial, **state}  # which earlier files have not
        for name in ("resets_with_episode", "episode_is_trial"):
            if not isinstance(flags[name], bool):
                raise ValueError(f"state.json: {name} must be true or false, got {flags[name]!r}")
            setattr(policy, name, flags[name])
        archive.check_tensors("policy.safetensors", saved.policy, policy.state_dict())
        policy.load_state_dict(saved.policy)
        check_finite_tensors("policy.safetensors", {name: saved.policy[name] for name, _ in policy.named_parameters()})
        if not saved.config.get("policy_only"):
            trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
            archive.load_optimizer(policy.optimizer, trained, saved.optimizer)
            archive.check_tensors(checkpoint.LEARNER, saved.learner, self.saved_tensors())
            for name, tensor in self.saved_tensors().items():
                tensor.copy_(saved.learner[name])
            check_finite_tensors("optimizer.safetensors", saved.optimizer)
            check_finite_tensors(checkpoint.LEARNER, saved.learner)
            _restore_generators(policy.generators, saved.generators[rank])
        for name, rng in self.rngs.items():
            rng.bit_generator.state = state[f"{name}_rng"]
        for name in self.saved_attributes:
            setattr(self, name, state[name])
        self.num_timesteps = state["num_timesteps"]
        self._n_updates = state["n_updates"]
        recent = [{"r": float(info["r"]), "l": int(info["l"])} for info in state["recent_episodes"]]
        self.ep_info_buffer = deque(recent, maxlen=self._stats_window_size)
        self.ep_success_buffer = deque(state["recent_successes"], maxlen=self._stats_window_size)
        trials = state["trials"]
        if trials is not None and (self.env is None or self.env.num_envs == len(trials["trial"])):
            self._resume_trials = trials
            if self.env is not None:
                self.env.seed(trials["seed"][0])  # the others follow: seeds are consecutive
                self._has_trials = True

    @classmethod
    def check_checkpoint(cls, path: archive.File, config: Any, policy_kwargs: dict[str, Any], n_envs: int) -> None:
        """Raise a ValueError unless a learner of this class with these settings wrote a checkpoint.

        Args:
            path: The file.
            config: Config of the learner.
            policy_kwargs: Settings of the policy; those left out are not compared.
            n_envs: Number of environments of all processes together.
        """
        policy_class = cls.policy_aliases[cls.default_policy]
        assert issubclass(policy_class, ActingPolicy)
        resolve = partial(policy_class.resolve_kwargs, policy_kwargs)
        checkpoint.check_settings(path, cls.__name__, config, resolve, n_envs)


def _read_space(path: archive.File, config: dict[str, Any], name: str) -> Space:
    """Read a space of config.json; a ValueError names the file if it is none."""
    try:
        return space_from_json(config[name])
    except (ValueError, TypeError, OverflowError, LookupError, AttributeError, AssertionError) as error:
        raise ValueError(f"{path}: config.json: {name} is no space ({error!r})") from None


def _check_resumable(path: archive.File, config: dict[str, Any], processes: Processes) -> None:
    """Raise a ValueError if these processes cannot go on learning from a checkpoint."""
    if config.get("policy_only"):
        raise ValueError(
            f"{path}: holds a policy without the state of its optimizer and generators: it can act, but training "
            "cannot resume from it"
        )
    if config["processes"] != processes.count:
        raise ValueError(
            f"{path}: number of processes must be that of the file, {config['processes']}, to go on learning, "
            f"got {processes.count}"
        )


def _restore_generators(generators: dict[str, torch.Generator], states: dict[str, Tensor]) -> None:
    """Restore the torch generators of a policy."""
    current = {name: generator.get_state() for name, generator in generators.items()}
    if "sampling" in states and states["sampling"].shape != current["sampling"].shape:
        # Saved on another kind of device, whose generators have states of another size. The generator that actions are
        # drawn from starts again from the seed.
        states = {**states, "sampling": current["sampling"]}
    archive.check_tensors("generators.safetensors", states, current)
    for name, generator in generators.items():
        try:
            generator.set_state(states[name])
        except RuntimeError as error:
            raise ValueError(f"generators.safetensors: {name!r} is no state of a generator ({error})") from None
