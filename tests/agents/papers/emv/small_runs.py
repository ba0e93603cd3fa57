"""Settings of tiny models of question answering, and a run with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.presets import find_preset
from memenvs.verbalization.language.wordings import KINDS

DATA = {"kinds": KINDS, "scale": "smoke", "questions": 4}
QUEUES = {"dim": 8, "layers": 2, "heads": 2, "mlp_dim": 8, "block_length": 4, "memory_length": 4}
QUEUES |= {"compressed_lengths": [2], "ratios": [2]}
T5_SIZES = {"d_model": 16, "d_ff": 24, "d_kv": 8, "num_layers": 1, "num_heads": 2}
POLICY = {"dim": 8, "head_dim": 16, "head_heads": 2, "head_layers": 1, "memory_kwargs": QUEUES}


def make_small(policy: dict[str, Any], seed: int = 0) -> Any:
    """A model that has not learned; its weights follow from the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make_question_answering("memenvs/EpisodicQA-v0", DATA, policy)


def save_untrained(path: Path, policy: dict[str, Any] = POLICY) -> None:
    """Write the checkpoint of a model that has not learned."""
    model = make_small(policy)
    settings = {"env": "memenvs/EpisodicQA-v0", "env_kwargs": DATA, "policy": policy, "seed": 0, "total_steps": 1}
    SupervisedLearner(model, QuestionConfig(), 1).save(path, settings)


def words_from(source: Path | None, policy: dict[str, Any]) -> RunConfig:
    """Settings of a run that learns words from two batches, and begins with another run."""
    config = find_preset("episodic-qa")
    return replace(
        config,
        total_steps=2,
        env_kwargs=DATA,
        eval_kwargs={"split": "test", "lengths": [1], "questions": 2},
        learner=replace(config.learner, learning_rate=1e-3, batch_size=4, validation_episodes=2, checkpoint_steps=1),
        policy=policy,
        encoder_from=None if source is None else str(source),
    )
