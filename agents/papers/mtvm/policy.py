"""Policy of MTVM: it acts, is trained, evaluated and saved like other policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor

from memenvs.agents.memory import State
from memenvs.agents.papers.mtvm.config import mtvm_config
from memenvs.agents.papers.mtvm.model import MTVM, DecisionOutput
from memenvs.agents.policies.acting import ActingPolicy, PolicyOutput
from memenvs.agents.policies.distributions import Categorical
from memenvs.vln.features.base import ANGLE_SIZE

#: Observation keys that the policy reads.
KEYS = ("instruction", "instruction_mask", "candidates", "candidate_mask", "direction")


class MTVMPolicy(ActingPolicy):
    """Actor and critic of MTVM, for `memenvs/VLN-R2R-v0` and `memenvs/VLN-CVDN-v0`.

    Its memory lasts one episode, whatever the trial.

    Args:
        observation_space: `Dict` with `KEYS`; a panorama is ignored.
        action_space: `Discrete`, one action for each row of `candidates`.
        lr_schedule: Learning rate as a function of the remaining progress, from 1 to 0.
        size: Name in `papers.mtvm.config.SIZES`; None if `network` has every setting, as in a checkpoint.
        network: Settings that differ from the size's; see `MTVMConfig`.
        weight_decay: Weight decay of AdamW.
        use_sde: Must be False; there is no state-dependent exploration.

    Attributes:
        network: The network.

    Raises:
        ValueError: A setting is unknown, or the spaces do not fit.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        size: str | None = "small",
        network: Mapping[str, Any] | None = None,
        weight_decay: float = 0.01,
        use_sde: bool = False,
    ) -> None:
        if use_sde:
            raise ValueError("use_sde must be False: an MTVMPolicy has no state-dependent exploration")
        super().__init__(observation_space, action_space)
        keys = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
        if not isinstance(action_space, spaces.Discrete) or not set(KEYS) <= set(keys):
            raise ValueError(
                f"an MTVMPolicy needs observations with {', '.join(KEYS)} and Discrete actions, "
                f"got {observation_space} and {action_space}"
            )
        instruction = cast(spaces.Box, keys["instruction"])
        (length,) = instruction.shape
        n_candidates, width = keys["candidates"].shape or (0, 0)
        config = mtvm_config(size, **(network or {}))
        if n_candidates != action_space.n:
            raise ValueError(f"candidates must have a row for each of the {action_space.n} actions, got {n_candidates}")
        if length > config.text_positions:
            raise ValueError(
                f"text_positions of the network must be at least the {length} tokens of an instruction, "
                f"got {config.text_positions}; or lower max_tokens of the environment"
            )
        self.network = MTVM(config, int(instruction.high.max()) + 1, width - ANGLE_SIZE)
        self.optimizer = torch.optim.AdamW(self.parameters(), lr_schedule(1.0), weight_decay=weight_decay, fused=True)
        self._kwargs = self.resolve_kwargs({"size": size, "network": network}, {})  # the weight decay is the learner's

    @classmethod
    def resolve_kwargs(cls, kwargs: dict[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a size by all settings of its network; see `ActingPolicy.resolve_kwargs`."""
        network = asdict(mtvm_config(kwargs.get("size", "small"), **(kwargs.get("network") or {})))
        return {**kwargs, "size": None, "network": network}

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Make the state before the first decision; it grows as needed, whatever `max_steps`."""
        return self.network.initial_state(batch_size)

    def decision(self, observations: dict[str, Tensor], state: State) -> DecisionOutput:
        """Make a decision in B environments.

        Args:
            observations: With `KEYS`.
            state: State from the network's `observe`.
        """
        views = self.network.encode_views(observations, state)
        return self.network(state["encoded_text"], state["text_mask"], views)

    @torch.no_grad()
    def act(
        self,
        observations: PyTorchObs,
        state: State,
        episode_start: Tensor,
        trial_start: Tensor,
        deterministic: bool = False,
    ) -> PolicyOutput:
        """Choose an action for each of B environments and store it; see `ActingPolicy.act`."""
        assert isinstance(observations, dict)
        state = self.network.observe(observations, state, episode_start)
        output = self.decision(observations, state)
        distribution = Categorical(output.logits)
        actions = distribution.mode() if deterministic else distribution.sample(self.generator)
        return PolicyOutput(
            features=output.activations,
            extra_inputs={},
            previous_action=torch.zeros_like(actions),
            actions=actions,
            log_probs=distribution.log_prob(actions),
            values=output.value,
            state=self.network.record_action(observations, output, actions, state),
        )

    def update_previous_action(self, state: State, actions: np.ndarray) -> State:
        """Refuse: the token of an action is made by the decision that took it.

        Raises:
            ValueError: Always.
        """
        raise ValueError("an MTVMPolicy cannot take over actions that others chose (demonstrations)")
