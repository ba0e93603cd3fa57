"""Settings and states that partial-update PPO refuses, with the messages."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest
import torch

from memenvs.agents import DQNConfig, EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.cli import main
from tests.agents.learners import SEGMENT, STEPS, N, act, act_next, darkroom, learner, weights


def test_broken_weights_are_named() -> None:
    model = act(learner("none"))
    with torch.no_grad():
        model.policy.critic.bias.fill_(float("nan"))
    with pytest.raises(
        ValueError, match=r"policy's outputs must be finite.*after 32 environment steps and 0 upd.*learning_rate"
    ):
        act_next(model)


def test_loss_and_gradient_must_be_finite() -> None:
    """Returns whose squares overflow float32: the update stops before it changes the weights."""
    model = act(learner("lstm"), 2, train=True)
    before = weights(model)
    model.rollout_buffer.rewards[:, SEGMENT] = 1e30
    with pytest.raises(
        ValueError,
        match=r"must be finite, got value_loss inf.* in update 2, after 64 environment steps and 1 updates; lower",
    ):
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
