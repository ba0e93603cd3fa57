"""Statistics of runs: means over seeds, and bootstraps over layouts and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES = 10_000
"""Resamples of a bootstrap over layouts."""
STRATIFIED_RESAMPLES = 2_000
"""Resamples of a bootstrap over the runs of several tasks, each of which calls a function."""
MIN_RUNS = 3
"""Runs from which on an interval is printed. Of two it would reach 12.7 standard errors to each side."""
STUDENT_95 = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's t with 2, 3, ... degrees of freedom."""


def mean_and_margin(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over runs, and half the width of its 95 % interval by Student's t.

    Args:
        sample: float, (R, ...) of R >= 1 runs.

    Returns:
        float64, (...) each; the margin of fewer than `MIN_RUNS` is 0. Of three runs it is 4.3 standard errors.
    """
    count = len(sample)
    if count < MIN_RUNS:
        return sample.mean(0), np.zeros(sample.shape[1:])
    if count - MIN_RUNS < len(STUDENT_95):
        quantile = STUDENT_95[count - MIN_RUNS]
    else:  # the first terms of the expansion at many degrees of freedom, right to .002
        quantile = 1.96 + 2.372 / (count - 1) + 2.823 / (count - 1) ** 2
    return sample.mean(0), quantile * sample.std(0, ddof=1) / np.sqrt(count)


def format_runs(sample: np.ndarray, digits: str, margin_digits: str) -> str:
    """Mean and margin of the 95 % interval, "97.5 +- 1.3".

    Of fewer than `MIN_RUNS` runs each value, "97.1, 97.9".

    Args:
        sample: float, (R,) of R runs.
        digits: Format of a value or mean, such as ".1f".
        margin_digits: Format of the margin.
    """
    if len(sample) < MIN_RUNS:
        return ", ".join(f"{value:z{digits}}" for value in sample)  # "z": no -0.0
    mean, margin = mean_and_margin(sample)
    return f"{mean:z{digits}} +- {margin:{margin_digits}}"


def format_mean(sample: np.ndarray) -> str:
    """Format values, float (R,), with one decimal; see `format_runs`."""
    return format_runs(sample, ".1f", ".1f")


def format_percent(sample: np.ndarray) -> str:
    """Format shares, float (R,), 0 to 1, as `format_mean` does, in %."""
    return format_mean(100 * sample)


def format_digits(sample: np.ndarray) -> str:
    """Format values, float (R,), with three digits, the margin with two: "0.449 +- 0.0031".

    See `format_runs`.
    """
    return format_runs(sample, ".3g", ".2g")


def bootstrap_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and layouts with a 95 % bootstrap interval over layouts.

    Args:
        values: float64, (seeds, layouts).

    Returns:
        Mean, lower end, upper end.
    """
    layouts = values.mean(0)
    drawn = np.random.default_rng(0).integers(len(layouts), size=(RESAMPLES, len(layouts)))  # the same in each call
    resampled = layouts[drawn].mean(1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(layouts.mean()), float(low), float(high)


def seed_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over seeds with its 95 % interval, see `mean_and_margin`.

    Args:
        values: float64, (seeds, ...).

    Returns:
        Mean, lower end, upper end; (...) each. All are the same for fewer than `MIN_RUNS` seeds.
    """
    mean, margin = mean_and_margin(values)
    return mean, mean - margin, mean + margin


def interquartile_mean(values: np.ndarray) -> float:
    """Mean of the middle half of values; the outermost of this half may count in part.

    Args:
        values: float64, (R,).

    Source:
        Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice, 2021.
    """
    count = len(values)
    ranks = np.arange(count)
    weights = np.clip(np.minimum(ranks + 1, 0.75 * count) - np.maximum(ranks, 0.25 * count), 0.0, 1.0)
    return float(np.average(np.sort(values), weights=weights))


def probability_of_improvement(ours: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Probability that a run of ours scores more than one of the others, mean over tasks.

    A tie counts as half.

    Args:
        ours: Scores of the runs, float (R,), in each task.
        others: The same of the others, in the same tasks; they may have other numbers of runs.

    Source:
        Agarwal et al., 2021; in each task it is the U statistic of Mann and Whitney over the number of pairs.
    """
    wins = [np.sign(own[:, None] - other).mean() for own, other in zip(ours, others, strict=True)]
    return float(0.5 + 0.5 * np.mean(wins))


def stratified_interval(
    samples: Sequence[np.ndarray], statistic: Callable[[list[np.ndarray]], float]
) -> tuple[float, float, float]:
    """A statistic of the runs of several tasks, with a 95 % interval.

    The interval is from a bootstrap that resamples the runs of each task by itself.

    Args:
        samples: Scores of the runs, float (R,), in each task.
        statistic: Takes such a list.

    Returns:
        The statistic, lower end, upper end.

    Source:
        Agarwal et al., 2021.
    """
    rng = np.random.default_rng(0)  # the same in each call
    resampled = [
        statistic([rng.choice(sample, len(sample)) for sample in samples]) for _ in range(STRATIFIED_RESAMPLES)
    ]
    low, high = np.percentile(resampled, [2.5, 97.5])
    return statistic(list(samples)), float(low), float(high)


def format_interval(values: np.ndarray) -> str:
    """Format `bootstrap_interval` as text: "54.5 (51.2 to 57.9)".

    Args:
        values: float64, (seeds, layouts).
    """
    mean, low, high = bootstrap_interval(values)
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"
