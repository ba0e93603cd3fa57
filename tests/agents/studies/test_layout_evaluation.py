"""Means by layout, and returns that must be explained by metrics."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.presets.smt import TASKS
from memenvs.agents.studies.layout_evaluation import mean_by_layout


def results(layouts: list[int], **metrics: list[float]) -> TrialResults:
    """One trial of one episode for each layout."""
    columns = {name: np.array(values, float)[:, None] for name, values in metrics.items()}
    return TrialResults(metrics=columns, layouts=np.array(layouts), maps={})


def test_each_layout_has_the_mean_of_its_episodes() -> None:
    metrics = {"return": [9, 4, 20], "cells": [2, 1, 4], "collisions": [1, 1, 0], "ratio": [1, np.nan, 1]}
    means = mean_by_layout(results([7, 3, 7], **metrics), TASKS["coverage"].rewards)
    assert means == {"return": [4, 14.5], "cells": [1, 3], "collisions": [1, 0.5]}


def test_a_return_that_its_metrics_do_not_explain_is_named() -> None:
    for task in TASKS.values():
        metrics = {name: [1, 2] for name in task.rewards}
        reward = sum(task.rewards.values())
        assert mean_by_layout(results([0, 1], **metrics, **{"return": [reward, 2 * reward]}), task.rewards)
        with pytest.raises(ValueError, match=f"return of trial 1 must be {2 * reward}.*got {2 * reward + 1}"):
            mean_by_layout(results([0, 1], **metrics, **{"return": [reward, 2 * reward + 1]}), task.rewards)
