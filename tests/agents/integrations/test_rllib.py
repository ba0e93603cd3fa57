"""Memories in RLlib: what was acted on is what is learned from, also in padded sequences."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents.integrations.rllib import MemoryRLModule
from memenvs.agents.memory import EXTRA_INPUTS, MEMORIES, StepInputs

try:
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
except ImportError as error:
    REASON = f"needs RLlib, which is large and not among the packages of the tests: pip install ray[rllib] ({error})"
    ray = None
else:
    REASON = ""

needs_rllib = pytest.mark.skipif(ray is None, reason=REASON)
#: RLlib and packages that it imports warn of what they will change; that is not ours to mend.
pytestmark = pytest.mark.filterwarnings("default")

STEPS, LENGTH = 23, 9
"""Steps of an episode, and of a sequence: the last of three sequences is padded by four steps."""
SPACE = spaces.Dict(
    {
        "vector": spaces.Box(-1.0, 1.0, (5,), np.float32),
        "image": spaces.Box(0, 255, (12, 12, 3), np.uint8),
        "episode_start": spaces.Discrete(2),
        "pose": spaces.Box(-9.0, 9.0, (3,), np.float32),
        "place": spaces.Discrete(4),
        "move": spaces.Discrete(5),
        "candidate_mask": spaces.Box(0, 1, (4,), np.int8),
    }
)
ACTIONS = {
    "Discrete": spaces.Discrete(4),
    "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
    "Box": spaces.Box(-1.0, 1.0, (2,), np.float32),
}
SMALL: dict[str, dict[str, Any]] = {
    "relic": {"layers": 2, "heads": 2, "dim": 8, "mlp_dim": 8, "depth_dropout": 0.0},
    "trxl": {"layers": 2, "heads": 2, "dim": 8, "mlp_dim": 8, "memory_length": 6},
    "smt": {"capacity": 7},
    "frmqn": {"capacity": 7},
}


def make_module(memory: str, actions: spaces.Space = ACTIONS["Discrete"], **config: Any) -> Any:
    torch.manual_seed(0)
    space = SPACE
    if not isinstance(actions, spaces.Discrete):
        space = spaces.Dict({key: each for key, each in SPACE.spaces.items() if key != "candidate_mask"})
    policy = {"memory": memory, "memory_kwargs": SMALL.get(memory, {})}
    model_config = {"policy": policy, "max_seq_len": LENGTH, "max_trial_steps": STEPS, "added_by_rllib": 1, **config}
    module = MemoryRLModule(observation_space=space, action_space=actions, model_config=model_config)
    with torch.no_grad():  # the actor begins almost uniform, so that no memory would be seen in its outputs
        for parameter in module.policy.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def draw_observations(space: spaces.Dict, batch: int) -> dict[str, np.ndarray]:
    """Random observations, (B, STEPS, ...); inner episodes start at steps 0, 6, 12, ..."""
    space.seed(1)
    drawn = [[space.sample() for _ in range(STEPS)] for _ in range(batch)]
    found = {key: np.array([[each[key] for each in row] for row in drawn]) for key in space.spaces}
    found["episode_start"] = np.tile((np.arange(STEPS) % 6 == 0).astype(np.int64), (batch, 1))
    if "candidate_mask" in found:
        found["candidate_mask"][..., 0] = 1
    return found


def as_batch(observations: dict[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, Any]:
    return {
        Columns.OBS: {key: torch.as_tensor(value) for key, value in observations.items()},
        Columns.STATE_IN: {key: torch.as_tensor(value) for key, value in state.items()},
    }


def stream(module: Any, observations: dict[str, np.ndarray], batch: int) -> tuple[torch.Tensor, list[dict]]:
    """Act step by step as RLlib does; return the outputs, and the states before the steps."""
    state = {key: np.stack([value] * batch) for key, value in module.get_initial_state().items()}
    outputs, states = [], []
    for t in range(STEPS):
        states.append({key: value.copy() for key, value in state.items()})
        out = module.forward_exploration(as_batch({k: v[:, t : t + 1] for k, v in observations.items()}, state))
        outputs.append(out[Columns.ACTION_DIST_INPUTS])
        assert all((value == states[-1][key]).all() for key, value in state.items())  # not written in place
        rows = [{key: value[i].numpy() for key, value in out[Columns.STATE_OUT].items()} for i in range(batch)]
        state = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    return torch.cat(outputs, 1), states


def padded(observations: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Sequences of LENGTH steps, zeros behind the last step: (B * sequences, LENGTH, ...)."""
    missing = -STEPS % LENGTH
    out = {}
    for key, value in observations.items():
        filled = np.concatenate([value, np.zeros((len(value), missing, *value.shape[2:]), value.dtype)], 1)
        out[key] = filled.reshape(-1, LENGTH, *value.shape[2:])
    return out


