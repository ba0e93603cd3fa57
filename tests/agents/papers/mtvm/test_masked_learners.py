"""Learners of `MemoryPolicy` on graphs, where a masked action is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.experiments.train import train_run
from memenvs.agents.policies.policy_arguments import ACTION_MASK
from memenvs.agents.study import find_studies, load_study
from tests.agents.papers.mtvm.learners import ENV, kwargs

POLICY: dict[str, Any] = {
    "memory": "gru",
    "memory_kwargs": {"hidden_dim": 8},
    "features_extractor_class": "OptionsEncoder",
    "features_extractor_kwargs": {"words_dim": 4, "hidden": 8, "width": 2},
}


def test_ppo_weighs_actions_as_it_drew_them(toy_data: Path) -> None:
    """Log probabilities are those of acting before the first update, and gradients are finite."""
    env = make_vec_env(ENV, 3, **kwargs(toy_data))
    model = PartialUpdatePPO(
        "MemoryPolicy",
        env,
        policy_kwargs=POLICY,
        seed=0,
        device="cpu",
        n_steps=16,
        n_updates=1,
        batch_size=3,
        n_epochs=1,
    )
    _, callback = model._setup_learn(10**6)
    assert model.collect_rollouts(env, callback, model.rollout_buffer, 16)
    buffer = model.rollout_buffer
    distribution, _, actions = model.evaluate(torch.arange(3), 0, 16)
    torch.testing.assert_close(distribution.log_prob(actions), buffer.log_probs, atol=1e-5, rtol=1e-4)
    masks = buffer.observations[ACTION_MASK]
    assert masks.gather(2, actions[..., None]).all() and not masks.all()
    assert bool((distribution.log_probs[masks == 0] == -torch.inf).all())
    (distribution.log_prob(actions) + distribution.entropy()).sum().backward()
    assert all(
        torch.isfinite(parameter.grad).all() for parameter in model.policy.parameters() if parameter.grad is not None
    )


def test_episode_dqn_takes_no_masked_action(toy_data: Path) -> None:
    """In uniform and greedy actions, and in targets."""
    env = make_vec_env(ENV, 2, **kwargs(toy_data))
    model = EpisodeDQN(
        "MemoryPolicy",
        env,
        policy_kwargs=POLICY,
        seed=0,
        device="cpu",
        capacity=4,
        episode_steps=15,
        updates_per_collect=2,
        batch_size=2,
        decisions=4,
        final_epsilon=0.0,
        exploration=0.01,
    ).learn(200)
    replay = model.replay
    assert model._n_updates > 0
    for row in range(4):
        steps = torch.arange(int(replay.lengths[row]))[None]
        masks = replay.read(torch.tensor([row]), steps).observations[ACTION_MASK]
        assert masks.gather(2, replay.actions(torch.tensor([row]), steps)[..., None]).all()
    rows, steps = torch.arange(4), torch.zeros(4, 2, dtype=torch.int64)
    q = model.q_values(model.policy, rows, steps)
    is_available = replay.read(rows, steps).observations[ACTION_MASK] > 0
    assert bool(((q > -torch.inf) == is_available).all())


def test_the_run_of_a_study_learns_from_rewards(tmp_path: Path, toy_data: Path) -> None:
    pairs = {
        "env_kwargs": kwargs(toy_data),
        "n_envs": 2,
        "total_steps": 128,
        "eval_kwargs.split": "val_seen",
        "eval_trials": 3,
        "device": "cpu",
        "ppo.batch_size": 2,
    }
    config = load_study(find_studies()["vln_tasks"]).config(("rewards", "gru", 0))
    with RunDirectory(tmp_path, with_overrides(config, list(pairs.items()))) as run:
        train_run(run, quiet=True)
        assert "train/entropy" in run.metrics()
        assert evaluate_run(run, quiet=True).metrics["spl"].shape == (3, 1)
