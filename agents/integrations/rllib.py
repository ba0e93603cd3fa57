"""Any memory in RLlib's new API stack, as an `RLModule` with a state.

The module can be imported without ray, so that its documentation can be built; `MemoryRLModule` needs it.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from torch import Tensor

from memenvs.agents.memory import MEMORIES, State, StepInputs
from memenvs.agents.policies.acting import widened
from memenvs.agents.policies.distributions import Categorical, DiagonalGaussian, MultiCategorical
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.checks import check_int, choices_for
from memenvs.wrappers.trial import EPISODE_START_KEY

try:
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.distribution.torch.torch_distribution import TorchMultiCategorical
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.torch import TorchRLModule
except ImportError as _error:
    _reason = str(_error)

    class TorchRLModule:  # type: ignore[no-redef]
        """Stands for the class of RLlib where that is not installed."""

        def __init__(self, *_: Any, **__: Any) -> None:
            raise ImportError(f"MemoryRLModule needs RLlib ({_reason}); install it with: pip install 'memenvs[rllib]'")

    class ValueFunctionAPI:  # type: ignore[no-redef]
        """Stands for the interface of RLlib where that is not installed."""


NUM_STEPS = "num_steps"
"""Key of the number of steps since the start of RLlib's episode in the state: int64, ()."""
SETTINGS = ("policy", "max_seq_len", "max_trial_steps")
"""Keys of `model_config` that `MemoryRLModule` reads; RLlib adds keys of its own."""


