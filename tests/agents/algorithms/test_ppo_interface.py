"""Partial-update PPO in Stable-Baselines3: spaces, callbacks, what it refuses."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import DQNConfig, EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.cli import main
from tests.agents.learners import SEGMENT, STEPS, Hooks, N, Noise, act, act_next, darkroom, learner, weights

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (36, 36, 3), np.uint8)
DICT = spaces.Dict({"image": IMAGE, "vector": VECTOR, "kind": spaces.Discrete(4), "flags": spaces.MultiBinary(2)})
COMBINED = {"features_extractor_class": CombinedExtractor, "features_extractor_kwargs": {"cnn_output_dim": 8}}
SPACES = {
    "vector, Box": (VECTOR, spaces.Box(-0.1, 0.1, (2,), np.float32), {}),
    "vector, Discrete from 5": (VECTOR, spaces.Discrete(3, start=5), {}),
    "float64": (spaces.Box(-1.0, 1.0, (3,), np.float64), spaces.Discrete(2), {}),
    "number": (spaces.Discrete(5), spaces.Discrete(2), {}),
    "dict": (DICT, spaces.Discrete(2), {"features_extractor_kwargs": {"image_dim": 8, "widths": {"vector": 4}}}),
    "dict, CombinedExtractor": (DICT, spaces.MultiDiscrete([2, 2]), COMBINED),
    "dict, frozen": (
        DICT,
        spaces.Discrete(2),
        {"freeze_features": True, "features_extractor_kwargs": {"image_dim": 8}},
    ),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.slow
def test_spaces(name: str) -> None:
    observations, actions, policy = SPACES[name]
    env = DummyVecEnv([lambda: Noise(observations, actions, horizon=6)] * 2)
    model = learner("relic", env=env, n_steps=16, n_updates=2, policy_kwargs=policy, learning_rate=1e-3)
    act(model)
    distribution, values, taken = model.evaluate(torch.arange(2), 0, 8)
    buffer = model.rollout_buffer
    torch.testing.assert_close(distribution.log_prob(taken), buffer.log_probs[:, :8], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(values, buffer.values[:, :8], atol=1e-4, rtol=1e-4)
    before = weights(model)
    model.learn(2 * 2 * 16)
    assert not torch.equal(before, weights(model))
    action, _ = model.predict(env.reset(), deterministic=True)
    assert all(actions.contains(a) for a in (action.astype(actions.dtype)))
    if policy.get("freeze_features"):
        assert buffer.embeddings.dtype == torch.bfloat16 and buffer.observations is None
        assert not any(parameter.requires_grad for parameter in model.policy.features_extractor.parameters())


def test_spaces_that_are_not_supported() -> None:
    for space in (spaces.MultiBinary(3), spaces.Box(-1.0, 1.0, (2, 2), np.float32), spaces.MultiDiscrete([[2, 2]])):
        env = DummyVecEnv([lambda space=space: Noise(VECTOR, space)])
        with pytest.raises(ValueError, match="action space"):
            learner("none", env=env)
    endless = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    for space, message in (
        (spaces.MultiBinary(3), r"of PartialUpdatePPO must be Box or Discrete or MultiDiscrete, got MultiBinary\(3\)"),
        (endless, "the action space must have finite bounds, as gymnasium.wrappers.RescaleAction gives, got Box"),
    ):
        with pytest.raises(ValueError, match=message):
            learner("none", env=Noise(VECTOR, space))


def test_a_callback_can_stop_and_learning_can_go_on() -> None:
    model = learner("relic")
    stop = Hooks(step=lambda own: own.n_calls <= SEGMENT + 3 and len(own.locals["infos"]) == N)
    model.learn(10**6, stop)  # in the middle of the second segment
    assert model.num_timesteps == N * (SEGMENT + 4)
    assert not model.at_rollout_boundary
    with pytest.warns(UserWarning, match="stopped in the middle of a rollout .* dropped: .* after 48 env") as caught:
        model.learn(2 * N * STEPS, reset_num_timesteps=False)
    assert caught[0].filename == __file__  # where `learn` is called
    assert model.num_timesteps == N * (SEGMENT + 4) + 2 * N * STEPS
    assert model.at_rollout_boundary
    assert [info["trial_id"] for info in model.env.reset_infos] == [2] * N


def test_learning_in_pieces_is_learning_at_once() -> None:
    whole, pieces = learner("relic"), learner("relic")
    whole.learn(2 * N * STEPS)
    for i in range(2 * STEPS // SEGMENT):
        pieces.learn(N * SEGMENT, reset_num_timesteps=i == 0)
    assert torch.equal(weights(whole), weights(pieces))


def test_learn_needs_an_environment(tmp_path: Any) -> None:
    learner("none").save(tmp_path / "model")
    with pytest.raises(RuntimeError, match="learn was called without an environment"):
        PartialUpdatePPO.load(tmp_path / "model", device="cpu").learn(1)


def test_broken_weights_are_named() -> None:
    model = act(learner("none"))
    with torch.no_grad():
        model.policy.critic.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"policy's outputs must be finite.*after 32 environment steps and 0 upd"):
        act_next(model)


def test_loss_and_gradient_must_be_finite() -> None:
    """Returns whose squares overflow float32: the update stops before it changes the weights."""
    model = act(learner("lstm"), 2, train=True)
    before = weights(model)
    model.rollout_buffer.rewards[:, SEGMENT] = 1e30
    with pytest.raises(ValueError, match=r"must be finite, got value_loss inf.* in update 2, after 64 env.* 1 updates"):
        model.train()
    assert torch.equal(weights(model), before)


@pytest.mark.parametrize("memory", ["lstm", "relic"])
def test_the_observation_after_the_last_step_needs_a_position(memory: str) -> None:
    """Episodes have 5 steps; the value of the observation after a time limit needs a sixth."""
    tight = {"memory_kwargs": {"max_episode_steps": 5}} if memory == "relic" else {}
    learner(memory, **tight).learn(N * STEPS)
    if memory == "relic":
        message = r"memory_kwargs\['max_episode_steps'\] must be above the 5 .* with bootstrap_truncated .*, got 5"
        with pytest.raises(ValueError, match=message):
            learner(memory, bootstrap_truncated=True, **tight)
        with pytest.raises(ValueError, match=r"must be above the 500 of the environment .*, got 5"):
            learner(memory, env=make_vec_env("CartPole-v1", 1), bootstrap_truncated=True, **tight)
        model = learner(memory, bootstrap_truncated=True, memory_kwargs={"max_episode_steps": 6})
        with pytest.raises(ValueError, match=r"must be above the 6 of the environment .*, got 6"):
            model.set_env(darkroom(horizon=6))
        tight = {"memory_kwargs": {"max_episode_steps": 6}}
    learner(memory, bootstrap_truncated=True, **tight).learn(N * STEPS)


def test_an_episode_needs_a_position_for_each_step() -> None:
    """Before anything is learned; `single_steps` needs one position."""
    tight = {"memory_kwargs": {"max_episode_steps": 4}}
    message = r"memory_kwargs\['max_episode_steps'\] must be at least the {} steps that an episode may take, got {}"
    with pytest.raises(ValueError, match=message.format(5, 4)):
        learner("relic", **tight)
    with pytest.raises(ValueError, match=message.format(5, 4)):
        policy_kwargs = {"memory": "relic", **tight}
        EpisodeDQN("MemoryPolicy", darkroom(horizon=5), DQNConfig(episode_steps=5), policy_kwargs=policy_kwargs)
    model = learner("relic", memory_kwargs={"max_episode_steps": 5})
    with pytest.raises(ValueError, match=message.format(6, 5)):
        model.set_env(darkroom(horizon=6))
    with pytest.raises(ValueError, match=message.format(6, 5)):
        model.policy.check_env(darkroom(horizon=6))
    learner("relic", policy_kwargs={"single_steps": True}, **tight).learn(N * STEPS)


def test_pictures_as_actions_are_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and for `train`."""
    message = r"at most 512 numbers, got 768: an action of that size is a picture, and .* learn to predict it, as"
    for env in (make_vec_env("memenvs/FFHQWorld-v0", 1), gym.make("memenvs/FFHQWorld-v0")):
        with pytest.raises(ValueError, match=message):
            PartialUpdatePPO("MemoryPolicy", env, policy_kwargs={"memory": "none"}, device="cpu")
    command = "train ci-smoke --env memenvs/Ballet3D-v0 --env_kwargs {} --eval_kwargs {} --out"
    assert main([*command.split(), str(tmp_path / "run")]) == 2
    assert "got 127,008: an action of that size is a picture" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
