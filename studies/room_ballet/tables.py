"""Tables and the figure of the study of Room Ballet."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.study import EVALUATION, Rows, Table
from memenvs.retention import STRATEGIES

#: Question, name of the task, memory, (task, method) of the run, evaluation.
QUESTIONS = (
    ("Are places worth more than time?", "Next", "time of each frame", ("next", "t-fifo"), EVALUATION),
    ("", "Next", "time and moves", ("next", "t-fifo+a"), EVALUATION),
    ("", "Next", "time and moves, two more layers", ("next", "t-fifo+a-deep"), EVALUATION),
    ("", "Next", "place of each frame", ("next", "sat-fifo"), EVALUATION),
    ("How to read 1,280 frames?", "ShortStay", "all", ("shortstay-5", "sat-fifo"), EVALUATION),
    ("", "ShortStay", "chunks of time", ("shortstay-5", "sat-fifo-th"), EVALUATION),
    ("", "ShortStay", "chunks of places", ("shortstay-5", "sat-pm-ph"), EVALUATION),
    ("What to keep?", "ABA", "the newest frames", ("aba", "sat-fifo"), EVALUATION),
    ("", "ABA", "the newest frames of each place", ("aba", "sat-pm"), EVALUATION),
    ("Does it last with more rooms?", "MVFO", "8 rooms, as in training", ("mvfo", "rooms"), "rooms_8"),
    ("", "MVFO", "12 rooms", ("mvfo", "rooms"), "rooms_12"),
    ("Who chooses what to keep?", "four tasks", "a learned allocator (AMA)", ("four-tasks", "ama"), EVALUATION),
    ("", "four tasks", "AMA, three steps a visit", ("four-tasks", "ama-small"), EVALUATION),
    ("", "four tasks", "DNC, three steps a visit", ("four-tasks", "dnc-every-small"), EVALUATION),
    ("", "MVFO", "strategy MVFO, three steps a visit", ("mvfo", "mvfo-small"), EVALUATION),
    ("", "MVFO", "DNC, three steps a visit", ("mvfo", "dnc-every-small"), EVALUATION),
)
#: Numbers of rooms in which the memory of `mvfo rooms` is evaluated.
ROOMS = (4, 6, 8, 10, 12)
#: Evaluation -> end of a run's name in the table of all runs.
EVALUATIONS = {EVALUATION: "", **{f"rooms_{rooms}": f", {rooms} rooms" for rooms in ROOMS}}
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16


def make_tables(rows: Rows) -> list[Table]:
    """The questions of the page, all runs, and attention in Opposite Ballet."""
    lines = []
    for question, task, memory, cell, evaluation in QUESTIONS:
        if rows.results(*cell, evaluation):
            ideal = format_percent(rows.means(*cell, "accuracy", evaluation, "ideal")).removesuffix(" +- 0.0")
            right = format_percent(rows.means(*cell, "accuracy", evaluation))
            lines.append([question, task, memory, f"`{' '.join(cell)}`", right, ideal])
    header = ["question", "task", "memory", "run", "right answers, %", "ideal observer, %"]
    runs: list[list[Any]] = []
    for task, method in dict.fromkeys((row["task"], row["method"]) for row in rows):
        minutes = np.mean([60 * curve["hours"][-1] for curve in rows.results(task, method, "curve")])
        for name, rooms in EVALUATIONS.items():
            if rows.results(task, method, name):
                scores = [rows.means(task, method, "accuracy", name, who) for who in ("agent", "ideal")]
                cells = [len(scores[0]), *map(format_percent, scores), f"{minutes:.0f}"]
                runs.append([f"{task} {method}{rooms}", *cells])
    tables = [
        Table("", header, lines),
        Table("All runs", ["run", "seeds", "right answers, %", "ideal observer, %", "minutes"], runs),
    ]
    attention = rows.results("opposite", "sat-fifo", "attention")
    return [*tables, attention_table(np.mean(attention, axis=0))] if attention else tables


def attention_table(attention: np.ndarray) -> Table:
    """Shares of attention in Opposite Ballet; float64, (layers, queried rooms, attended rooms)."""
    rooms = np.arange(attention.shape[1])
    own, opposite = attention[:, rooms, rooms].mean(1), attention[:, rooms, rooms[::-1]].mean(1)
    shares = zip(own, opposite, 1 - own - opposite, strict=True)
    lines = [[layer, *(f"{share:.3f}" for share in row)] for layer, row in enumerate(shares, 1)]
    return Table("Opposite Ballet: attention", ["layer", "queried room", "opposite room", "6 others"], lines)


def draw(rows: Rows) -> Figure | None:
    """Right answers in each task with each retention strategy, and with an allocator."""
    cells = [[(task, strategy, "accuracy") for strategy in STRATEGIES] for task in STRATEGIES]
    for task, line in zip(STRATEGIES, cells, strict=True):
        line.append(("four-tasks", "ama", f"accuracy_{task}"))
    if not all(rows.results(task, method) for line in cells for task, method, _ in line):
        return None
    shares = np.array([[100 * rows.means(*cell).mean() for cell in line] for line in cells])
    figure = Figure(figsize=(8, 5.2), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.imshow(shares, vmin=0, vmax=100, cmap="cividis", aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        colour = "black" if share > 55 else "white"
        axes.text(j, i, f"{share:.0f} %", ha="center", va="center", color=colour, fontsize=FONT + 2)
    names = [strategy.upper() for strategy in STRATEGIES]
    axes.set_xticks(range(len(names) + 1), [*names, "learned\n(AMA)"], fontsize=FONT)
    axes.set_yticks(range(len(names)), names, fontsize=FONT)
    axes.set_xlabel("strategy of the memory: what is evicted first", fontsize=FONT)
    axes.set_ylabel("task", fontsize=FONT)
    return figure
