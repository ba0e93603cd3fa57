"""Policies that act step by step with a state: what Stable-Baselines3, learners, evaluation and checkpoints ask of one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from memenvs.agents.memory import ExtraInputs, State
from memenvs.agents.vec_env import check_encoder, check_vocabulary


@dataclass(frozen=True)
class PolicyOutput:
    """What a step of acting gave, for B environments.

    Attributes:
        features: float, (B, features_dim); of the observations.
        where: What the memory asks for, as `MemoryPolicy.where` gives it.
        previous: int64, (B,); 0 at the first step of an episode, else 1 + the action before.
        actions: As the distribution gives them: counted from 0, not clipped.
        log_probs: float, (B,); of the actions.
        values: float, (B,).
        state: What to pass next, with the actions in it.
    """

    features: Tensor
    where: ExtraInputs
    previous: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    state: State

    @property
    def is_finite(self) -> bool:
        """Whether no output of the policy is NaN or infinite."""
        return bool(torch.isfinite(self.values + self.log_probs).all())


class ActingPolicy(BasePolicy):
    """A policy with a state, whatever it is made of.

    Attributes:
        generator: Draws the actions; seeded by the learner.
        encoder_fingerprint: Of the frozen encoder whose features it has learned from; None for none.
        vocabulary_fingerprint: Of the words that it has learned to read; None for none.
        resets_with_episode: What `predict` takes for the start of a trial; the learner knows better.
        freeze_features: Whether there is a features extractor that is not trained.
        optimizer: Of all parameters that are trained.
    """

    optimizer: torch.optim.Optimizer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.generator = torch.Generator()
        self.encoder_fingerprint: str | None = None
        self.vocabulary_fingerprint: str | None = None
        self.resets_with_episode = True
        self.freeze_features = False
        self._kwargs: dict[str, Any] = {}

    def json_kwargs(self) -> dict[str, Any]:
        """What rebuilds this policy, as plain data (the features extractor by its name)."""
        return self._kwargs

    @classmethod
    def resolve_kwargs(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Settings of a policy of this class with what names in them stand for, which may be something else in a later version."""
        return kwargs

    def check_env(self, env: VecEnv) -> None:
        """Raises a ValueError unless what it has learned with is what an environment shows.

        Args:
            env: To act in; images may have their channels first or last.
        """
        own, given = (
            each.spaces if isinstance(each, spaces.Dict) else {"observation": each}
            for each in (self.observation_space, env.observation_space)
        )
        for key, space in own.items():
            got = given[key].shape if key in given else None
            if got is None or sorted(space.shape or ()) != sorted(got):
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
        """All that it draws from, by name."""
        return {"sampling": self.generator}

    @abstractmethod
    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """State before the first step; see `Memory.initial_state`."""

    @abstractmethod
    def act(
        self,
        observations: PyTorchObs,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        deterministic: bool = False,
    ) -> PolicyOutput:
        """Chooses and remembers an action for each of B environments, drawn from the policy's own generator.

        Args:
            observations: Tensor or dict of tensors, (B, ...).
            state: From `initial_state` or the call before.
            episode_start: bool, (B,).
            trial_start: bool, (B,).
            deterministic: The most likely action instead of a drawn one.
        """

    @abstractmethod
    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state, where another action was taken than the policy chose.

        Args:
            state: From `act` or `predict`.
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
        """Actions for one or many environments, as Stable-Baselines3's `predict`.

        Args:
            observation: One observation or a batch.
            state: None at the start, afterwards what the call before returned.
            episode_start: bool, (B,); True where this is the first step of an episode. None: at the start only.
            deterministic: The most likely action instead of a drawn one.
            trial_start: bool, (B,); True where the memory is to be emptied. None: at the start, and wherever an episode starts unless the
                environment that the policy was trained in has trials.

        Returns:
            Actions, and the state.

        Raises:
            ValueError: The policy's outputs are not finite.
        """
        self.set_training_mode(False)
        tensors, vectorized = self.obs_to_tensor(observation)
        first = next(iter(tensors.values())) if isinstance(tensors, dict) else tensors
        batch = first.shape[0]
        fresh = state is None
        if state is None:
            state = self.initial_state(batch)
        started = np.full(batch, fresh) if episode_start is None else np.asarray(episode_start, bool).reshape(batch)
        if trial_start is None:
            trial_start = started if self.resets_with_episode else np.full(batch, fresh)
        began = torch.as_tensor(np.asarray(trial_start, bool).reshape(batch), device=self.device)
        episode = torch.as_tensor(started, device=self.device) | began
        acted = self.act(tensors, state, episode, began, deterministic)
        if not acted.is_finite:
            raise ValueError(
                "the policy's outputs must be finite, got NaN or infinity: its weights or the observation are broken"
            )
        moves = self.environment_actions(acted.actions)
        return (moves if vectorized else moves[0]), acted.state

    def environment_actions(self, actions: Tensor) -> np.ndarray:
        """Actions as the environment takes them: on the CPU, counted from the space's start, or clipped to the bounds of a `Box`."""
        moves = actions.cpu().numpy()
        if isinstance(self.action_space, spaces.Box):
            return np.clip(moves, self.action_space.low, self.action_space.high)
        assert isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete))
        return moves + self.action_space.start

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        raise RuntimeError("a policy with a state acts through predict, which carries its state")
