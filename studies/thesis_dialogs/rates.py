"""Learning rates of the study, tried for half of the batches with a seed of their own.

    memenvs study studies/thesis_dialogs/rates.py

`study.py` takes the better one.
"""

from __future__ import annotations

import numpy as np

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.study import EVALUATION, Played, Rows, Study, Table, changed

from .study import BATCHES, EPISODIC, METHODS, RATES, at_rate, make_tasks


def validate(played: Played) -> float:
    """Share of right answers in histories of the validation."""
    assert played.run is not None
    played.config.use_threads()
    model = trained_model(played.run, played.config.env_kwargs)
    return float(evaluate_model(model, 5 * played.config.eval_trials, seed=100, split="validation")["accuracy"].mean())


def make_tables(rows: Rows) -> list[Table]:
    """Right answers with each learning rate."""
    lines = [
        [task, method, *(format_percent(np.array(rows.results(task, f"{method}, {rate}"))) for rate in RATES)]
        for task in make_tasks()
        for method in METHODS
    ]
    return [Table("Right answers after half of the batches, %", ["dialogs", "memory", *RATES], lines)]


STUDY = Study(
    title="Learning rates of the thesis' dialogs",
    configs={
        task: {
            f"{method}, {rate}": changed(at_rate(config, method, rate), {"total_steps": BATCHES // 2})
            for method in METHODS
            for rate in RATES
        }
        for task, config in make_tasks().items()
    },
    seeds=(100,),
    evaluations={EVALUATION: validate},
    tables=make_tables,
    smoke=EPISODIC.smoke,
)
