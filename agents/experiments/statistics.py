"""Statistics of several runs: means over seeds, and over layouts with bootstrap intervals."""

from __future__ import annotations

import numpy as np

RESAMPLES = 10_000
"""Resamples of a bootstrap."""


def mean_and_stderr(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over runs.

    Args:
        sample: float, (R, ...) of R >= 1 runs.

    Returns:
        float64, (...) each; the standard error of a single run is 0.
    """
    stderr = sample.std(0, ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else np.zeros(sample.shape[1:])
    return sample.mean(0), stderr


def format_mean(sample: np.ndarray) -> str:
    """Mean and, of several runs, standard error: "97.5 +- 0.3".

    Args:
        sample: float, (R,).
    """
    mean, stderr = mean_and_stderr(sample)
    return f"{mean:.1f}" + f" +- {stderr:.1f}" * (len(sample) > 1)


def format_percent(sample: np.ndarray) -> str:
    """`format_mean` of shares, in %."""
    return format_mean(100 * sample)


def format_digits(sample: np.ndarray) -> str:
    """Mean with three digits and, of several runs, standard error with two: "0.449 +- 0.00071".

    Args:
        sample: float, (R,).
    """
    mean, stderr = mean_and_stderr(sample)
    return f"{mean:.3g}" + f" +- {stderr:.2g}" * (len(sample) > 1)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and layouts with a 95 % bootstrap interval over layouts.

    Args:
        values: float64, (seeds, layouts).

    Returns:
        Mean, lower end, upper end.
    """
    layouts = values.mean(0)
    resampled = layouts[_resampled(len(layouts))].mean(1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(layouts.mean()), float(low), float(high)


def format_interval(values: np.ndarray) -> str:
    """`bootstrap_interval` as text: "54.5 (51.2 to 57.9)"."""
    mean, low, high = bootstrap_interval(values)
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"


def format_gain(values: np.ndarray, baseline: np.ndarray) -> str:
    """Gain over a baseline in % with a 95 % bootstrap interval: "+50.0 % (+41.3 to +60.2)".

    Both are resampled in the same layouts. "-" if the baseline scored nothing, so that there is no ratio.

    Args:
        values: float64, (seeds, layouts).
        baseline: float64, (seeds, layouts); in the same layouts.
    """
    ours = values.mean(0)
    theirs = baseline.mean(0)
    drawn = _resampled(len(ours))
    if not theirs[drawn].mean(1).all():
        return "-"
    gain = 100 * (ours.mean() / theirs.mean() - 1)
    low, high = np.percentile(100 * (ours[drawn].mean(1) / theirs[drawn].mean(1) - 1), [2.5, 97.5])
    return f"{gain:+.1f} % ({low:+.1f} to {high:+.1f})"


def _resampled(count: int) -> np.ndarray:
    """Indices drawn with replacement, int64, (RESAMPLES, count); the same in each call."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
