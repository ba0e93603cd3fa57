"""Learners of `MemoryPolicy` on graphs, where a masked action is an error."""

from pathlib import Path
from typing import Any

import torch

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.experiments.train import train_run
from memenvs.agents.policies.policy_arguments import ACTION_MASK
from memenvs.agents.study import find_studies, load_study
from tests.agents.learners import act, check_values
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
    settings = {"n_steps": 16, "n_updates": 1, "batch_size": 3, "n_epochs": 1, "seed": 0, "device": "cpu"}
    model = act(PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=POLICY, **settings))
    check_values(model, 0, 16)
    buffer = model.rollout_buffer
    distribution, _, actions = model.evaluate(torch.arange(3), 0, 16)
    masks = buffer.observations[ACTION_MASK]
    assert masks.gather(2, actions[..., None]).all() and not masks.all()
    assert bool((distribution.log_probs[masks == 0] == -torch.inf).all())
    (distribution.log_prob(actions) + distribution.entropy()).sum().backward()
    assert all(
        torch.isfinite(parameter.grad).all() for parameter in model.policy.parameters() if parameter.grad is not None
    )


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
