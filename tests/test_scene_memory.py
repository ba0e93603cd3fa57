"""What the Scene Memory Transformer's tables are made of: means by home, their intervals, and the identities of every episode."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memenvs.agents.experiments.trial_evaluator import TrialResults


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    return importlib.import_module("scene_memory")


def results(layouts: list[int], **metrics: list[float]) -> TrialResults:
    """One trial for each number, of one episode; TrialResults of as many."""
    columns = {name: np.array(values, float)[:, None] for name, values in metrics.items()}
    return TrialResults(metrics=columns, layouts=np.array(layouts), pictures={})


def test_each_home_has_the_mean_of_its_episodes(tables: ModuleType) -> None:
    played = results(
        [7, 3, 7], **{"return": [9, 4, 20], "cells": [2, 1, 4], "collisions": [1, 1, 0], "ratio": [1, np.nan, 1]}
    )
    assert tables.by_home(played, "coverage") == {"return": [4, 14.5], "cells": [1, 3], "collisions": [1, 0.5]}


@pytest.mark.parametrize("task", ["roaming", "coverage", "search"])
def test_a_return_that_its_metrics_do_not_explain_is_named(tables: ModuleType, task: str) -> None:
    metrics = {name: [1, 2] for name in tables.PAYS[task]}
    paid = sum(tables.PAYS[task].values())
    assert tables.by_home(results([0, 1], **metrics, **{"return": [paid, 2 * paid]}), task)
    with pytest.raises(ValueError, match=f"return of trial 1 must be {2 * paid}.*got {2 * paid + 1}"):
        tables.by_home(results([0, 1], **metrics, **{"return": [paid, 2 * paid + 1]}), task)


def test_intervals_are_over_homes_and_not_over_seeds(tables: ModuleType) -> None:
    seeds = np.array([[1.0, 3.0, 5.0, 7.0], [3.0, 1.0, 7.0, 5.0]])  # homes of 2, 2, 6, 6 on average
    mean, low, high = tables.interval(seeds)
    assert (mean, low, high) == (4, 2, 6)  # one in 16 resamples has the two worse homes only
    many = np.random.default_rng(0).normal(10, 2, (1, 400))
    mean, low, high = tables.interval(many)
    assert high - low == pytest.approx(2 * 1.96 * many.std() / 20, rel=0.05)


def test_ahead_pairs_homes(tables: ModuleType) -> None:
    theirs = np.array([[1.0, 10.0, 100.0]])
    assert tables.ahead(1.5 * theirs, theirs) == "+50.0 % (+50.0 to +50.0)"
    assert tables.ahead(theirs, theirs[:, ::-1]).startswith("+0.0 % (-99.0 to +")
