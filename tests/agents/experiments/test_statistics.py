"""Means over seeds and bootstrap intervals over layouts, against known answers."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.agents.experiments.statistics import (
    bootstrap_interval,
    format_gain,
    format_mean,
    format_percent,
    mean_and_stderr,
)


def test_mean_and_standard_error_over_runs() -> None:
    assert format_percent(np.array([0.7, 0.8, 0.9])) == "80.0 +- 5.8"  # 10 / sqrt(3)
    assert format_mean(np.array([7.25])) == "7.2"
    mean, error = mean_and_stderr(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert mean.tolist() == [2.0, 2.0] and error.tolist() == [1.0, 0.0]


def test_intervals_are_over_layouts_and_not_over_seeds() -> None:
    seeds = np.array([[1.0, 3.0, 5.0, 7.0], [3.0, 1.0, 7.0, 5.0]])  # layouts of 2, 2, 6, 6 on average
    assert bootstrap_interval(seeds) == (4, 2, 6)  # one in 16 resamples has the two worse layouts only
    many = np.random.default_rng(0).normal(10, 2, (1, 400))
    _, low, high = bootstrap_interval(many)
    assert high - low == pytest.approx(2 * 1.96 * many.std() / 20, rel=0.05)


def test_gains_pair_layouts() -> None:
    baseline = np.array([[1.0, 10.0, 100.0]])
    assert format_gain(1.5 * baseline, baseline) == "+50.0 % (+50.0 to +50.0)"
    assert format_gain(baseline, baseline[:, ::-1]).startswith("+0.0 % (-99.0 to +")
    assert format_gain(baseline, 0 * baseline) == "-"
