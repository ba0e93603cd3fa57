"""Means over seeds, and bootstrap intervals over layouts and tasks, against known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, t, trim_mean

from memenvs.agents.experiments.statistics import (
    bootstrap_interval,
    format_digits,
    format_mean,
    format_percent,
    format_runs,
    interquartile_mean,
    mean_and_margin,
    probability_of_improvement,
    seed_interval,
    stratified_interval,
)


def test_mean_and_interval_over_runs() -> None:
    assert format_percent(np.array([0.7, 0.8, 0.9])) == "80.0 +- 24.8"  # 4.303 * 10 / sqrt(3)
    assert format_mean(np.array([7.25])) == "7.2"
    for count in range(3, 40):
        sample = np.random.default_rng(count).normal(size=count)
        expected = t.ppf(0.975, count - 1) * sample.std(ddof=1) / np.sqrt(count)
        assert mean_and_margin(sample)[1] == pytest.approx(expected, rel=0.002), count


def test_of_two_runs_both_values_are_printed_and_no_interval() -> None:
    two = np.array([0.125, 0.999])
    assert [form(two) for form in (format_percent, format_digits)] == ["12.5, 99.9", "0.125, 0.999"]
    assert format_runs(two, ".2f", ".1f") == "0.12, 1.00"
    assert format_digits(two[:1]) == "0.125"
    mean, margin = mean_and_margin(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert mean.tolist() == [2.0, 2.0] and margin.tolist() == [0.0, 0.0]
    assert [bound.tolist() for bound in seed_interval(np.array([[1.0], [3.0]]))] == [[2.0]] * 3


def test_intervals_are_over_layouts_and_not_over_seeds() -> None:
    seeds = np.array([[1.0, 3.0, 5.0, 7.0], [3.0, 1.0, 7.0, 5.0]])  # layouts of 2, 2, 6, 6 on average
    assert bootstrap_interval(seeds) == (4, 2, 6)  # one in 16 resamples has the two worse layouts only
    many = np.random.default_rng(0).normal(10, 2, (1, 400))
    _, low, high = bootstrap_interval(many)
    assert high - low == pytest.approx(2 * 1.96 * many.std() / 20, rel=0.05)


def test_interquartile_means_leave_out_the_outer_quarters() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, -50.0])) == 1.5
    assert interquartile_mean(np.array([3.0])) == 3.0
    assert interquartile_mean(np.array([0.0, 3.0, 9.0])) == pytest.approx((0.25 * 0 + 3 + 0.25 * 9) / 1.5)
    many = np.random.default_rng(0).normal(size=40)
    assert interquartile_mean(many) == pytest.approx(trim_mean(many, 0.25))


def test_intervals_over_seeds_are_of_each_column() -> None:
    values = np.random.default_rng(0).normal([10, 20], [1, 4], (50, 2))
    mean, low, high = seed_interval(values)
    assert mean == pytest.approx(values.mean(0))
    assert high - low == pytest.approx(2 * 1.96 * values.std(0) / np.sqrt(50), rel=0.1)
    assert [bound.tolist() for bound in seed_interval(values[:1])] == [values[0].tolist()] * 3


# Scores of two methods, (runs, tasks), and what google-research/rliable 1.2 makes of them with 50,000 resamples.
OURS = [
    [0.638, 0.56, 0.792, 0.631],
    [0.439, 0.708, 0.991, 0.884],
    [0.389, 0.22, 0.413, 0.612],
    [-0.098, 0.534, 0.226, 0.38],
    [0.437, 0.505, 0.723, 0.913],
]
OTHERS = [
    [0.461, 0.91, 0.3, 0.605],
    [0.771, 0.528, 0.277, 0.223],
    [0.363, 0.566, 0.197, 0.437],
    [0.452, 0.662, 0.564, 0.607],
    [0.304, 0.461, 0.735, 0.948],
]


def test_intervals_over_tasks_are_those_of_rliable() -> None:
    ours, others = (list(np.array(scores).T) for scores in (OURS, OTHERS))
    for samples, expected in ((ours, (0.5477, 0.4461, 0.6502)), (others, (0.5044, 0.4125, 0.6071))):
        interval = stratified_interval(samples, lambda drawn: interquartile_mean(np.concatenate(drawn)))
        assert interval[0] == pytest.approx(expected[0], abs=1e-4)
        assert interval[1:] == pytest.approx(expected[1:], abs=0.01)
    both = stratified_interval(
        [*ours, *others], lambda drawn: probability_of_improvement(drawn[: len(ours)], drawn[len(ours) :])
    )
    assert both == pytest.approx((0.54, 0.36, 0.72), abs=0.02)


def test_probability_of_improvement_is_the_u_statistic() -> None:
    rng = np.random.default_rng(0)
    ours, others = ([rng.integers(5, size=count).astype(float) for count in counts] for counts in ((3, 6), (4, 2)))
    expected = [
        mannwhitneyu(own, other).statistic / (len(own) * len(other)) for own, other in zip(ours, others, strict=True)
    ]
    assert probability_of_improvement(ours, others) == pytest.approx(np.mean(expected))
