"""Questions about a robot's life: right answers of each memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.studies.question_answering import MANY, MANY_LENGTH, information, mean_over_kinds
from memenvs.agents.studies.study_results import has_results, read_result
from memenvs.verbalization.language.wordings import KINDS
from result_pages.shared import FONT, MARKERS, folders, label_axes, new_figure, print_table

#: Memory that answers questions -> its name, and the vectors that it keeps.
EPISODIC_QA = {
    "episodic-qa-wide": ("128 dimensions: with a long-term state (`wide`)", "21"),
    "episodic-qa-wide-ct": ("compressive transformer (`wide-ct`)", "20"),
    "episodic-qa-wide-lstm-o1": ("newest LSTM outputs (`wide-lstm-o1`)", "21"),
    "episodic-qa-wide-head": ("the same and a head of 384: with a long-term state (`wide-head`)", "21"),
    "episodic-qa-wide-head-ct": ("compressive transformer (`wide-head-ct`)", "20"),
    "episodic-qa-wide-head-lstm-o1": ("newest LSTM outputs (`wide-head-lstm-o1`)", "21"),
    "episodic-qa-longer": ("9,000 batches: with a long-term state (`longer`)", "21"),
    "episodic-qa-longer-ct": ("compressive transformer (`longer-ct`)", "20"),
    "episodic-qa-longer-ct-26": ("the same, larger (`longer-ct-26`)", "26"),
    "episodic-qa-longer-ct-log": ("merging levels (`longer-ct-log`)", "26"),
    "episodic-qa-longer-lstm-o1": ("newest LSTM outputs (`longer-lstm-o1`)", "21"),
    "episodic-qa": ("3,000 batches: with a long-term state (`ct-lt`)", "21"),
    "episodic-qa-ct": ("compressive transformer (`ct`)", "20"),
    "episodic-qa-ct-26": ("the same, larger (`ct-26`)", "26"),
    "episodic-qa-ct-slots": ("four long-term states (`ct-slots`)", "24"),
    "episodic-qa-ct-log": ("merging levels (`ct-log`)", "26"),
    "episodic-qa-ct-lt-learned": ("learned query (`ct-lt-learned`)", "21"),
    "episodic-qa-ml-ct-lt": ("two levels of compression (`ml-ct-lt`)", "21"),
    "episodic-qa-lstm-o1": ("newest LSTM outputs (`lstm-o1`)", "21"),
    "episodic-qa-lstm-on": ("all LSTM outputs (`lstm-on`)", "all"),
    "episodic-qa-text-only": ("the question alone (`text-only`)", "0"),
}
#: Change to `ct-lt` -> what it is; one seed each, but the first.
EPISODIC_QA_CHANGES = {
    "episodic-qa": "structured answers, all inputs but images",
    "episodic-qa-only-symbols": "symbols alone",
    "episodic-qa-only-signals": "signals of the robot alone",
    "episodic-qa-only-images": "images alone",
    "episodic-qa-only-signals-images": "signals and images",
    "episodic-qa-auto-encoder": "an auto-encoder beside (`auto-encoder`)",
    "episodic-qa-auto-encoder-first": "an auto-encoder before (`auto-encoder-first`)",
    "episodic-qa-auto-encoder-frozen": "the same, memory frozen for a while (`auto-encoder-frozen`)",
    "episodic-qa-bidirectional": "steps of a block see each other (`bidirectional`)",
    "episodic-qa-faithful-layers": "layers of the thesis (`faithful-layers`)",
}
#: Run with answers in words, or with structured ones from the same memory -> what it is.
EPISODIC_QA_WORDS = {
    "episodic-qa-wide": "structured: with a long-term state (`wide`)",
    "episodic-qa-wide-ct": "compressive transformer (`wide-ct`)",
    "episodic-qa-wide-lstm-o1": "newest LSTM outputs (`wide-lstm-o1`)",
    "episodic-qa-wide-text": "words, retrieval: with a long-term state (`wide-text`)",
    "episodic-qa-wide-text-ct": "compressive transformer (`wide-text-ct`)",
    "episodic-qa-wide-text-lstm-o1": "newest LSTM outputs (`wide-text-lstm-o1`)",
    "episodic-qa-longer-text": "words, T5 alone: with a long-term state (`longer-text`)",
    "episodic-qa-longer-text-ct": "compressive transformer (`longer-text-ct`)",
    "episodic-qa-longer-text-lstm-o1": "newest LSTM outputs (`longer-text-lstm-o1`)",
}
#: Share of each kind behind the totals of the thesis, solved from its table: the long-term dialogs. Its three easy
#: kinds, of which only the sum is known, have equal parts.
THESIS_MIX = {
    "clock": 0.09,
    "action": 0.45,
    "problems": 0.09,
    "past_time": 0.12,
    "location": 0.04,
    "object": 0.07,
    "duration": 0.09,
    "summary": 0.04,
    "how_often": 0.01,
}
#: Right answers of the thesis' CT+LT and of its model without memory, %: kind -> for histories of 1, 5 and 10 episodes.
THESIS_QA = {
    "clock": ((99, 99, 97), (92, 92, 85)),
    "problems": ((95, 97, 98), (95, 97, 98)),
    "duration": ((91, 91, 91), (90, 92, 91)),
    "action": ((73, 24, 7), (0, 0, 1)),
    "object": ((73, 42, 25), (11, 11, 11)),
    "location": ((42, 33, 34), (20, 20, 20)),
    "past_time": ((14, 2, 1), (3, 1, 0)),
    "how_often": ((56, 51, 41), (63, 56, 45)),
    "summary": ((75, 46, 37), (23, 25, 27)),
    "total": ((71, 44, 35), (29, 30, 30)),
}
#: Episodes of the histories of the tests; up to 5 in training.
QA_LENGTHS = (1, 2, 3, 5, 10, 20, 50)


def question_runs(run: str, name: str = "answers") -> list[Path]:
    """Folders of the seeds of a memory that were evaluated."""
    return [each for each in folders("episodic_qa", run) if has_results(each, name)]


def answered(run: str, length: int) -> np.ndarray:
    """Right answers about histories of a length, float64, (seeds,); empty without a run."""
    name = "answers" if length <= 10 else "long"
    return np.array([mean_over_kinds(each, length, name=name) for each in question_runs(run, name)])


def answered_back(run: str, length: int, back: int, name: str = "answers") -> np.ndarray:
    """Right answers about the episode that is `back` - 1 before the newest, (seeds,)."""
    found = [read_result(each, name) for each in question_runs(run, name)]
    pairs = [each["distance"][each["lengths"].index(length)][str(back)] for each in found]
    return np.array([right / count for right, count in pairs])


def cell(sample: np.ndarray) -> str:
    """Share in % with its margin, or a dash for none."""
    return format_percent(sample) if len(sample) else "-"


def print_episodic_qa() -> None:
    """Right answers of each memory by length of the history, and about the oldest of five."""
    rows = []
    for run, (name, vectors) in EPISODIC_QA.items():
        if question_runs(run):
            shares = [cell(answered(run, length)) for length in QA_LENGTHS]
            oldest = [cell(answered_back(run, 5, back)) for back in (1, 5)]
            rows.append([name, vectors, str(len(question_runs(run))), *shares, *oldest])
    header = ["memory", "vectors", "seeds", *(f"{n} episode{'s' * (n > 1)}" for n in QA_LENGTHS)]
    print_table("Right answers, %", [*header, "newest of 5", "oldest of 5"], rows)


def print_many_qa() -> None:
    """Right answers in many histories of five, and by episodes back."""
    rows = []
    for run, (name, _) in EPISODIC_QA.items():
        found = question_runs(run, MANY)
        if found:
            means = np.array([mean_over_kinds(each, MANY_LENGTH, name=MANY) for each in found])
            backs = [answered_back(run, MANY_LENGTH, back, MANY) for back in range(1, MANY_LENGTH + 1)]
            rows.append([name, *map(cell, [means, *backs])])
    header = ["memory", "mean", "newest", *map(str, range(2, MANY_LENGTH)), "oldest"]
    print_table("Right answers, %, many histories of five", header, rows)


def print_changes_qa() -> None:
    """Right answers with other inputs, losses and layers."""
    rows = []
    for run, name in EPISODIC_QA_CHANGES.items():
        found = question_runs(run)
        if found:
            shares = [cell(answered(run, length)) for length in QA_LENGTHS[:5]]
            rows.append([name, str(len(found)), *shares, *information(found)])
    header = [f"{n} episode{'s' * (n > 1)}" for n in QA_LENGTHS[:5]]
    print_table("Right answers, %", ["ct-lt with", "seeds", *header, "precision", "recall"], rows)


def print_words_qa() -> None:
    """Right answers in words, and with structured answers from the same memories."""
    rows = []
    for run, name in EPISODIC_QA_WORDS.items():
        found = question_runs(run)
        if found:
            shares = [cell(answered(run, length)) for length in QA_LENGTHS[:5]]
            ends = [cell(answered_back(run, 5, back)) for back in (1, 5)]
            rows.append([name, str(len(found)), *shares, *ends, *information(found)])
    header = [f"{n} episode{'s' * (n > 1)}" for n in QA_LENGTHS[:5]]
    ends = ["newest of 5", "oldest of 5"]
    print_table("Right answers, %", ["answers", "seeds", *header, *ends, "precision", "recall"], rows)


def draw_episodic_qa() -> Figure:
    """Right answers by length of the history, and in histories of five by episodes back."""
    figure, (by_length, by_back) = new_figure(5.6, 2)
    shown = {"": "ct-lt", "-ct": "ct", "-ct-26": "ct-26", "-ct-slots": "ct-slots", "-ct-log": "ct-log"}
    shown |= {"-lstm-o1": "lstm-o1", "-lstm-on": "lstm-on", "-text-only": "the question alone"}
    wide = {f"-wide{each}": f"wide{each}" for each in ("", "-ct", "-lstm-o1")}  # dashed, in their colours
    for suffix, name in (shown | wide).items():
        run = f"episodic-qa{suffix}"
        lengths = [length for length in QA_LENGTHS if len(answered(run, length))]
        if not lengths:
            continue
        k = list(shown).index(suffix.removeprefix("-wide"))
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k], "linewidth": 2.5, "markersize": 8}
        style |= {"linestyle": "--"} if suffix in wide else {}
        if suffix == "-text-only":
            style |= {"color": "#888888", "linestyle": ":"}
        by_length.plot(lengths, [100 * answered(run, each).mean() for each in lengths], label=name, **style)
        back = range(1, 6)
        by_back.plot(back, [100 * answered_back(run, 5, each).mean() for each in back], **style)
    by_length.set_xscale("log")
    by_length.set_xticks(QA_LENGTHS, [str(each) for each in QA_LENGTHS])
    by_length.minorticks_off()
    by_length.axvline(5, color="#888888", linestyle="--", linewidth=1.5)
    by_length.set_ylim(0)
    label_axes(by_length, "episodes of the history", "right answers, %")
    label_axes(by_back, "episodes back, of five")
    by_back.set_xticks(range(1, 6))
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=FONT - 3, handlelength=3)
    return figure


def by_kind(run: str, length: int) -> dict[str, float]:
    """Right answers by kind, and the total by the thesis' mix of kinds; empty without a run."""
    found = [read_result(each, "answers") for each in question_runs(run)]
    if not found:
        return {}
    right, count = (
        np.sum([np.sum(each[name][each["lengths"].index(length)], 0) for each in found], 0)
        for name in ("correct", "questions")
    )
    shares = {kind: right[k] / count[k] for k, kind in enumerate(KINDS) if count[k]}
    total = sum(THESIS_MIX[kind] * share for kind, share in shares.items())
    return {**shares, "total": total / sum(THESIS_MIX[kind] for kind in shares)}


def print_thesis_qa() -> None:
    """Right answers by kind on the thesis' data, beside its numbers; totals by its mix."""
    lengths = (1, 5, 10)
    shares = [
        [by_kind(run, length) for run in ("episodic-qa-thesis-data", "episodic-qa-thesis-data-text-only")]
        for length in lengths
    ]
    rows = []
    for kind, printed in THESIS_QA.items():
        cells = [kind]
        for i, here in enumerate(shares):
            for own, thesis in zip(here, printed, strict=True):
                cells += [f"{100 * own[kind]:.1f}" if kind in own else "-", str(thesis[i])]
        rows.append(cells)
    names = ("ct-lt", "alone")
    header = [f"{name}, {n}: {whose}" for n in lengths for name in names for whose in ("here", "thesis")]
    print_table("Right answers on the data of the thesis, %", ["kind", *header], rows)
