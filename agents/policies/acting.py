"""Interface of policies that act step by step with a recurrent state."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.memory import ExtraInputs, State
from memenvs.agents.vec_env import check_encoder, check_vocabulary
from memenvs.wrappers.trial import EPISODE_START_KEY


@dataclass(frozen=True)
class PolicyOutput:
    """Actions of B environments, with all that a learner stores of the step.

    Attributes:
        features: float, (B, features_dim); features of the observations.
        extra_inputs: Memory inputs beside the features, see `MemoryPolicy.extra_inputs`.
        previous_action: int64, (B,); 0 for none, else 1 + the action before.
        actions: Actions as the distribution gives them: counted from 0, not clipped.
        log_probs: float, (B,); log probability of the actions.
        values: float, (B,); value of the observations.
        state: State to pass to the next step; it contains the actions.
    """

    features: Tensor
    extra_inputs: ExtraInputs
    previous_action: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    state: State

    @property
    def is_finite(self) -> bool:
        """True if no value and no log probability is NaN or infinite."""
        return bool(np.isfinite((self.values + self.log_probs).cpu().numpy()).all())  # torch's takes six operations


class ActingPolicy(BasePolicy):
    """A policy with a recurrent state, the base of `MemoryPolicy` and `MTVMPolicy`.

    Attributes:
        generator: Draws the actions; the learner seeds it.
        encoder_fingerprint: Identifies the frozen encoder that made its features; None for none.
        vocabulary_fingerprint: Identifies the vocabulary that its texts are encoded with; None for none.
        resets_with_episode: True if `predict` empties the memory with every episode: learned without trials.
        episode_is_trial: True if every episode of learning was a whole trial, as with `TrialWrapper`. Without
            `trial_start`, `predict` then takes every episode for a trial.
        freeze_features: True if the features extractor is not trained.
        optimizer: Optimizer of all trained parameters.
    """

    optimizer: torch.optim.Optimizer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.generator = torch.Generator()
        self.encoder_fingerprint: str | None = None
        self.vocabulary_fingerprint: str | None = None
        self.resets_with_episode = True
        space = self.observation_space
        self.episode_is_trial = isinstance(space, spaces.Dict) and EPISODE_START_KEY in space.spaces
        self.freeze_features = False
        self._kwargs: dict[str, Any] = {}

    def json_kwargs(self) -> dict[str, Any]:
        """Return keyword arguments that rebuild this policy, as plain data."""
        return self._kwargs

    @classmethod
    def resolve_kwargs(cls, kwargs: dict[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
        """Replace names in keyword arguments by the settings that they stand for.

        So they can be compared with those of a checkpoint, which stores the settings of, for example, `size="small"`,
        because the name may change its meaning.

        Args:
            kwargs: Keyword arguments of the policy.
            saved: `json_kwargs` of the checkpoint's.
        """
        return kwargs

    def check_env(self, env: VecEnv) -> None:
        """Raise a ValueError unless the policy can act in an environment.

        Args:
            env: Environment whose observations, actions, encoder and vocabulary are compared with those of training.
                Images may have their channels first or last.
        """
        own_space = self.observation_space
        env_space = env.observation_space
        own_keys = own_space.spaces if isinstance(own_space, spaces.Dict) else {"observation": own_space}
        env_keys = env_space.spaces if isinstance(env_space, spaces.Dict) else {"observation": env_space}
        for key, space in own_keys.items():
            if key not in env_keys:
                raise ValueError(
                    f"the model has learned with {key!r}, which the environment does not observe: "
                    f"it has {sorted(env_keys)}"
                )
            got = env_keys[key].shape
            if sorted(space.shape or ()) != sorted(got or ()):  # sorted: channels first or last
                raise ValueError(
                    f"observation {key!r} must be of shape {space.shape}, as it was learned with, got {got}"
                )
        if env.action_space != self.action_space:
            raise ValueError(
                f"action_space must be {self.action_space}, as it was learned with, got {env.action_space}"
            )
        check_encoder(self.encoder_fingerprint, env)
        check_vocabulary(self.vocabulary_fingerprint, env)

    @property
    def generators(self) -> dict[str, torch.Generator]:
        """All random generators of the policy, by name."""
        return {"sampling": self.generator}

    @abstractmethod
    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return the state before the first step; see `Memory.initial_state`."""

    @abstractmethod
    def act(
        self,
        observations: PyTorchObs,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        deterministic: bool = False,
    ) -> PolicyOutput:
        """Choose an action for each of B environments and advance the state.

        Args:
            observations: Tensor or dict of tensors, (B, ...).
            state: State from `initial_state` or from the call before.
            episode_start: bool, (B,); True at the first step of an episode.
            trial_start: bool, (B,); True at the first step of a trial.
            deterministic: If True, take the most likely action; otherwise draw one from `generator`.
        """

    @abstractmethod
    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state.

        Call it where another action was taken than the policy chose, for example in a demonstration.

        Args:
            state: State from `act` or `predict`.
            actions: Actions taken, as the environment takes them (see `environment_actions`), (B, ...).

        Returns:
            The state to pass to the next step.
        """

    def predict(  # type: ignore[override]
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: State | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        trial_start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, State]:
        """Return actions for one or many environments, as Stable-Baselines3's `predict` does.

        Args:
            observation: One observation or a batch of B.
            state: None at the start, afterwards the state that the call before returned.
            episode_start: bool, (B,); True at the first step of an episode. None: only where `state` is None.
            deterministic: If True, take the most likely action; otherwise draw one.
            trial_start: bool, (B,); True where a trial starts, which empties the memory; with `resets_with_episode`
                every episode start does too. None: where `state` is None and, with `episode_is_trial`, at every
                episode start. Otherwise an episode that starts later keeps the memory, with a warning: callers such as
                `evaluate_policy` of Stable-Baselines3 do not pass the starts of trials.

        Returns:
            Actions, and the state.

        Raises:
            ValueError: The observation does not fit the observation space, the state or a start is of another number of
                environments, or the policy's outputs are not finite.
        """
        self.set_training_mode(False)
        batch = _batch_size(observation, self.observation_space)
        tensors, vectorized = self.obs_to_tensor(observation)
        tensors = widened(tensors)
        is_new = np.full(batch, state is None)
        if state is None:
            state = self.initial_state(batch)
        for name, value in state.items():
            if len(value) != batch:
                raise ValueError(
                    f"state must be of as many environments as the observation, {batch}, got {name!r} of {len(value)}; "
                    "it is None at the start and then what the call before returned"
                )
        episode = is_new if episode_start is None else _flags("episode_start", episode_start, batch)
        if trial_start is None:
            trial_start = episode if self.episode_is_trial else is_new
            sees_trials = self.resets_with_episode or self.episode_is_trial or is_new.all()
            has_memory = len(state) > 1  # with one entry, the state is the previous action alone
            if not sees_trials and episode.any() and has_memory:
                warnings.warn(
                    "an episode starts, and predict cannot see whether a trial starts with it: the memory is kept; "
                    "evaluate with memenvs.agents.TrialEvalCallback or TrialEvaluator, which start each trial with an "
                    "empty memory, or pass trial_start to predict",
                    stacklevel=3,
                )
        starts = _flags("trial_start", trial_start, batch) | (episode & self.resets_with_episode)
        trial = torch.as_tensor(starts, device=self.device)
        # The start of a trial is the start of an episode too.
        output = self.act(tensors, state, torch.as_tensor(episode, device=self.device) | trial, trial, deterministic)
        if not output.is_finite:
            raise ValueError(
                "the policy's outputs must be finite, got NaN or infinity: its weights or the observation are broken"
            )
        actions = self.environment_actions(output.actions)
        return (actions if vectorized else actions[0]), output.state

    def environment_actions(self, actions: Tensor) -> np.ndarray:
        """Convert actions of the distribution into actions of the environment.

        Args:
            actions: Actions counted from 0 (discrete) or not clipped (continuous).

        Returns:
            Array on the CPU: counted from the space's `start`, or clipped to the bounds of a `Box`.
        """
        array = actions.cpu().numpy()
        if isinstance(self.action_space, spaces.Box):
            return np.clip(array, self.action_space.low, self.action_space.high)
        assert isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete))
        return array + self.action_space.start

    def save(self, path: Any) -> None:
        """Refuse: a policy is saved with its learner.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "a policy is saved with its learner: use model.save(path), and model.load(path).policy to have it back; "
            "memenvs.agents.algorithms.checkpoint.drop_training_state copies a file without what only learning needs"
        )

    @classmethod
    def load(cls, path: Any, device: torch.device | str = "auto") -> Any:
        """Refuse: a policy is loaded with its learner.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "a policy is loaded with its learner: use PartialUpdatePPO.load(path).policy, or that of the class that "
            f"saved it, for {path}"
        )

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        raise RuntimeError("a policy with a state acts through predict, which carries its state")


def observation_tensors(observations: Any, device: torch.device) -> Any:
    """Copy observations to tensors on a device, of types that torch computes with."""
    return widened(obs_as_tensor(observations, device))


def widened(observations: Any) -> Any:
    """Replace unsigned integers of 16 bits or more by signed ones, as torch needs them."""
    if isinstance(observations, dict):
        return {key: widened(value) for key, value in observations.items()}
    return observations.to(tensor_type(observations.dtype))


def tensor_type(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which numbers of a type are computed with and stored; mostly the same."""
    return {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}.get(dtype, dtype)


