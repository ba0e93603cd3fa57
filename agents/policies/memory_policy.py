"""The policy: encoder, previous action, memory, actor and critic; acts step by step and learns from whole sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    MlpExtractor,
    NatureCNN,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn

from memenvs.agents.encoders import DictEncoder, OptionsEncoder, SceneEncoder
from memenvs.agents.memory import (
    EXTRA_INPUTS,
    ExtraInputs,
    State,
    StepInputs,
    make_memory,
    memory_spec,
    required_inputs,
)
from memenvs.agents.policies.acting import ActingPolicy, PolicyOutput
from memenvs.agents.policies.distributions import ActionDistribution, ActionHead
from memenvs.checks import choices_for

#: Features extractors that can be named in a saved file.
EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    "DictEncoder": DictEncoder,
    "OptionsEncoder": OptionsEncoder,
    "SceneEncoder": SceneEncoder,
    "CombinedExtractor": CombinedExtractor,
    "FlattenExtractor": FlattenExtractor,
    "NatureCNN": NatureCNN,
}
PREVIOUS_ACTION = "previous_action"
ACTION_MASK = "candidate_mask"
"""Key of observations that says which actions there are."""
FORMS = {
    "pose": "(3,) of x, y and heading",
    "place": "the number of a place",
    "move": "the number of a move",
}
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


class MemoryPolicy(ActingPolicy):
    """Actor and critic on top of any `Memory`.

    What a step brings to the memory is the features of its observation and, if `previous_action_dim` > 0, an embedding of the action
    before it (row 0 at the first step of an episode). Without a learnable `net_arch` the memory's features go straight to the heads.
    A memory that asks for poses, places or moves (`Memory.required_inputs`) gets the observation's `pose`, `place` or `move` as it is, and the features
    extractor does not see that key; for any other memory it is a key like the rest.
    With a key `candidate_mask` in observations, one number for each of the `Discrete` actions, an action whose number is 0 has probability 0.

    Args:
        observation_space: Any that Stable-Baselines3 can preprocess; texts only as numbers of words.
        action_space: `Discrete`, `MultiDiscrete` or `Box`; the previous action is an input only if it is `Discrete`.
        lr_schedule: Learning rate as a function of the progress that remains, 1 ... 0.
        memory: Name of the memory, see `memenvs.agents.memory.MEMORIES`.
        memory_kwargs: Its settings; `n_places` of one that asks for places is by default how many the observation space has.
        previous_action_dim: Width of the embedding of the previous action; 0 for none; must be 0 unless actions are `Discrete`.
        features_extractor_class: Any features extractor, or the name of one in `EXTRACTORS`; None: `DictEncoder` for `Dict`
            observations, else flattened.
        features_extractor_kwargs: Its settings.
        freeze_features: Whether the features extractor is not trained; features are then computed once and stored in bfloat16.
        freeze_previous_action: Whether the embedding of the previous action, if there is one, is not trained.
        single_steps: Whether the memory is emptied before each step, so that a decision sees its own step only: the first of two stages
            of training, in which the features extractor is learned.
        net_arch: Hidden layers of actor and critic after the memory, as in Stable-Baselines3; None: two of 64 each
            without a memory, none with one.
        activation: What follows each of these layers, "tanh" or "relu".
        adam_eps: Epsilon of Adam.

    Raises:
        ValueError: A setting is unknown or does not fit the spaces.

    Source:
        ReLIC, section on the policy network; heads and their initialisation as in its release (orthogonal, actor 0.01, critic 1).
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        memory: str = "relic",
        memory_kwargs: Mapping[str, Any] | None = None,
        previous_action_dim: int | None = None,
        features_extractor_class: type[BaseFeaturesExtractor] | str | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        freeze_features: bool = False,
        freeze_previous_action: bool = False,
        single_steps: bool = False,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation: str = "tanh",
        adam_eps: float = 1e-5,
        use_sde: bool = False,
    ) -> None:
        if use_sde:
            raise ValueError("use_sde must be False: a MemoryPolicy has no state-dependent exploration")
        if features_extractor_class is None:
            is_dict = isinstance(observation_space, spaces.Dict)
            features_extractor_class = "DictEncoder" if is_dict else "FlattenExtractor"
        if isinstance(features_extractor_class, str):
            if features_extractor_class not in EXTRACTORS:
                raise ValueError(
                    f"unknown features_extractor_class {features_extractor_class!r}; choose from {list(EXTRACTORS)} or pass a class"
                )
            features_extractor_class = EXTRACTORS[features_extractor_class]
        if activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {activation!r}; {choices_for(activation, ACTIVATIONS)}")
        _check_observations(observation_space, action_space, freeze_features)
        super().__init__(
            observation_space, action_space, features_extractor_class, features_extractor_kwargs, normalize_images=True
        )
        self._is_masked = isinstance(observation_space, spaces.Dict) and ACTION_MASK in observation_space.spaces
        settings = _with_places(memory, memory_kwargs or {}, observation_space)
        self.encoded_space = _encoded_space(observation_space, memory, settings)
        self.features_extractor = features_extractor_class(self.encoded_space, **self.features_extractor_kwargs)
        self.features_dim = self.features_extractor.features_dim
        self.freeze_features = freeze_features
        if freeze_features:
            self.features_extractor.requires_grad_(False)
        if previous_action_dim is None:
            previous_action_dim = 16 if isinstance(action_space, spaces.Discrete) and memory != "none" else 0
        self.previous_action_dim = previous_action_dim
        if previous_action_dim > 0:
            if not isinstance(action_space, spaces.Discrete):
                raise ValueError(
                    f"previous_action_dim must be 0 for actions in {action_space}, got {previous_action_dim}"
                )
            self.previous_action = nn.Embedding(int(action_space.n) + 1, previous_action_dim)
            self.previous_action.requires_grad_(not freeze_previous_action)
        self.single_steps = single_steps
        self.memory_name = memory
        self.memory = make_memory(memory, self.features_dim + previous_action_dim, **settings)
        if net_arch is None:
            net_arch = {"pi": [64, 64], "vf": [64, 64]} if memory == "none" else []
        self.net_arch = net_arch
        self.mlp_extractor = MlpExtractor(self.memory.output_dim, net_arch, ACTIVATIONS[activation])
        self.actor = ActionHead(self.mlp_extractor.latent_dim_pi, action_space)
        self.critic = nn.Linear(self.mlp_extractor.latent_dim_vf, 1)
        nn.init.orthogonal_(self.critic.weight, 1.0)
        nn.init.zeros_(self.critic.bias)
        for module in self.mlp_extractor.modules():
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, 2**0.5)
                nn.init.zeros_(module.bias)
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=lr_schedule(1.0), eps=adam_eps, fused=True)
        self._kwargs = {
            "memory": memory,
            "memory_kwargs": dict(memory_kwargs or {}),
            "previous_action_dim": previous_action_dim,
            "features_extractor_class": features_extractor_class.__name__,
            "features_extractor_kwargs": features_extractor_kwargs or {},
            "freeze_features": freeze_features,
            "freeze_previous_action": freeze_previous_action,
            "single_steps": single_steps,
            "net_arch": net_arch,
            "activation": activation,
            "adam_eps": adam_eps,
        }

    @property
    def generators(self) -> dict[str, torch.Generator]:
        """All that it draws from: actions, and whatever its memory draws."""
        own = getattr(self.memory, "generator", None)
        return super().generators | ({} if own is None else {"memory": own})

    # ------------------------------------------------------------------ pieces

    def features(self, observations: PyTorchObs) -> Tensor:
        """Embedding of each observation, without what goes to the memory as it is.

        Args:
            observations: Tensor or dict of tensors, (B, ...).

        Returns:
            float, (B, features_dim).
        """
        if isinstance(observations, dict):
            observations = {key: value for key, value in observations.items() if key not in self.memory.required_inputs}
        prepared = preprocess_obs(observations, self.encoded_space, normalize_images=self.normalize_images)
        if not self.freeze_features:
            return self.features_extractor(prepared)
        with torch.no_grad():  # rounded as they are stored, so that acting and learning see the same
            return self.features_extractor(prepared).to(torch.bfloat16).to(torch.float32)

    def where(self, observations: PyTorchObs) -> ExtraInputs:
        """What the memory asks for: `pose` float32 (B, 3), x m, y m, heading rad; `place` and `move` int64 (B,). Often empty.

        Args:
            observations: As in `features`.
        """
        if not self.memory.required_inputs:
            return {}
        assert isinstance(observations, dict)
        return {key: observations[key].to(EXTRA_INPUTS[key][0]) for key in self.memory.required_inputs}

    def action_mask(self, observations: PyTorchObs | None) -> Tensor | None:
        """Which actions there are, bool (..., A), of observations (..., A) with `candidate_mask`; None where observations have no such key."""
        if not self._is_masked:
            return None
        assert isinstance(observations, dict)
        return observations[ACTION_MASK] > 0

    def inputs(
        self,
        features: Tensor,
        previous: Tensor,
        episode_start: Tensor,
        trial_start: Tensor,
        where: ExtraInputs | None = None,
    ) -> StepInputs:
        """What the memory sees.

        Args:
            features: float, (B, T, features_dim).
            previous: int64, (B, T); 0 at the first step of an episode, else 1 + the action before (unused without
                `previous_action_dim`).
            episode_start: bool, (B, T); with `single_steps` taken to be True, as the next.
            trial_start: bool, (B, T).
            where: As `where` gives it, (B, T, ...) each; None is nothing.
        """
        if self.previous_action_dim > 0:
            features = torch.cat([features, self.previous_action(previous)], -1)
        if self.single_steps:
            episode_start = trial_start = torch.ones_like(trial_start)
        return StepInputs(features, episode_start, trial_start, **(where or {}))

    def heads(self, latent: Tensor, allowed: Tensor | None = None) -> tuple[ActionDistribution, Tensor]:
        """Distribution over actions, of those that are `allowed`, and value, float (...), for memory features (..., D)."""
        pi, vf = self.mlp_extractor(latent)
        return self.actor(pi, allowed), self.critic(vf).squeeze(-1)

    # ------------------------------------------------------------------ acting

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """State before the first step; see `Memory.initial_state`."""
        state = self.memory.initial_state(batch_size, max_steps=max_steps)
        return state | {PREVIOUS_ACTION: torch.zeros(batch_size, dtype=torch.int64, device=self.device)}

    def step(
        self,
        features: Tensor,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        where: ExtraInputs | None = None,
        allowed: Tensor | None = None,
    ) -> tuple[ActionDistribution, Tensor, State]:
        """One step of B environments.

        Args:
            features: float, (B, features_dim).
            state: From `initial_state` or the call before, with the action taken since in it (`act`).
            episode_start: bool, (B,).
            trial_start: bool, (B,).
            where: As `where` gives it; None is nothing.
            allowed: As `allowed` gives it; values do not depend on it.

        Returns:
            Distribution over actions, values (B,), and the state without the new action.
        """
        previous = torch.where(episode_start, 0, state[PREVIOUS_ACTION])
        x = self.inputs(
            features[:, None], previous[:, None], episode_start[:, None], trial_start[:, None],
            {key: value[:, None] for key, value in (where or {}).items()},
        )  # fmt: skip
        memory = {key: value for key, value in state.items() if key != PREVIOUS_ACTION}
        latent, memory = self.memory.step(x, memory)
        distribution, value = self.heads(latent, allowed)
        return distribution, value, memory | {PREVIOUS_ACTION: previous}

    @torch.no_grad()
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
            state: As in `step`.
            episode_start: bool, (B,).
            trial_start: bool, (B,).
            deterministic: The most likely action instead of a drawn one.
        """
        features, where = self.features(observations), self.where(observations)
        distribution, values, state = self.step(
            features, state, episode_start, trial_start, where, self.action_mask(observations)
        )
        actions = distribution.mode() if deterministic else distribution.sample(self.generator)
        log_probs = distribution.log_prob(actions)
        previous = state[PREVIOUS_ACTION]
        return PolicyOutput(
            features, where, previous, actions, log_probs, values, self._with_previous_action(state, actions)
        )

    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state; see `ActingPolicy.update_previous_action`."""
        if not isinstance(self.action_space, spaces.Discrete):
            return state  # only Discrete actions are an input of the next step
        counted_from_0 = torch.as_tensor(actions - self.action_space.start, device=self.device)
        return self._with_previous_action(state, counted_from_0)

    def _with_previous_action(self, state: State, actions: Tensor) -> State:
        """The state with the previous action, (B,), counted from 0."""
        if self.previous_action_dim == 0:
            return state
        return state | {PREVIOUS_ACTION: actions.long() + 1}