def batch_form(module: Any, observations: dict[str, np.ndarray]) -> torch.Tensor:
    """Outputs of the memory's own pass over whole trials, without a state."""
    policy, batch = module.policy, len(observations["place"])
    tensors = {key: torch.as_tensor(value) for key, value in observations.items()}
    tensors["image"] = tensors["image"].movedim(-1, -3)
    features = policy.features({key: value.flatten(0, 1) for key, value in tensors.items()})
    trial_start = torch.zeros(batch, STEPS, dtype=torch.bool)
    trial_start[:, 0] = True
    extra = {key: tensors[key].to(dtype) for key, (dtype, _) in EXTRA_INPUTS.items()}
    x = StepInputs(features.unflatten(0, (batch, STEPS)), tensors["episode_start"] > 0, trial_start, **extra)
    mask = tensors["candidate_mask"] > 0 if "candidate_mask" in tensors else None
    distribution, _ = policy.heads(policy.memory(x)[0], mask)
    if hasattr(distribution, "log_probs"):
        return distribution.log_probs.clamp(min=torch.finfo(torch.float32).min)
    if hasattr(distribution, "parts"):
        return torch.cat([part.log_probs for part in distribution.parts], -1)
    return torch.cat([distribution.mean, distribution.log_std.expand_as(distribution.mean)], -1)


@needs_rllib
@pytest.mark.parametrize("name", MEMORIES)
def test_padded_sequences_give_what_was_acted_on(name: str) -> None:
    for actions in ACTIONS.values() if name == "gru" else [ACTIONS["Discrete"]]:
        module = make_module(name, actions)
        assert module.is_stateful()
        observations = draw_observations(module.observation_space, batch=2)
        acted, states = stream(module, observations, batch=2)
        at_starts = [states[t] for t in range(0, STEPS, LENGTH)]
        state = {key: np.stack([each[key] for each in at_starts], 1) for key in states[0]}
        state = {key: value.reshape(-1, *value.shape[2:]) for key, value in state.items()}
        batch = as_batch(padded(observations), state)
        before = {key: value.clone() for key, value in batch[Columns.STATE_IN].items()}
        module.eval()  # dropout apart
        torch.testing.assert_close(batch_form(module, observations), acted, atol=1e-3, rtol=1e-3)
        out = module._forward_train(batch)
        assert torch.isfinite(out[Columns.ACTION_DIST_INPUTS]).all()  # in the padding too
        learned = out[Columns.ACTION_DIST_INPUTS].reshape(2, -1, acted.shape[-1])
        torch.testing.assert_close(learned[:, :STEPS], acted, atol=1e-4, rtol=1e-4)  # float32
        assert all(torch.equal(before[key], batch[Columns.STATE_IN][key]) for key in before)
        values = module.compute_values(batch, out[Columns.EMBEDDINGS])
        torch.testing.assert_close(values, module.compute_values(batch))
        distribution = module.get_train_action_dist_cls().from_logits(out[Columns.ACTION_DIST_INPUTS])
        loss = distribution.entropy().sum() + values.sum()
        loss.backward()
        gradients = [each.grad for each in module.parameters() if each.grad is not None]
        assert gradients and all(torch.isfinite(each).all() for each in gradients)


@needs_rllib
def test_the_memory_reaches_back_over_inner_episodes_and_not_over_trials() -> None:
    module = make_module("gru")
    observations = draw_observations(module.observation_space, batch=1)
    acted, states = stream(module, observations, batch=1)
    changed = {key: value.copy() for key, value in observations.items()}
    changed["vector"][:, 0] += 1.0
    assert not torch.allclose(stream(module, changed, batch=1)[0][:, 7], acted[:, 7], atol=1e-4)
    last = as_batch({key: value[:, 7:8] for key, value in observations.items()}, states[0])
    used = {**states[7], "num_steps": np.zeros(1, np.int64)}  # RLlib begins an episode: the memory is emptied
    again = as_batch({key: value[:, 7:8] for key, value in observations.items()}, used)
    one, other = (module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS] for batch in (last, again))
    torch.testing.assert_close(one, other)


