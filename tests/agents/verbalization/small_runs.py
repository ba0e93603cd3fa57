"""Settings of tiny models of question answering, and a run with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.question_answering import train_and_evaluate
from memenvs.verbalization.language.wordings import KINDS

DATA = {"kinds": KINDS, "scale": "smoke", "questions": 4}
QUEUES = {"dim": 8, "layers": 2, "heads": 2, "mlp_dim": 8, "block_length": 4, "memory_length": 4}
QUEUES |= {"compressed_lengths": [2], "ratios": [2]}


def train_small(folder: Path, preset: str, policy: dict[str, Any]) -> None:
    """Train the model of a preset with other settings for two batches, and evaluate it."""
    config = find_preset(preset)
    config = replace(
        config,
        total_steps=2,
        env_kwargs=DATA,
        eval_kwargs={"split": "test", "lengths": [1, 5], "questions": 2},
        eval_trials=4,
        learner=replace(config.learner, batch_size=4, validation_episodes=4),
        policy={**policy, "memory": "ct-lt", "memory_kwargs": QUEUES},
    )
    with RunDirectory.open_or_create(folder, config) as run:
        train_and_evaluate(run, True)