def _check_observations(space: spaces.Space, action_space: spaces.Space, freeze_features: bool) -> None:
    """Raises a ValueError for texts, and for a mask that does not fit the actions or is not kept with frozen features."""
    keys = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
    for key, each in keys.items():
        if isinstance(each, spaces.Text):
            raise ValueError(
                f"observations must be numbers, {key!r} is text; take it away, or replace it by numbers of words or an embedding of the sentence"
            )
    if isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces:
        if not isinstance(action_space, spaces.Discrete) or space[ACTION_MASK].shape != (int(action_space.n),):
            raise ValueError(
                f"{ACTION_MASK!r} in observations must have a number for each of the Discrete actions, got {space[ACTION_MASK]} and {action_space}"
            )
        if freeze_features:
            raise ValueError(f"freeze_features must be False with {ACTION_MASK!r} in observations, got True")


def _with_places(memory: str, settings: Mapping[str, Any], space: spaces.Space) -> dict[str, Any]:
    """A memory's settings, with as many places as the observations know where nothing else is said."""
    place = space.spaces.get("place") if isinstance(space, spaces.Dict) else None
    known = (
        {"n_places": int(place.n)}
        if memory_spec(memory).memory.uses_place and isinstance(place, spaces.Discrete)
        else {}
    )
    return {**known, **settings}


def _encoded_space(space: spaces.Space, memory: str, settings: Mapping[str, Any]) -> spaces.Space:
    """What the features extractor sees of an observation space: all but what the memory of that name asks for.

    Raises:
        ValueError: The memory needs what the space does not have, or there is nothing besides.
    """
    asked = required_inputs(memory, **settings)
    if not asked:
        return space
    keys = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
    for key in asked:
        found = keys.pop(key, None)
        if (
            found is None
            or found.shape != EXTRA_INPUTS[key][1]
            or (key != "pose" and not isinstance(found, spaces.Discrete))
        ):
            hint = " (make_vec_env(..., place=True) adds it)" if key == "place" else ""
            raise ValueError(
                f"the memory {memory!r} needs the key {key!r}, {FORMS[key]}, in observations{hint}; got {space}"
            )
    if not keys:
        raise ValueError(
            f"observations must have a key besides {', '.join(map(repr, asked))}, which goes to the memory {memory!r}; got {space}"
        )
    return spaces.Dict(keys)
