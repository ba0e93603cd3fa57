"""Settings of small `ImitationA2C` learners, and weights with which every input matters."""

from pathlib import Path
from typing import Any

import torch

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.papers.mtvm.learner import ImitationA2C

SIZES = {"dim": 8, "inner": 16, "heads": 2, "critic_dim": 8}
DRY = {"dropout": 0.0, "image_dropout": 0.0, "critic_dropout": 0.0}
ENV = "memenvs/VLN-R2R-v0"


def kwargs(folder: Path, **changes: Any) -> dict[str, Any]:
    base = {"world": "mp3d", "split": "train", "data_dir": str(folder)}
    return base | {"features": "none", "feature_size": 4, "max_tokens": 8} | changes


def config(folder: Path, **changes: Any) -> RunConfig:
    """Settings of a run of six updates; `changes` are fields of the config."""
    base: dict[str, Any] = {
        "env": ENV,
        "env_kwargs": kwargs(folder),
        "n_envs": 2,
        "total_steps": 6,
        "device": "cpu",
        "threads": 1,
        "learner": ImitationConfig(learning_rate=1e-3, imitation_updates=2),
        "policy": {"size": "tiny", "network": SIZES},
        "eval_kwargs": {"split": "val_seen"},
        "eval_steps": 15,
        "eval_trials": 3,
        "eval_all_layouts": True,
        "checkpoint_rollouts": 2,
    }
    return RunConfig(**(base | changes))


def sharpen(model: ImitationA2C) -> ImitationA2C:
    """Prepare a learner to play, with large weights in float64."""
    generator = torch.Generator().manual_seed(1)
    model.policy.double()
    model._setup_learn(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model