def _batch_size(observation: Any, space: spaces.Space) -> int:
    """Return the number of environments of an observation, 1 for a single one.

    Raises:
        ValueError: The observation does not fit the space.
    """
    if not isinstance(space, spaces.Dict):
        if isinstance(observation, dict):
            raise ValueError(f"observation must be an array, of {space}, got a dict with {list(observation)}")
        return _rows("observation", observation, space)
    if not isinstance(observation, dict):
        raise ValueError(f"observation must be a dict with {list(space.spaces)}, got {type(observation).__name__}")
    if observation.keys() != space.spaces.keys():
        raise ValueError(f"observation must have the keys {sorted(space.spaces)}, got {sorted(observation)}")
    rows = {key: _rows(f"observation {key!r}", observation[key], part) for key, part in space.spaces.items()}
    if len(set(rows.values())) > 1:
        raise ValueError(f"observation must have as many rows in each key, got {rows}")
    return next(iter(rows.values()))


def _rows(name: str, value: Any, space: spaces.Space) -> int:
    """Return the number of environments of one array; a ValueError if its shape does not fit."""
    shape, expected = np.shape(value), tuple(space.shape or ())
    fits = {expected}
    if isinstance(space, spaces.Box) and is_image_space(space):
        fits.add((*expected[1:], expected[0]))  # channels last
    if shape in fits:
        return 1
    if shape[1:] not in fits or len(shape) != len(expected) + 1 or shape[0] == 0:
        raise ValueError(f"{name} must be of shape {expected}, or (B, ...) of B of them, got {shape}")
    return shape[0]


def _flags(name: str, value: Any, batch: int) -> np.ndarray:
    """Convert a start flag of each environment to bool, (batch,); a ValueError if there are more or fewer."""
    flags = np.asarray(value, bool).reshape(-1)
    if len(flags) != batch:
        raise ValueError(f"{name} must have a value for each of {batch} environments, got {len(flags)}")
    return flags
