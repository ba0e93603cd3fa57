"""Tables and the figure of the study of EpisodicQA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.study import Rows, Table
from memenvs.verbalization.language.wordings import KINDS

TASK = "episodic-qa"
"""The only task."""
LENGTHS, LONG_LENGTHS = (1, 2, 3, 5, 10), (20, 50)
"""Episodes of the histories of the tests; up to 5 in training."""
MANY_LENGTH, TIMES = 5, 8
"""Episodes of the histories of "many", and how many times as many these are."""
FOLDS = 10
"""Parts of the test histories, over which paired errors are computed."""
WITHOUT_MEMORY = "clock"
"""Kind of question that needs no memory: left out of means over kinds."""
#: Method -> memory, and the vectors that it keeps.
MEMORIES = {
    "wide-head": ("128 dimensions, head of 384: compressive transformer with a long-term state", 21),
    "wide-head-ct": ("compressive transformer", 20),
    "wide-head-lstm-o1": ("newest LSTM outputs", 21),
    "wide-head-lstm-own": ("the same, long histories join later", 21),
    "wide": ("128 dimensions, head of 192: with a long-term state", 21),
    "wide-ct": ("compressive transformer", 20),
    "wide-lstm-o1": ("newest LSTM outputs", 21),
    "longer": ("64 dimensions, 9,000 batches: with a long-term state", 21),
    "ct-lt": ("64 dimensions, 3,000 batches: with a long-term state", 21),
    "ct": ("compressive transformer", 20),
    "ct-26": ("the same with six more vectors", 26),
    "ml-ct-lt": ("two levels of compression, with a long-term state", 21),
    "lstm-o1": ("newest LSTM outputs", 21),
    "text-only": ("the question alone", 0),
}
#: Method whose answers are in words -> memory.
WORDS = {
    "wide-text": "with a long-term state",
    "wide-text-ct": "compressive transformer",
    "wide-text-lstm-o1": "newest LSTM outputs",
}
#: Methods whose answers to the same questions are compared.
PAIRS = (
    ("wide-head", "wide-head-ct"),
    ("wide-head-ct", "wide-head-lstm-o1"),
    ("wide-head-ct", "wide-head-lstm-own"),
    ("wide", "wide-ct"),
    ("wide-ct", "wide-lstm-o1"),
)
#: Method -> its name in the figure.
LINES = {
    "wide-head": "with a long-term state",
    "wide-head-ct": "compressive transformer",
    "wide-head-lstm-o1": "newest LSTM outputs",
    "text-only": "the question alone",
}
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16


def shares(rows: Rows, method: str, length: int, evaluation: str = "answers") -> np.ndarray:
    """Right answers about histories of a length, mean over kinds; float64, (seeds,)."""
    return np.array([share_of(result, length) for result in rows.results(TASK, method, evaluation)])


def share_of(result: dict[str, Any], length: int, without: int | None = None) -> float:
    """Share of right answers of a run, the mean over kinds but the clock.

    Args:
        result: Result of `count_answers`.
        length: Episodes of the histories.
        without: Fold to leave out; None for none.
    """
    at = result["lengths"].index(length)
    folds = [fold for fold in range(FOLDS) if fold != without]
    right, count = (np.array(result[name][at])[folds].sum(0) for name in ("correct", "questions"))
    used = [k for k, kind in enumerate(KINDS) if count[k] and kind != WITHOUT_MEMORY]
    return float(np.mean(right[used] / count[used]))


def shares_back(rows: Rows, method: str, back: int, evaluation: str = "answers") -> np.ndarray:
    """Right answers about one episode of five, 1 for the newest; float64, (seeds,)."""
    results = rows.results(TASK, method, evaluation)
    pairs = [result["distance"][result["lengths"].index(MANY_LENGTH)].get(str(back), (0, 0)) for result in results]
    return np.array([right / count if count else np.nan for right, count in pairs])


def paired_difference(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> tuple[np.ndarray, float]:
    """Difference of two methods in the same histories, and the standard error of its mean.

    The error is that of the jackknife over folds of the histories, with that over seeds added in squares where there
    are several.

    Args:
        ours: Results of `count_answers` of one method, one per seed.
        theirs: Those of the other, of the same seeds.

    Returns:
        float64, (seeds,), and the error.
    """
    pairs = list(zip(ours, theirs, strict=True))

    def differences(without: int | None) -> np.ndarray:
        return np.array([share_of(a, MANY_LENGTH, without) - share_of(b, MANY_LENGTH, without) for a, b in pairs])

    whole = differences(None)
    folds = np.array([differences(fold).mean() for fold in range(FOLDS)])
    variance = (FOLDS - 1) / FOLDS * ((folds - folds.mean()) ** 2).sum()
    if len(pairs) > 1:
        variance += whole.var(ddof=1) / len(pairs)
    return whole, float(variance**0.5)


def make_tables(rows: Rows) -> list[Table]:
    """Right answers by length, in many histories, their differences, and those in words."""
    methods = rows.methods(TASK)
    ends = ["newest of 5", "oldest of 5"]
    header = ["memory", "vectors", "seeds", *map(episodes, (*LENGTHS, *LONG_LENGTHS)), *ends]
    lines = [
        [
            f"{name} (`{method}`)",
            vectors,
            len(rows.of(TASK, method)),
            *by_length(rows, method),
            *newest_oldest(rows, method),
        ]
        for method, (name, vectors) in MEMORIES.items()
        if method in methods
    ]
    tables = [Table("Right answers, %", header, lines), many_table(rows), difference_table(rows)]
    header = ["memory", "seeds", *map(episodes, LENGTHS), *ends, "precision", "recall"]
    lines = [
        [
            f"{name} (`{method}`)",
            len(rows.of(TASK, method)),
            *by_length(rows, method)[: len(LENGTHS)],
            *newest_oldest(rows, method),
            *facts(rows, method),
        ]
        for method, name in WORDS.items()
        if method in methods
    ]
    tables.append(Table("Right answers in words, %", header, lines))
    return [table for table in tables if table.lines]


def many_table(rows: Rows) -> Table:
    """Right answers in many histories of five, and by episodes back."""
    header = ["memory", "mean", "newest", *map(str, range(2, MANY_LENGTH)), "oldest"]
    lines = [
        [
            f"{name} (`{method}`)",
            percent(shares(rows, method, MANY_LENGTH, "many")),
            *(percent(shares_back(rows, method, back, "many")) for back in range(1, MANY_LENGTH + 1)),
        ]
        for method, (name, _) in MEMORIES.items()
        if method.startswith("wide") and rows.results(TASK, method, "many")
    ]
    return Table(f"Right answers, %, {TIMES} times as many histories of five", header, lines)


def difference_table(rows: Rows) -> Table:
    """Differences in the many histories, where two methods have the same seeds."""
    lines = []
    for ours, theirs in PAIRS:
        results = [rows.results(TASK, method, "many") for method in (ours, theirs)]
        if results[0] and len(results[0]) == len(results[1]):
            means, error = paired_difference(*results)
            oldest = np.subtract(*(shares_back(rows, method, MANY_LENGTH, "many") for method in (ours, theirs)))
            by_seed = (", ".join(f"{100 * value:+.1f}" for value in values) for values in (means, oldest))
            lines.append([f"`{ours}` - `{theirs}`", f"{100 * means.mean():+.1f}", f"{100 * error:.1f}", *by_seed])
    header = ["methods", "mean", "standard error", "by seed", "oldest, by seed"]
    return Table("Differences in these, points", header, lines)


def episodes(length: int) -> str:
    """Name of a column."""
    return f"{length} episode{'s' * (length > 1)}"


def by_length(rows: Rows, method: str) -> list[str]:
    """Right answers by the length of the history."""
    return [
        percent(shares(rows, method, length, name))
        for name, lengths in (("answers", LENGTHS), ("long", LONG_LENGTHS))
        for length in lengths
    ]


def newest_oldest(rows: Rows, method: str) -> list[str]:
    """Right answers about the newest and the oldest of five episodes."""
    return [percent(shares_back(rows, method, back)) for back in (1, MANY_LENGTH)]


def facts(rows: Rows, method: str) -> list[str]:
    """Precision and recall over the facts of all answers."""
    totals = np.array([np.sum(result["facts"], 0) for result in rows.results(TASK, method, "answers")])
    correct, incorrect, expected = totals.T
    return [percent(correct / np.maximum(1, correct + incorrect)), percent(correct / expected)]


def percent(sample: np.ndarray) -> str:
    """Mean in % with its margin over seeds; "-" without runs, or where there was no question."""
    return format_percent(sample) if len(sample) and not np.isnan(sample).all() else "-"


def draw(rows: Rows) -> Figure | None:
    """Right answers by length of the history, and about each of five episodes."""
    if not all(rows.results(TASK, method, "long") for method in LINES):
        return None
    figure = Figure(figsize=(8, 4.6), dpi=100, layout="constrained")
    by_length, by_back = figure.subplots(1, 2, sharey=True)
    lengths, backs = (*LENGTHS, *LONG_LENGTHS), range(1, MANY_LENGTH + 1)
    for k, (method, name) in enumerate(LINES.items()):
        style: dict[str, Any] = {"color": COLOURS[k], "marker": "osD^"[k], "linewidth": 2.5, "markersize": 8}
        if method == "text-only":
            style |= {"color": "#888888", "linestyle": ":"}
        evaluation = "many" if rows.results(TASK, method, "many") else "answers"
        means = [shares(rows, method, n, "answers" if n in LENGTHS else "long").mean() for n in lengths]
        by_length.plot(lengths, 100 * np.array(means), label=name, **style)
        means = [shares_back(rows, method, back, evaluation).mean() for back in backs]
        by_back.plot(backs, 100 * np.array(means), **style)
    by_length.set_xscale("log")
    by_length.set_xticks(lengths, map(str, lengths))
    by_length.minorticks_off()
    by_length.axvline(max(LENGTHS[:-1]), color="#888888", linestyle="--", linewidth=1.5)
    by_length.set_ylim(0)
    by_length.set_xlabel("episodes of the history", fontsize=FONT)
    by_length.set_ylabel("right answers, %", fontsize=FONT)
    by_back.set_xlabel("episodes back, of five", fontsize=FONT)
    by_back.set_xticks(backs)
    for axes in (by_length, by_back):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=FONT - 2)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=FONT - 2, handlelength=3)
    return figure