@needs_rllib
def test_wrong_settings_are_refused() -> None:
    for config, message in (
        ({"max_seq_len": 0}, "max_seq_len must be an integer of at least 1, got 0"),
        ({"max_trial_steps": 1.5}, "max_trial_steps must be an integer of at least 1 or None, got 1.5"),
        ({"policy": {}}, r"model_config\['policy'\] must name a 'memory'"),
        ({"policy": {"memory": "gur"}}, r"unknown memory 'gur'.* did you mean 'gru'"),
        ({"policy": {"memory": "gru", "previous_action_dim": 8}}, "previous_action_dim'] must be 0 in RLlib.* got 8"),
    ):
        with pytest.raises(ValueError, match=message):
            make_module("gru", **config)
    with pytest.raises(ValueError, match="model_config must have 'max_seq_len'"):
        MemoryRLModule(observation_space=SPACE, action_space=ACTIONS["Discrete"], model_config={})
    with pytest.raises(ValueError, match=r"actions must begin at 0 in RLlib, got Discrete\(4, start=1\)"):
        make_module("gru", spaces.Discrete(4, start=1))
    module = make_module("relic", max_trial_steps=10)
    with pytest.raises(
        ValueError, match=r"max_trial_steps .* must be at least the steps .* 'relic', got 10 and step 11"
    ):
        stream(module, draw_observations(module.observation_space, batch=1), batch=1)


def make_env(config: dict[str, Any]) -> gym.Env:
    """Trials of three episodes in a Darkroom of 3 x 3 cells, each as one episode of RLlib."""
    import memenvs
    from memenvs.wrappers import PreviousActionWrapper, TrialWrapper

    assert memenvs
    env = gym.make("memenvs/Darkroom-v0", disable_env_checker=True, **config)
    return PreviousActionWrapper(TrialWrapper(env, trial_episodes=3))


if ray is not None:

    class ComparingLearner(PPOTorchLearner):
        """Notes by how much the first pass over a batch differs from what was acted on."""

        differences: list[float] = []  # noqa: RUF012  (of the test)

        def compute_loss_for_module(self, *, batch: Any, fwd_out: Any, **kwargs: Any) -> Any:
            mask = batch[Columns.LOSS_MASK]
            gap = (fwd_out[Columns.ACTION_DIST_INPUTS] - batch[Columns.ACTION_DIST_INPUTS])[mask].detach().abs().max()
            self.differences.append(float(gap))
            return super().compute_loss_for_module(batch=batch, fwd_out=fwd_out, **kwargs)


@needs_rllib
@pytest.mark.programs
def test_a_learner_of_rllib_sees_what_was_acted_on() -> None:
    """One real rollout and update: connectors of RLlib cut, pad and stack, and weights change."""
    from ray.tune.registry import register_env

    settings = {"size": 3, "max_episode_steps": 5, "split": "all"}
    register_env("small-darkroom", functools.partial(lambda config: make_env({**settings, **config})))
    config = (
        PPOConfig()
        .environment("small-darkroom")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=3)
        .learners(num_learners=0)
        .training(
            train_batch_size=90, minibatch_size=90, num_epochs=1, lr=1e-3, learner_class=ComparingLearner, gamma=0.9
        )
        .debugging(seed=0)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=MemoryRLModule,
                model_config={
                    "policy": {"memory": "relic", "memory_kwargs": SMALL["relic"]},
                    "max_seq_len": 7,
                    "max_trial_steps": 16,
                },
            )
        )
    )
    algorithm = config.build_algo()
    try:
        before = {key: value.copy() for key, value in algorithm.get_module().get_state().items()}
        algorithm.train()
        after = algorithm.get_module().get_state()
    finally:
        algorithm.stop()
        ray.shutdown()
    assert ComparingLearner.differences and max(ComparingLearner.differences[:1]) < 1e-5
    assert any((before[key] != after[key]).any() for key in before)


@pytest.mark.skipif(ray is not None, reason="RLlib is installed")
def test_without_rllib_the_error_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"MemoryRLModule needs RLlib .* pip install 'memenvs\[rllib\]'"):
        MemoryRLModule(observation_space=SPACE, action_space=ACTIONS["Discrete"])
