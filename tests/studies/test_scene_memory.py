"""Study of the explorers: its runs, its evaluations, first stages without rows."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.memory import make_memory
from memenvs.agents.study import Played
from memenvs.agents.work import run_study
from memenvs.cli import main


def test_methods_differ_in_their_memory_alone(study):
    """And pooling in its learning rate; all begin with the encoder of their task."""
    for task, configs in study.configs.items():
        base = configs["smt"]
        for method in sys.modules[study.smoke.__module__].METHODS:
            config = configs[method]
            assert config.encoder_from == f"{task}-encoder-{{seed}}"
            differs = {key for key in base.policy | config.policy if base.policy.get(key) != config.policy.get(key)}
            assert differs <= {"memory", "memory_kwargs", "net_arch"}
            rate = 3e-3 if method == "sm-pooling" else 1e-3
            learner = replace(base.learner, learning_rate=rate)
            assert replace(config, policy={}) == replace(base, policy={}, learner=learner)


def test_every_memory_takes_the_changes_of_its_evaluations(study):
    checked = 0
    for partial in study.evaluations.values():
        changes = getattr(partial, "keywords", {})
        for method in changes["methods"] if changes.get("memory") else ():
            policy = study.configs["coverage"][method].policy
            make_memory(policy["memory"], 8, **{**policy["memory_kwargs"], **changes["memory"]})
            checked += 1
    assert checked == 8 + 2 * 6 + 2 * 3


def test_a_home_has_the_mean_of_its_episodes(study, monkeypatch):
    """Metrics that an episode does not have are left out; the settings of the evaluation are changed."""
    columns = {"return": [9, 4, 20], "cells": [2, 1, 4], "ratio": [1, np.nan, 1]}
    metrics = {name: np.array(values, float)[:, None] for name, values in columns.items()}
    played = []

    def play(self, **changes):
        played.append(changes)
        return TrialResults(metrics=metrics, layouts=np.array([7, 3, 7]), maps={})

    monkeypatch.setattr(Played, "play", play)
    random = Played("coverage", "random", study.config(("coverage", "random", None)), None)
    assert study.evaluations["homes"](random) == {"return": [4, 14.5], "cells": [1, 3]}
    assert study.evaluations["homes_capacity_5"](random) is None
    causal = Played("coverage", "smt-causal", study.config(("coverage", "smt-causal", 0)), None)
    study.evaluations["homes_steps_500_capacity_5"](causal)
    assert played[-1]["eval_steps"] == played[-1]["eval_kwargs"]["max_episode_steps"] == 500
    slips = Played("coverage", "smt-reckoned-none", study.config(("coverage", "smt-reckoned-none", 0)), None)
    study.evaluations["homes_slip_0.75"](slips)
    assert played[-1]["eval_kwargs"] == {"split": "test", "wheel_noise": 0.75}


@pytest.mark.slow
def test_a_first_stage_without_a_row_is_trained_where_it_is_needed_alone(study, file, tmp_path, capsys):
    command = ["study", "scene_memory", "--smoke", "--out", str(tmp_path), "--tasks", "coverage", "--methods"]
    assert main([*command, "smt-no-pose", "encoder-no-pose"]) == 0
    done = [line.partition(",")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("done: ")]
    assert done == ["done: coverage-encoder-no-pose-0", "done: coverage-smt-no-pose-0"]
    (row,) = map(json.loads, (tmp_path / "smoke" / "rows.jsonl").read_text().splitlines())
    assert row["method"] == "smt-no-pose" and row["evaluations"].keys() == {"homes"}
    cells = study.cells(("coverage",), ("smt-no-pose", "encoder-no-pose"), (0,))
    out = tmp_path / "smoke"
    assert list(run_study(file, cells, out, out / "rows.jsonl", smoke=True)) == []
