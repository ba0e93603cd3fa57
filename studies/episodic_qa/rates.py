"""Schedules of the LSTM with a wide head, tried for half of the batches with another seed.

    memenvs study studies/episodic_qa/rates.py

`study.py` takes the best one for `wide-head-lstm-own`.
"""

from __future__ import annotations

from typing import Any

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.study import EVALUATION, Played, Rows, Study, Table, changed

from .study import LSTM_SCHEDULE, TASK, WIDE_HEAD, make_configs, smoke

#: Method -> changes of `wide-head-lstm-o1`. The last one has the lengths of histories of the models with a head of 192.
SCHEDULES: dict[str, dict[str, Any]] = {
    "0.0005": {"questions.learning_rate": 5e-4},
    "0.001": {},
    "0.002": {"questions.learning_rate": 2e-3},
    "0.001, long histories later": LSTM_SCHEDULE,
}


def validate(played: Played) -> dict[str, float]:
    """Right answers in histories of the validation: of all, and of those of five episodes."""
    assert played.run is not None
    played.config.use_threads()
    model = trained_model(played.run, played.config.env_kwargs)
    scores = evaluate_model(model, 5 * played.config.eval_trials, seed=100, split="validation")
    return {name: float(scores[name].mean()) for name in ("accuracy", "accuracy_length_5")}


def make_tables(rows: Rows) -> list[Table]:
    """Right answers with each schedule."""
    lines = [
        [method, *(f"{100 * share:.1f}" for share in result.values())]
        for method in SCHEDULES
        for result in rows.results(TASK, method)
    ]
    header = ["learning rate", "all histories", "of five episodes"]
    return [Table("Right answers of the LSTM after half of the batches, %", header, lines)]


_BASE = changed(make_configs()["wide-head-lstm-o1"], {"total_steps": WIDE_HEAD["total_steps"] // 2})
STUDY = Study(
    title="Schedules of the LSTM with a wide head",
    configs={TASK: {method: changed(_BASE, changes) for method, changes in SCHEDULES.items()}},
    seeds=(100,),
    evaluations={EVALUATION: validate},
    tables=make_tables,
    smoke=smoke,
)
