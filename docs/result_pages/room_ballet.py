"""Room Ballet: right answers of each memory beside those of the ideal observer."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.presets import folder_name
from memenvs.agents.studies.study_results import metric_means
from memenvs.retention import STRATEGIES
from result_pages.shared import FONT, RESULTS, SEEDS, label_axes, new_figure, print_table

#: Question, environment, memory, preset, metric, evaluation.
ROOM_BALLET = (
    ("Are places worth more than time?", "Next", "time of each frame", "ballet-next:t-fifo", "accuracy", "evaluation"),
    ("", "Next", "time and moves", "ballet-next:t-fifo+a", "accuracy", "evaluation"),
    ("", "Next", "place of each frame", "ballet-next:sat-fifo", "accuracy", "evaluation"),
    ("How to read 1,280 frames?", "ShortStay", "all", "ballet-shortstay:5-sat-fifo", "accuracy", "evaluation"),
    ("", "ShortStay", "chunks of time", "ballet-shortstay:5-sat-fifo-th", "accuracy", "evaluation"),
    ("", "ShortStay", "chunks of places", "ballet-shortstay:5-sat-pm-ph", "accuracy", "evaluation"),
    ("What to keep?", "ABA", "the newest frames", "ballet-aba:sat-fifo", "accuracy", "evaluation"),
    ("", "ABA", "the newest frames of each place", "ballet-aba:sat-pm", "accuracy", "evaluation"),
    ("Does it last with more rooms?", "MVFO", "8 rooms, as in training", "ballet-mvfo:rooms", "accuracy", "rooms_8"),
    ("", "MVFO", "12 rooms", "ballet-mvfo:rooms", "accuracy", "rooms_12"),
    ("Who chooses what to keep?", "four tasks", "a learned allocator (AMA)", "ballet-ama", "accuracy", "evaluation"),
    ("", "four tasks", "AMA, three steps a visit", "ballet-ama:small", "accuracy", "evaluation"),
    ("", "four tasks", "DNC, three steps a visit", "ballet-dnc:every-small", "accuracy", "evaluation"),
)


def ballet(preset: str, metric: str = "accuracy", policy: str = "agent", name: str = "evaluation") -> np.ndarray:
    """Metric of a preset's runs, float64, (seeds,)."""
    found = [RESULTS / "room_ballet" / folder_name(preset, seed) for seed in SEEDS]
    return metric_means(found, metric, policy, name)


def print_room_ballet() -> None:
    """Right answers of each memory beside those of the ideal observer."""
    rows = []
    for question, task, memory, preset, metric, name in ROOM_BALLET:
        ideal = format_percent(ballet(preset, metric, "ideal", name))
        cells = [format_percent(ballet(preset, metric, name=name)), ideal.removesuffix(" +- 0.0")]
        rows.append([question, task, memory, f"`{preset}`", *cells])
    header = ["question", "task", "memory", "preset", "right answers, %", "ideal observer, %"]
    print_table("Room Ballet", header, rows)


def draw_room_ballet() -> Figure:
    """Right answers in each task with each retention strategy."""
    shares = np.array([[ballet(f"ballet-{t}" + f":{s}" * (t != s)).mean() for s in STRATEGIES] for t in STRATEGIES])
    ama = np.array([[ballet("ballet-ama", f"accuracy_{task}").mean()] for task in STRATEGIES])
    shares = 100 * np.hstack([shares, ama])
    figure, (axes,) = new_figure(5.2)
    axes.grid(False)
    axes.imshow(shares, vmin=0, vmax=100, cmap="cividis", aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        colour = "black" if share > 55 else "white"
        axes.text(j, i, f"{share:.0f} %", ha="center", va="center", color=colour, fontsize=FONT + 2)
    names = [strategy.upper() for strategy in STRATEGIES]
    axes.set_xticks(range(len(names) + 1), [*names, "learned\n(AMA)"], fontsize=FONT)
    axes.set_yticks(range(len(names)), names, fontsize=FONT)
    label_axes(axes, "strategy of the memory: what is evicted first", "task")
    return figure
