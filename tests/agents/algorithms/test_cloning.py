"""Behaviour cloning at the start of PPO: the oracle acts, and its actions are learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents import make_vec_env
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.core import TrialVectorEnv
from tests.agents.corridor import ANSWER_STEPS, CUE_STEPS, Corridor
from tests.agents.learners import ROWS, STEPS, N, act, darkroom, learner, positions

DELAY = 5
LENGTH = CUE_STEPS + DELAY + ANSWER_STEPS  # 8 steps, so that a rollout of 24 is three episodes


class KnownCorridor(Corridor):
    """A corridor with an oracle, which says the cue all along."""

    def oracle_actions(self) -> np.ndarray:
        return self.cue.copy()


def corridor(task: type[Corridor], count: int = N) -> VecEnv:
    return TrialVecEnv(TrialVectorEnv(task, count, trial_episodes=1, autoreset_mode="SameStep", delay=DELAY))


def test_the_oracle_acts_and_its_actions_are_learned() -> None:
    """Its actions fill the rollout, with the policy's probabilities; the loss is their log likelihood."""
    model = act(learner("lstm", env=corridor(KnownCorridor), cloning_steps=1, n_updates=1, vf_coef=0.0, ent_coef=0.0))
    stored = positions(model, 0, STEPS)
    cues = model.rollout_buffer.ordered(model.rollout_buffer.observations["cue"], ROWS, 0, STEPS).argmax(-1)
    assert torch.equal(stored["actions"].view(N, -1, LENGTH), cues.view(N, -1, LENGTH)[..., :1].expand(-1, -1, LENGTH))
    assert stored["rewards"].sum() == N * STEPS / LENGTH
    distribution, _, actions = model.evaluate(ROWS, 0, STEPS)
    log_probs = distribution.log_prob(actions)
    torch.testing.assert_close(log_probs, stored["log_probs"], atol=1e-5, rtol=0)
    targets = torch.zeros(N, STEPS, 4)  # without advantages PPO would learn nothing
    loss = model._optimizer_step(ROWS, 0, STEPS, targets)[0]
    torch.testing.assert_close(loss, -log_probs.mean().detach(), atol=1e-5, rtol=0)


def test_a_delayed_answer_is_cloned_and_then_kept() -> None:
    """After the last rollout of the oracle the policy acts itself, and is paid for it."""
    cloned, own = 20, 2
    rollout = 16 * STEPS
    model = learner(
        "lstm",
        env=corridor(KnownCorridor, 16),
        cloning_steps=cloned * rollout - 1,  # rounded up
        n_updates=1,
        batch_size=16,
        n_epochs=4,
        max_grad_norm=1.0,
        policy_kwargs={"previous_action_dim": 0},  # the oracle's says the cue
        memory_kwargs={"hidden_dim": 16},
    )
    model.learn(cloned * rollout)
    assert model._is_cloning
    model.learn(own * rollout, reset_num_timesteps=False)
    assert not model._is_cloning
    paid = model.rollout_buffer.rewards.sum() * LENGTH / rollout
    assert 0.8 < paid <= 1.0, paid


def test_wrong_settings_are_named() -> None:
    cases: tuple[tuple[Any, str], ...] = (
        (corridor(Corridor), "cloning_steps must be None for an environment that has no oracle, got 5"),
        (make_vec_env("CartPole-v1", N), "cloning_steps must be None for an environment that has no oracle, got 5"),
        (make_vec_env("Pendulum-v1", N), r"cloning_steps must be None unless actions are Discrete, got Box"),
    )
    for env, message in cases:
        with pytest.raises(ValueError, match=message):
            learner("none", env=env, cloning_steps=5)
    learner("none", env=darkroom(), cloning_steps=5)