class MemoryRLModule(TorchRLModule, ValueFunctionAPI):
    """Encoder, any `Memory`, actor and critic as an `RLModule` with a state.

    For PPO and other on-policy learners of RLlib.

    An episode of RLlib is a trial: the memory is empty at its first step. Fuse the episodes of a trial with
    `TrialWrapper`; its observation `episode_start` then gives the memory the starts of inner episodes. The network is
    a `MemoryPolicy`, in the attribute `policy`.

    RLlib keeps the state after every step of a rollout, so a memory with a large state needs much of it: lower
    `train_batch_size` or the width of the memory. RLlib cuts episodes into sequences of `max_seq_len` steps. Gradients
    flow through one sequence; the memory at its start is that of the rollout. With at least one step more than a trial
    has, a sequence is a whole trial (PPO adds a step for the value after the last one).

    Args of `model_config`:
        policy: Settings of `MemoryPolicy`: `memory`, `memory_kwargs`, `net_arch` and so on. The previous action must
            come as an observation (`PreviousActionWrapper`), because RLlib draws actions outside of the module.
        max_seq_len: Steps of a sequence, >= 1; RLlib reads it too.
        max_trial_steps: Most steps of an episode of RLlib, >= 1; for memories that are not `bounded`, whose states
            RLlib must be able to stack. Default `max_seq_len`.

    Raises:
        ImportError: RLlib is not installed.
        ValueError: A setting is missing or does not fit, or an episode is longer than `max_trial_steps`.
    """

    def setup(self) -> None:
        """Make the network; called by RLlib's constructor."""
        config = dict(self.model_config or {})
        if "max_seq_len" not in config:
            raise ValueError(f"model_config must have 'max_seq_len'; its keys are {', '.join(SETTINGS)}; got {config}")
        for name in ("max_seq_len", "max_trial_steps"):
            check_int(name, config.get(name), or_none=name != "max_seq_len")
        settings = dict(config.get("policy") or {})
        if settings.get("memory") is None:
            raise ValueError(f"model_config['policy'] must name a 'memory'; {choices_for('', MEMORIES)}")
        if settings.get("previous_action_dim"):
            raise ValueError(
                "model_config['policy']['previous_action_dim'] must be 0 in RLlib, which draws actions outside of the "
                f"module (PreviousActionWrapper makes them observations), got {settings['previous_action_dim']}"
            )
        if isinstance(self.action_space, spaces.Discrete) and self.action_space.start != 0:
            raise ValueError(f"the actions must begin at 0 in RLlib, got {self.action_space}")
        self._images = _images_with_channels_last(self.observation_space)
        space = _with_channels_first(self.observation_space, self._images)
        self.policy = MemoryPolicy(space, self.action_space, lambda _: 0.0, **{**settings, "previous_action_dim": 0})
        self._max_steps = int(config.get("max_trial_steps") or config["max_seq_len"])
        if isinstance(self.action_space, spaces.MultiDiscrete):
            self.action_dist_cls = TorchMultiCategorical.get_partial_dist_cls(
                space=self.action_space, input_lens=self.action_space.nvec.tolist()
            )

    def get_initial_state(self) -> dict[str, Any]:
        """Return the state of one empty memory, as NumPy arrays without an axis for the batch."""
        state = self.policy.memory.initial_state(1, max_steps=self._max_steps)
        arrays = {name: value[0].detach().cpu().numpy() for name, value in state.items()}
        return arrays | {NUM_STEPS: torch.zeros((), dtype=torch.int64).numpy()}

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Act: one step of each sequence."""
        latent, state = self._features(batch, acting=True)
        return {Columns.ACTION_DIST_INPUTS: self._action_inputs(latent, batch), Columns.STATE_OUT: state}

    def _forward_train(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Learn: sequences that are padded with zeros at their ends."""
        latent, _ = self._features(batch, acting=False)
        return {Columns.ACTION_DIST_INPUTS: self._action_inputs(latent, batch), Columns.EMBEDDINGS: latent}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        """Return values, float (B, T); `embeddings` of `forward_train` save computing them."""
        latent = self._features(batch, acting=False)[0] if embeddings is None else embeddings
        return self.policy.heads(latent)[1]

    def _features(self, batch: dict[str, Any], *, acting: bool) -> tuple[Tensor, State]:
        """Features of the memory, float (B, T, D), and the state after the last step; empty if not acting."""
        observations = self._observations(batch)
        state = {name: value.clone() for name, value in batch[Columns.STATE_IN].items()}  # memories write in place
        num_steps = state.pop(NUM_STEPS)
        x = self._inputs(observations, num_steps)
        steps = x.embedding.shape[1]
        if not acting:
            latent = self.policy.memory(x, state)[0]
            self.policy.memory.auxiliary_loss()  # RLlib's losses have no place for it
            return latent, {}
        latents = []
        for t in range(steps):  # RLlib acts one step at a time
            latent, state = self.policy.memory.step(x.steps(t, t + 1), state)
            latents.append(latent)
        num_steps = num_steps + steps
        if not self.policy.memory.bounded and int(num_steps.max()) > self._max_steps:
            raise ValueError(
                "max_trial_steps (by default max_seq_len) must be at least the steps of an episode of RLlib for the "
                f"memory {self.policy.memory_name!r}, got {self._max_steps} and step {int(num_steps.max())}"
            )
        return torch.stack(latents, 1), state | {NUM_STEPS: num_steps}

    def _observations(self, batch: dict[str, Any]) -> Any:
        """Observations, (B, T, ...), with the channels of images first."""
        observations = widened(batch[Columns.OBS])
        if not isinstance(observations, dict):
            return observations.movedim(-1, -3) if "" in self._images else observations
        return {key: value.movedim(-1, -3) if key in self._images else value for key, value in observations.items()}

    def _inputs(self, observations: Any, num_steps: Tensor) -> StepInputs:
        """Input of the memory for T steps of B sequences; `num_steps`, (B,), are the steps before."""
        first = next(iter(observations.values())) if isinstance(observations, dict) else observations
        shape = first.shape[:2]
        flat = (
            {key: value.flatten(0, 1) for key, value in observations.items()}
            if isinstance(observations, dict)
            else observations.flatten(0, 1)
        )
        extra = {key: value.unflatten(0, shape) for key, value in self.policy.extra_inputs(flat).items()}
        trial_start = torch.zeros(shape, dtype=torch.bool, device=first.device)
        trial_start[:, 0] = num_steps == 0
        episode_start = trial_start
        if isinstance(observations, dict) and EPISODE_START_KEY in observations:
            episode_start = trial_start | (observations[EPISODE_START_KEY].reshape(shape) > 0)
        features = self.policy.features(flat).unflatten(0, shape)  # (B, T, features_dim)
        previous = torch.zeros(shape, dtype=torch.int64, device=first.device)  # ignored: its embedding has width 0
        return self.policy.memory_inputs(features, previous, episode_start, trial_start, extra)

    def _action_inputs(self, latent: Tensor, batch: dict[str, Any]) -> Tensor:
        """Inputs of RLlib's distributions, float (B, T, ...): logits, or means and logarithms of deviations."""
        mask = self.policy.action_mask(batch[Columns.OBS])
        if mask is not None:
            mask = mask | ~mask.any(-1, keepdim=True)  # padding and last observations may allow no action
        distribution, _ = self.policy.heads(latent, mask)
        if isinstance(distribution, Categorical):
            return distribution.log_probs.clamp(min=torch.finfo(torch.float32).min)  # RLlib multiplies them by 0
        if isinstance(distribution, MultiCategorical):
            return torch.cat([part.log_probs for part in distribution.parts], -1)
        assert isinstance(distribution, DiagonalGaussian)
        return torch.cat([distribution.mean, distribution.log_std.expand_as(distribution.mean)], -1)


def _images_with_channels_last(space: spaces.Space) -> set[str]:
    """Keys of images whose channels are the last axis; "" is an observation that is not a `Dict`."""
    keys = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    return {
        key
        for key, each in keys.items()
        if isinstance(each, spaces.Box) and is_image_space(each) and not is_image_space_channels_first(each)
    }


def _with_channels_first(space: spaces.Space, images: set[str]) -> spaces.Space:
    """Return the space with the channels of these images first."""

    def moved(key: str, each: spaces.Space) -> spaces.Space:
        if key not in images:
            return each
        height, width, channels = each.shape or ()
        return spaces.Box(0, 255, (channels, height, width), each.dtype.type)  # type: ignore[union-attr]

    if not isinstance(space, spaces.Dict):
        return moved("", space)
    return spaces.Dict({key: moved(key, each) for key, each in space.spaces.items()})
