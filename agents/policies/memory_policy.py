"""Recurrent actor-critic policy: encoder, previous action, memory, actor and critic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    MlpExtractor,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from memenvs.agents.memory import EXTRA_INPUTS, ExtraInputs, State, StepInputs, make_memory
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.memory.base import STRATEGY
from memenvs.agents.policies.acting import ActingPolicy, PolicyOutput
from memenvs.agents.policies.distributions import ActionDistribution, ActionHead, check_action_mask
from memenvs.agents.policies.policy_arguments import (
    ACTION_MASK,
    ACTIVATIONS,
    activation_name,
    check_images,
    check_observations,
    extractor_space,
    find_features_extractor,
    has_phase,
    with_default_places,
)
from memenvs.agents.policies.small_sizes import is_number, with_size
from memenvs.agents.sizes import check_largest
from memenvs.agents.vec_env import episode_horizon
from memenvs.checks import plain
from memenvs.task import PHASE

PREVIOUS_ACTION = "previous_action"
"""Key of the previous action in a policy's state: int64, (B,); 0 for none, else 1 + the action."""


class MemoryPolicy(ActingPolicy):
    """Actor and critic on top of any `Memory`.

    At each step the memory reads the features of the observation. If `previous_action_dim` > 0, they are concatenated
    with an embedding of the previous action (row 0 of the table where there is none, as at the start of an episode).
    Actor and critic are linear layers on the memory's output, with hidden layers between if `net_arch` has some.

    A memory that needs poses, places or moves (`Memory.required_inputs`) reads the keys `pose`, `place` or `move` of
    the observation directly, and the features extractor does not get them. For any other memory they are ordinary keys.
    An observation key `phase`, a `Discrete`, is 0 where the action is ignored (`memenvs.task.PHASE`). The next
    step then has no previous action, which would be a note to itself.
    An observation key `candidate_mask`, one number for each `Discrete` action, masks actions: 0 means not available.
    Only the last observation of an episode may leave no action.

    Args:
        observation_space: Any space that Stable-Baselines3 can preprocess; texts only as token ids, images with their
            channels first (learners transpose those of their environments).
        action_space: `Discrete`, `MultiDiscrete` or `Box`.
        lr_schedule: Learning rate as a function of the remaining progress, 1 ... 0.
        memory: Name of the memory, see `memenvs.agents.memories`.
        size: "small": settings of the memory with fewer than 0.3 million weights, in
            `memenvs.agents.policies.small_sizes.SMALL`. A number: that of its weights, about, for a fair comparison of
            memories; they are counted for the embedding that it reads. None: its default settings, which may have
            millions.
        memory_kwargs: Settings of the memory, which overrule `size`; `n_places` defaults to the number of places in the
            observation space.
        previous_action_dim: Width of the embedding of the previous action; 0 for none, and for actions that are not
            `Discrete`. None: 16 with a memory and `Discrete` actions, else 0.
        features_extractor_class: A features extractor or its name; one of your own must be registered by
            `register_features_extractor`. None: `DictEncoder` for `Dict` observations, else `FlattenExtractor`.
        features_extractor_kwargs: Settings of the features extractor.
        freeze_features: If True, the features extractor is not trained; features are then computed once, while acting,
            and stored in bfloat16.
        freeze_previous_action: If True, the embedding of the previous action is not trained.
        single_steps: If True, the memory is emptied before each step, so that a decision depends on this step only. The
            first of SMT's two training stages learns the features extractor like this.
        value_gradient: If False, the value's loss trains the critic alone, and nothing that comes before it; as in
            RecurrentPPO of sb3-contrib with one LSTM.
        net_arch: Hidden layers of actor and critic after the memory, as in Stable-Baselines3. None: two of width 64
            each for the memory "none", else no layer.
        activation: Activation of these layers: a name in `ACTIVATIONS`, or its class, such as `nn.ReLU`.
        activation_fn: The same under the name that Stable-Baselines3 uses; if given, `activation` is ignored.
        adam_eps: Epsilon of Adam.
        use_sde: Must be False; there is no state-dependent exploration.

    Raises:
        ValueError: A setting is unknown or does not fit the spaces.

    Attributes:
        allocator: Chooses the memory's eviction strategy; None for that of the memory's settings. A learner adds it.

    Source:
        ReLIC, section on the policy network. Heads and their initialisation are those of its release (orthogonal, gain
        0.01 for the actor and 1 for the critic).
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        memory: str = "relic",
        size: str | int | None = None,
        memory_kwargs: Mapping[str, Any] | None = None,
        previous_action_dim: int | None = None,
        features_extractor_class: type[BaseFeaturesExtractor] | str | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        freeze_features: bool = False,
        freeze_previous_action: bool = False,
        single_steps: bool = False,
        value_gradient: bool = True,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation: str | type[nn.Module] = "tanh",
        activation_fn: str | type[nn.Module] | None = None,
        adam_eps: float = 1e-5,
        use_sde: bool = False,
    ) -> None:
        if use_sde:
            raise ValueError("use_sde must be False: a MemoryPolicy has no state-dependent exploration")
        features_extractor_class = find_features_extractor(features_extractor_class, observation_space)
        activation = activation_name(activation if activation_fn is None else activation_fn)
        check_largest({"previous_action_dim": previous_action_dim})
        for arch in net_arch.values() if isinstance(net_arch, dict) else [net_arch]:
            check_largest({"net_arch": arch})
        check_observations(observation_space, action_space, freeze_features)
        super().__init__(
            observation_space, action_space, features_extractor_class, features_extractor_kwargs, normalize_images=True
        )
        self._is_masked = isinstance(observation_space, spaces.Dict) and ACTION_MASK in observation_space.spaces
        self._has_phase = has_phase(observation_space)
        memory_kwargs = dict(memory_kwargs or {})
        # of a size, whose settings follow from the width of the embedding, whether there are poses says what is needed
        settings = {name: value for name, value in memory_kwargs.items() if size is None or name == "poses"}
        settings = with_default_places(memory, settings, observation_space)
        self.extractor_space = extractor_space(observation_space, memory, settings)
        check_images(self.extractor_space, features_extractor_class)
        self.features_extractor = features_extractor_class(self.extractor_space, **self.features_extractor_kwargs)
        self.features_dim = int(self.features_extractor.features_dim)  # a NumPy number for MultiDiscrete observations
        self.freeze_features = freeze_features
        if freeze_features:
            self.features_extractor.requires_grad_(False)
        previous_action_dim = plain(previous_action_dim)
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
        self.single_steps, self.value_gradient = single_steps, value_gradient
        self.memory_name = memory
        input_dim = self.features_dim + previous_action_dim
        memory_kwargs = with_size(memory, size, memory_kwargs, input_dim)
        settings = with_default_places(memory, memory_kwargs, observation_space)
        self.memory = make_memory(memory, input_dim, **settings)
        if net_arch is None:
            net_arch = {"pi": [64, 64], "vf": [64, 64]} if memory == "none" else []
        self.net_arch = net_arch
        self._make_heads(net_arch, activation)
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=lr_schedule(1.0), eps=adam_eps, fused=True)
        self.allocator: AdaptiveAllocator | None = None
        # Resolved arguments, with which a checkpoint builds the policy again; see `json_kwargs`.
        kwargs = {
            "memory": memory,
            "memory_kwargs": memory_kwargs,
            "previous_action_dim": previous_action_dim,
            "features_extractor_class": features_extractor_class.__name__,
            "features_extractor_kwargs": features_extractor_kwargs or {},
            "freeze_features": freeze_features,
            "freeze_previous_action": freeze_previous_action,
            "single_steps": single_steps,
            "value_gradient": value_gradient,
            "net_arch": net_arch,
            "activation": activation,
            "adam_eps": adam_eps,
        }
        self._kwargs = plain(kwargs | ({"size": size} if is_number(size) else {}))

    @classmethod
    def resolve_kwargs(cls, kwargs: dict[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a size by the settings of the memory; see `ActingPolicy.resolve_kwargs`.

        What a number of weights stands for depends on the encoder. So it is compared itself, and those settings of the
        memory that are given beside it.
        """
        memory, size, settings = kwargs.get("memory", "relic"), kwargs.get("size"), kwargs.get("memory_kwargs") or {}
        if is_number(size):
            own_size = size if "size" in saved else None  # not in files of early versions
            return {**kwargs, "size": own_size, "memory_kwargs": {**saved.get("memory_kwargs", {}), **settings}}
        if size is None:
            return kwargs
        return {**kwargs, "size": None, "memory_kwargs": with_size(memory, size, settings, 1)}

    def add_allocator(self, allocator: AdaptiveAllocator, learning_rate: float) -> None:
        """Let an allocator choose the memory's eviction strategy.

        Args:
            allocator: The allocator of one task. Its weights are saved with the policy's, and the policy's optimizer
                has them in a group of their own.
            learning_rate: Learning rate of that group, > 0.
        """
        self.allocator = allocator
        self.optimizer.add_param_group({"params": list(allocator.parameters()), "lr": learning_rate})

    def _make_heads(self, net_arch: list[int] | dict[str, list[int]], activation: str) -> None:
        """Make actor and critic, with the hidden layers before them."""
        # On the CPU like the rest of a new policy: "auto" would be the GPU of a machine that has one.
        self.mlp_extractor = MlpExtractor(self.memory.output_dim, net_arch, ACTIVATIONS[activation], device="cpu")
        self.actor = ActionHead(self.mlp_extractor.latent_dim_pi, self.action_space)
        self.critic = nn.Linear(self.mlp_extractor.latent_dim_vf, 1)
        nn.init.orthogonal_(self.critic.weight, 1.0)
        nn.init.zeros_(self.critic.bias)
        for module in self.mlp_extractor.modules():
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, 2**0.5)  # the gain of hidden layers in Stable-Baselines3
                nn.init.zeros_(module.bias)

    @property
    def generators(self) -> dict[str, torch.Generator]:
        """All random generators of the policy and of its memory, by name."""
        of_memory = getattr(self.memory, "generator", None)
        return super().generators | ({} if of_memory is None else {"memory": of_memory})

    def features(self, observations: PyTorchObs) -> Tensor:
        """Encode observations, without the keys that the memory reads directly.

        Args:
            observations: Tensor or dict of tensors, (B, ...).

        Returns:
            float, (B, features_dim).
        """
        if isinstance(observations, dict):
            observations = {key: value for key, value in observations.items() if key not in self.memory.required_inputs}
        prepared = preprocess_obs(observations, self.extractor_space, normalize_images=self.normalize_images)
        if not self.freeze_features:
            return self.features_extractor(prepared)
        with torch.no_grad():  # rounded as the buffers store them, so that acting and learning use the same numbers
            return self.features_extractor(prepared).to(torch.bfloat16).to(torch.float32)

    def extra_inputs(self, observations: PyTorchObs) -> ExtraInputs:
        """Return the observation keys that the memory reads directly; empty for most memories.

        Args:
            observations: As in `features`.

        Returns:
            Some of `pose`, float32 (B, 3) of x (m), y (m) and heading (rad); `place`, int64 (B,); `move`, int64 (B,).
        """
        if not self.memory.required_inputs:
            return {}
        assert isinstance(observations, dict)
        dtypes = {key: EXTRA_INPUTS[key][0] for key in self.memory.required_inputs}
        return {key: observations[key].to(dtype) for key, dtype in dtypes.items()}

    def action_mask(self, observations: PyTorchObs | None) -> Tensor | None:
        """Return a mask, bool (..., A), True for available actions; None without a `candidate_mask`."""
        if not self._is_masked:
            return None
        assert isinstance(observations, dict)
        return observations[ACTION_MASK] > 0

    def ignores_action(self, observations: PyTorchObs) -> Tensor | None:
        """Return where the environment ignores the action, bool (B,); None if not observed."""
        if not self._has_phase:
            return None
        assert isinstance(observations, dict)
        return observations[PHASE].flatten() == 0

    def memory_inputs(
        self,
        features: Tensor,
        previous_action: Tensor,
        episode_start: Tensor,
        trial_start: Tensor,
        extra_inputs: ExtraInputs | None = None,
    ) -> StepInputs:
        """Assemble the input of the memory for T steps of B sequences.

        Args:
            features: float, (B, T, features_dim).
            previous_action: int64, (B, T); 0 for none, else 1 + the action before. Not used if
                `previous_action_dim` is 0.
            episode_start: bool, (B, T); taken as True everywhere if `single_steps`.
            trial_start: bool, (B, T); taken as True everywhere if `single_steps`.
            extra_inputs: As `extra_inputs` returns it, (B, T, ...) each; None for none.
        """
        if self.previous_action_dim > 0:
            features = torch.cat([features, self.previous_action(previous_action)], -1)  # (B, T, D_in)
        if self.single_steps:
            episode_start = trial_start = torch.ones_like(trial_start)
        return StepInputs(features, episode_start, trial_start, **(extra_inputs or {}))

    def heads(self, latent: Tensor, action_mask: Tensor | None = None) -> tuple[ActionDistribution, Tensor]:
        """Apply actor and critic to the features of the memory.

        Args:
            latent: float, (..., D).
            action_mask: bool, (..., A); available actions. None: all.

        Returns:
            Distribution over actions, and values, float (...).
        """
        pi = self.mlp_extractor.forward_actor(latent)
        vf = self.mlp_extractor.forward_critic(latent if self.value_gradient else latent.detach())
        return self.actor(pi, action_mask), self.critic(vf).squeeze(-1)

    @property
    def max_episode_steps(self) -> int | None:
        """Most steps of an episode for which the memory has positions; None for any number."""
        return None if self.single_steps else getattr(getattr(self.memory, "config", None), "max_episode_steps", None)

    def check_env(self, env: VecEnv) -> None:
        """Raise an error unless the policy can act in `env`; see `ActingPolicy.check_env`."""
        super().check_env(env)
        self.check_episodes(env)

    def check_episodes(self, env: VecEnv) -> None:
        """Raise a ValueError if an episode of an environment may be too long for the memory."""
        limit, horizon = self.max_episode_steps, episode_horizon(env)
        if limit is not None and horizon is not None and horizon > limit:
            raise ValueError(
                f"memory_kwargs['max_episode_steps'] must be at least the {horizon} steps that an episode may take, "
                f"got {limit}"
            )

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return the state before the first step; see `Memory.initial_state`.

        With an allocator, the memory has the strategy of the largest Q. A learner that explores replaces it.
        """
        state = self.memory.initial_state(batch_size, max_steps=max_steps)
        if self.allocator is not None:
            state[STRATEGY] = self.allocator.best(self.allocator.constant(batch_size))
        return state | {PREVIOUS_ACTION: torch.zeros(batch_size, dtype=torch.int64, device=self.device)}

    def step(
        self,
        features: Tensor,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        extra_inputs: ExtraInputs | None = None,
        action_mask: Tensor | None = None,
    ) -> tuple[ActionDistribution, Tensor, State]:
        """Run memory, actor and critic for one step of B environments.

        Args:
            features: float, (B, features_dim).
            state: State from `initial_state` or from `act`.
            episode_start: bool, (B,); True at the first step of an episode.
            trial_start: bool, (B,); True at the first step of a trial.
            extra_inputs: As `extra_inputs` returns it; None for none.
            action_mask: As `action_mask` returns it; values do not depend on it.

        Returns:
            Distribution over actions; values, float (B,); and the next state, whose previous action is still that
            before this step, because the new action is not drawn yet.
        """
        previous = state[PREVIOUS_ACTION].masked_fill(episode_start, 0)  # (B,)
        x = self.memory_inputs(  # (B, ...) -> (B, T=1, ...)
            features[:, None],
            previous[:, None],
            episode_start[:, None],
            trial_start[:, None],
            {key: value[:, None] for key, value in (extra_inputs or {}).items()},
        )
        memory_state = {key: value for key, value in state.items() if key != PREVIOUS_ACTION}
        latent, memory_state = self.memory.step(x, memory_state)  # (B, D)
        distribution, value = self.heads(latent, action_mask)
        return distribution, value, memory_state | {PREVIOUS_ACTION: previous}

    @torch.no_grad()
    def act(
        self,
        observations: PyTorchObs,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        deterministic: bool = False,
        taken: Tensor | None = None,
    ) -> PolicyOutput:
        """Choose an action for each of B environments and advance the state; see `ActingPolicy.act`.

        With `taken`, int64, (B,), actions of another policy counted from 0, these are its actions.
        """
        features = self.features(observations)
        extra_inputs = self.extra_inputs(observations)
        action_mask = self.action_mask(observations)
        if action_mask is not None:
            check_action_mask(action_mask)
        distribution, values, state = self.step(features, state, episode_start, trial_start, extra_inputs, action_mask)
        if taken is not None:
            actions = taken
        else:
            actions = distribution.mode() if deterministic else distribution.sample(self.generator)
        return PolicyOutput(
            features=features,
            extra_inputs=extra_inputs,
            previous_action=state[PREVIOUS_ACTION],
            actions=actions,
            log_probs=distribution.log_prob(actions),
            values=values,
            state=self._with_previous_action(state, actions, self.ignores_action(observations)),
        )

    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Replace the previous action in a state; see `ActingPolicy.update_previous_action`."""
        if not isinstance(self.action_space, spaces.Discrete):
            return state  # only Discrete actions are an input of the next step
        indices = torch.as_tensor(actions - self.action_space.start, device=self.device)  # counted from 0
        ignored = state[PREVIOUS_ACTION] == 0 if self._has_phase else None  # as `act` left it
        return self._with_previous_action(state, indices, ignored)

    def _with_previous_action(self, state: State, actions: Tensor, ignored: Tensor | None) -> State:
        """Return the state with `actions`, (B,), counted from 0, as the previous action; none where `ignored`."""
        if self.previous_action_dim == 0:
            return state
        previous = actions.long() + 1
        return state | {PREVIOUS_ACTION: previous if ignored is None else previous.masked_fill(ignored, 0)}
