"""Learning rates of the matrix, tried for half of the steps with a seed of their own.

    memenvs study studies/matrix/rates.py

`study.py` takes the better one. They are played with goals of training, or in episodes of a seed of their own, where
there are homes in those of the split `validation`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.statistics import format_mean
from memenvs.agents.study import Played, Rows, Study, Table

from .study import RATES, at_rate, make_tasks, memories_of, play, score_of, smoke


def validate(played: Played) -> dict[str, Any]:
    """Scores with goals of training, or in episodes of another seed without homes of the test."""
    config = played.config
    if config.kind.acts:
        return play(played, seed=1 if "Darkroom" in config.env else 100)
    assert played.run is not None
    config.use_threads()
    model = trained_model(played.run, config.eval_kwargs)
    scores = evaluate_model(model, config.eval_trials, seed=100, split="validation")[config.score]
    return {"agent": {"metrics": {config.score: {"mean": float(scores.mean())}}}}


def make_tables(rows: Rows) -> list[Table]:
    """Score of each learning rate."""
    lines = [
        [task, memory, *(format_mean(score_of(rows, task, f"{memory}, {rate}")) for rate in RATES)]
        for task in make_tasks()
        for memory in memories_of(task)
    ]
    return [Table("Score after half of the steps", ["task", "memory", *RATES], lines)]


def at_half(config: RunConfig) -> RunConfig:
    """Settings of a run that tries a learning rate: half of the steps, no play in the test."""
    changes = {name: value for name, value in config.eval_kwargs.items() if name != "split"}
    return replace(config, total_steps=config.total_steps // 2, eval_kwargs={**changes, **config.validation_kwargs})


STUDY = Study(
    title="Learning rates of the memory matrix",
    configs={
        task: {
            f"{memory}, {rate}": at_half(at_rate(config, memory, rate))
            for memory in memories_of(task)
            for rate in RATES
        }
        for task, config in make_tasks().items()
    },
    seeds=(100,),
    evaluations={"evaluation": validate},
    tables=make_tables,
    smoke=smoke,
)
