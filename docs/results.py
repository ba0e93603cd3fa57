"""Print the tables of the results pages from `results/`, and draw their figures.

Names are those of the pages; `memory` is the table of the README. Without names all tables are printed.

    python docs/results.py [in_context explorers room_ballet visual_match vln episodic_qa thesis_qa memory]
        [--draw docs/images]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS, figure_png
from memenvs.agents.experiments.statistics import format_mean, format_percent, mean_and_margin
from memenvs.agents.presets import folder_name
from memenvs.agents.sat.rl_study import memory_image
from memenvs.agents.studies.in_context_tables import LAST_EPISODE
from memenvs.agents.studies.layout_evaluation import layout_scores
from memenvs.agents.studies.question_answering import mean_over_kinds
from memenvs.agents.studies.study_results import has_results, metric_means, read_result
from memenvs.files import write_file
from memenvs.retention import STRATEGIES
from memenvs.verbalization.language.tables import THESIS_MIX
from memenvs.verbalization.language.wordings import KINDS

RESULTS = Path(__file__).parents[1] / "results"
SEEDS = (0, 1, 2)
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16
MARKERS = "osD^vPX*"

#: Run -> agent.
IN_CONTEXT = {
    "relic": "ReLIC (`relic`)",
    "k1": "ReLIC, one update a rollout (`k1`)",
    "no-iea": "no attention to earlier episodes (`no-iea`)",
    "transformer-se": "memory emptied after each episode (`transformer-se`)",
}
#: Run -> agent, in the order of the table.
EXPLORERS = {
    "random": "random actions",
    "window4": "fixed rule, last four scans (`window4`)",
    "reactive": "no memory (`reactive`)",
    "lstm": "LSTM (`lstm`)",
    "frmqn": "FRMQN (`frmqn`)",
    "sm-pooling": "pooled scenes (`sm-pooling`)",
    "smt-factorized": "SMT through centres (`smt-factorized`)",
    "smt": "Scene Memory Transformer (`smt`)",
    "smt-causal": "our causal SMT (`smt-causal`)",
    "oracle": "oracle, knows the map",
}
#: Task -> metric, its unit.
EXPLORED = {"roaming": ("distance", "m"), "coverage": ("cells", "cells"), "search": ("classes", "classes")}
DECIMALS = {"roaming": 1, "coverage": 1, "search": 2}
AXES = {"roaming": "distance, m", "coverage": "cells entered", "search": "classes found"}
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
#: Method of the study of SAT by reinforcement -> memory.
VISUAL_MATCH = {
    "ama": "an allocator chooses FIFO or MVFO (`ama`)",
    "ama-long": "the same, half as many steps again (`ama-long`)",
    "mvfo": "MVFO (`mvfo`)",
    "fifo": "FIFO (`fifo`)",
    "sat-pm": "a quota for each place (`sat-pm`)",
    "relic": "all steps, ReLIC (`relic`)",
    "lstm": "LSTM (`lstm`)",
    "gru": "GRU (`gru`)",
    "none": "no memory (`none`)",
}
#: Run of one to three legs -> agent.
VLN = {
    "all": "all actions (MTVM)",
    "last3": "last 3 actions",
    "observations": "all views",
    "last3-observations": "last 3 views",
    "recurrent": "one recurrent state",
    "none": "no memory",
    "no-language": "all actions, does not read",
}
LEGS = (1, 2, 3)
#: Memory that answers questions -> its name, and the vectors that it keeps.
EPISODIC_QA = {
    "episodic-qa": ("with a long-term state (`ct-lt`)", "21"),
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
#: Policy played beside the trained agents -> its name.
BASELINES = {"random": "random actions", "oracle": "shortest path"}
#: Runs without seeds: policies that are not trained.
UNTRAINED = ("random", "oracle", "window4", "memoryless")
Rows = Sequence[Sequence[str]]


def folders(study: str, run: str) -> list[Path]:
    """Folders of a run's seeds, those that its study has."""
    found = [RESULTS / study / f"{run}-{seed}" for seed in SEEDS]
    return found if run not in UNTRAINED else []


def print_table(title: str, header: Sequence[str], rows: Rows) -> None:
    """Print a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    print(f"\n{title}")
    for line in lines:
        print(("| " + " | ".join(line) + " |").replace("+-", "±"))


def format_fixed(sample: np.ndarray, decimals: int) -> str:
    """Mean and, of several runs, margin of the 95 % interval with this number of decimals."""
    values = [float(each) for each in mean_and_margin(sample)][: 1 + (len(sample) > 1)]
    return " +- ".join(f"{value:.{decimals}f}" for value in values)


def new_figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of 8 inches and its panels, side by side."""
    figure = Figure(figsize=(8, height), dpi=100, layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, panels, sharey=True)))
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(alpha=0.25)
        each.tick_params(labelsize=FONT - 2)
    return figure, axes


def label_axes(axes: Axes, x: str, y: str = "") -> None:
    """Name the axes of a panel."""
    axes.set_xlabel(x, fontsize=FONT)
    axes.set_ylabel(y, fontsize=FONT)


def plain(name: str) -> str:
    """Name of an agent without its id."""
    return name.split(" (`")[0]


# ---------------------------------------------------------------------- ExtObjNav: learning in context


def in_context_scores(run: str, metric: str, name: str = "evaluation") -> np.ndarray:
    """Metric by episode of the trial, float64, (seeds, 15)."""
    return metric_means(folders("ext_objnav", run), metric, name=name)[:, :LAST_EPISODE]


def in_context() -> None:
    """Success in the first and in the 15th episode in an unseen home."""
    agents = {name: (run, "evaluation") for run, name in IN_CONTEXT.items()}
    agents["ReLIC in ProcTHOR houses"] = ("relic", "procthor")
    rows = []
    for name, (run, evaluation) in agents.items():
        success, spl = (in_context_scores(run, metric, evaluation) for metric in ("success", "spl"))
        cells = [format_percent(each) for each in (success[:, 0], success[:, -1], success[:, -1] - success[:, 0])]
        rows.append([name, *cells, format_fixed(spl[:, 0], 3), format_fixed(spl[:, -1], 3)])
    header = [
        "agent",
        "success in episode 1, %",
        "in episode 15, %",
        "gain, points",
        "SPL in episode 1",
        "in episode 15",
    ]
    print_table("ExtObjNav, homes never seen", header, rows)


def draw_in_context() -> Figure:
    """Success by episode of the trial."""
    figure, (axes,) = new_figure(4.6)
    names = ["ReLIC", "ReLIC, one update a rollout", "no attention to earlier episodes", "memory emptied each episode"]
    episodes = np.arange(1, LAST_EPISODE + 1)
    for k, (run, name) in enumerate(zip(IN_CONTEXT, names, strict=True)):
        mean, margin = mean_and_margin(100 * in_context_scores(run, "success"))
        axes.plot(episodes, mean, color=COLOURS[k], marker=MARKERS[k], linewidth=2.5, markersize=8, label=name)
        axes.fill_between(episodes, mean - margin, mean + margin, color=COLOURS[k], alpha=0.2, linewidth=0)
    label_axes(axes, "episode in the same home", "success, %")
    axes.set_xticks([1, 5, 10, 15])
    axes.set_ylim(50, 88)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=FONT - 2)
    return figure


# ---------------------------------------------------------------------- Roaming, Coverage, Search


def explored(task: str, run: str) -> np.ndarray:
    """Mean score over the test homes, float64, (seeds,)."""
    found = folders("scene_memory", f"{task}-{run}")
    if run in UNTRAINED:
        found = [RESULTS / "scene_memory" / f"{task}-{run}"]
    return layout_scores(found, EXPLORED[task][0]).mean(1)


def format_explored(task: str, run: str) -> str:
    """Score of an agent in a task."""
    return format_fixed(explored(task, run), DECIMALS[task])


def explorers() -> None:
    """Score of each memory in each task, in the test homes."""
    rows = [[name, *(format_explored(task, run) for task in EXPLORED)] for run, name in EXPLORERS.items()]
    print_table("46 test homes", ["agent", "Roaming, m", "Coverage, cells", "Search, classes"], rows)


def draw_explorers() -> Figure:
    """Score of each agent in each task: the mean, and each seed."""
    figure, panels = new_figure(5.0, len(EXPLORED))
    agents = list(EXPLORERS)[1:-1][::-1]
    shown = {
        "window4": "rule, four scans",
        "reactive": "no memory",
        "lstm": "LSTM",
        "frmqn": "FRMQN",
        "sm-pooling": "pooled scenes",
    }
    shown |= {"smt-factorized": "SMT, centres", "smt": "SMT", "smt-causal": "causal SMT"}
    for axes, (task, label) in zip(panels, AXES.items(), strict=True):
        for row, run in enumerate(agents):
            scores = explored(task, run)
            colour = "#888888" if run in ("reactive", "window4") else COLOURS[0 if run.startswith("smt") else 1]
            axes.plot(scores, [row] * len(scores), "o", color=colour, alpha=0.4, markersize=8, markeredgewidth=0)
            axes.plot(scores.mean(), row, "|", color=colour, markersize=24, markeredgewidth=4)
        axes.axvline(explored(task, "window4").mean(), color="#888888", linestyle="--", linewidth=1.5)
        axes.set_title(task.capitalize(), fontsize=FONT)
        label_axes(axes, label)
    panels[0].set_yticks(range(len(agents)), [shown[run] for run in agents], fontsize=FONT)
    return figure


# ---------------------------------------------------------------------- Room Ballet


def ballet(preset: str, metric: str = "accuracy", policy: str = "agent", name: str = "evaluation") -> np.ndarray:
    """Metric of a preset's runs, float64, (seeds,)."""
    found = [RESULTS / "room_ballet" / folder_name(preset, seed) for seed in SEEDS]
    return metric_means(found, metric, policy, name)


def room_ballet() -> None:
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


# ---------------------------------------------------------------------- VisualMatch, TwoRooms


def visual_match() -> None:
    """Success of each memory in both tasks."""
    tasks = {"visual-match": "VisualMatch", "two-rooms": "TwoRooms"}
    rows = []
    for method, name in VISUAL_MATCH.items():
        cells = [name]
        for task in tasks:
            found = [each for each in folders("visual_match", f"{task}-{method}") if has_results(each, "evaluation")]
            if not found:
                cells += ["-", "-", "-"]
                continue
            success = metric_means(found, "success")[:, 0]
            steps = read_result(found[0], "curve")["steps"][-1]
            cells += [format_percent(success), " / ".join(f"{100 * each:.1f}" for each in success), f"{steps:,}"]
        rows.append(cells)
    header = [
        "memory",
        *(f"{task}{what}" for task in tasks.values() for what in (", success %", ", by seed", ", steps")),
    ]
    print_table("A cue before a long stay", header, rows)


def visual_match_curves(task: str, method: str) -> list[dict[str, Any]]:
    """Curves of a method's seeds, those that there are."""
    found = folders("visual_match", f"{task}-{method}")
    return [read_result(each, "curve") for each in found if has_results(each, "curve")]


def draw_visual_match() -> Figure:
    """Success along the training, the choices of the allocator, and what FIFO and MVFO hold."""
    figure = Figure(figsize=(8, 9), dpi=100, layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1.1, 0.8, 1.1])
    success, share = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    shown = {"mvfo": "MVFO", "ama-long": "AMA", "relic": "ReLIC", "fifo": "FIFO", "none": "no memory"}
    for k, (method, name) in enumerate(shown.items()):
        for number, curve in enumerate(visual_match_curves("visual-match", method)):
            steps = np.array(curve["steps"]) / 1e6
            label = name if number == 0 else None
            success.plot(steps, 100 * np.array(curve["success_rate"]), color=COLOURS[k], linewidth=1.5, label=label)
            if "share_mvfo" in curve:
                share.plot(steps, 100 * np.array(curve["share_mvfo"]), color=COLOURS[k], linewidth=1.5)
    for axes in (success, share):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=FONT - 2)
        axes.set_ylim(0, 104)
    success.legend(frameon=False, ncols=3, fontsize=FONT - 2, loc="lower right")
    label_axes(success, "", "success, %")
    label_axes(share, "million steps", "AMA: share\nof MVFO, %")
    contents = read_result(folders("visual_match", "visual-match-mvfo")[0], "memory")
    for column, (strategy, spans) in enumerate(contents.items()):
        axes = figure.add_subplot(grid[2, column])
        axes.imshow(memory_image(spans), origin="lower", interpolation="none", aspect="auto")
        axes.set_title(f"{strategy.upper()} holds", fontsize=FONT)
        axes.tick_params(labelsize=FONT - 2)
        label_axes(axes, "step of the episode", "step in memory" if column == 0 else "")
    return figure


# ---------------------------------------------------------------------- R2R, CVDN


def vln_scores(run: str, legs: int) -> np.ndarray:
    """Success in unseen houses, in %, float64, (seeds,)."""
    return 100 * metric_means(folders("vln_memory", f"{run}-{legs}"), "sr")[:, 0]


def vln() -> None:
    """Success by what the agent remembers, in one to three legs; R2R's graphs; CVDN."""
    rows = []
    for run, name in VLN.items():
        cells = [format_mean(vln_scores(run, legs)) if run != "recurrent" or legs == 1 else "-" for legs in LEGS]
        more = ["-", "-"]
        if run == "all":
            more = [format_percent(task_scores("r2r", "sr")), format_mean(task_scores("cvdn", "gp"))]
        rows.append([name, *cells, *more])
    reader = [format_percent(reader_scores("vln_memory", f"memoryless-{legs}", "sr")) for legs in LEGS]
    rows.append(
        [
            "nothing: a scripted reader (`memoryless`)",
            *reader,
            "-",
            format_mean(reader_scores("vln_tasks", "cvdn-memoryless", "gp")),
        ]
    )
    rows.append(["GRU, learns from rewards (`vln-ppo`)", format_percent(task_scores("ppo", "sr")), "-", "-", "-", "-"])
    for policy, name in BASELINES.items():
        one, real = (format_percent(task_scores(run, "sr", policy)[:1]) for run in ("ppo", "r2r"))
        rows.append([name, one, "-", "-", real, format_mean(task_scores("cvdn", "gp", policy)[:1])])
    header = ["remembers", "success, 1 leg, %", "2 legs, %", "3 legs, %", "R2R graphs, %", "CVDN progress, m"]
    print_table("Houses never seen", header, rows)


def reader_scores(study: str, run: str, metric: str) -> np.ndarray:
    """Metric of the scripted reader in unseen houses, float64, (1,)."""
    return metric_means([RESULTS / study / run], metric)[:, 0]


def task_scores(run: str, metric: str, policy: str = "agent") -> np.ndarray:
    """Metric of a run in unseen houses, float64, (seeds,)."""
    return metric_means(folders("vln_tasks", run), metric, policy)[:, 0]


def draw_vln() -> Figure:
    """Success by legs of the path, for each memory."""
    figure, (axes,) = new_figure(5.4)
    for k, (run, name) in enumerate(VLN.items()):
        if run == "recurrent":
            continue
        mean, margin = zip(*(mean_and_margin(vln_scores(run, legs)) for legs in LEGS), strict=True)
        style: dict[str, Any] = {"linestyle": ":" if run in ("none", "no-language") else "-", "capsize": 4}
        axes.errorbar(
            LEGS, mean, margin, label=name, color=COLOURS[k], marker=MARKERS[k], linewidth=2.5, markersize=9, **style
        )
    reader = [100 * reader_scores("vln_memory", f"memoryless-{legs}", "sr")[0] for legs in LEGS]
    axes.plot(LEGS, reader, color="#555555", linestyle="-.", linewidth=2.5, label="scripted reader, no memory")
    axes.set_xticks(LEGS)
    axes.set_ylim(0, 100)
    label_axes(axes, "legs of the path", "success, %")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=FONT - 2)
    return figure


# ---------------------------------------------------------------------- questions about a robot's life


def question_runs(run: str, name: str = "answers") -> list[Path]:
    """Folders of the seeds of a memory that were evaluated."""
    return [each for each in folders("episodic_qa", run) if has_results(each, name)]


def answered(run: str, length: int) -> np.ndarray:
    """Right answers about histories of a length, float64, (seeds,); empty without a run."""
    name = "answers" if length <= 10 else "long"
    return np.array([mean_over_kinds(each, length, name=name) for each in question_runs(run, name)])


def answered_back(run: str, length: int, back: int) -> np.ndarray:
    """Right answers about the episode that is `back` - 1 before the newest, (seeds,)."""
    found = [read_result(each, "answers") for each in question_runs(run)]
    pairs = [each["distance"][each["lengths"].index(length)][str(back)] for each in found]
    return np.array([right / count for right, count in pairs])


def cell(sample: np.ndarray) -> str:
    """Share in % with its margin, or a dash for none."""
    return format_percent(sample) if len(sample) else "-"


QA_LENGTHS = (1, 2, 3, 5, 10, 20, 50)
"""Episodes of the histories of the tests; up to 5 in training."""


def episodic_qa() -> None:
    """Right answers of each memory by length of the history, and about the oldest of five."""
    rows = []
    for run, (name, vectors) in EPISODIC_QA.items():
        if question_runs(run):
            shares = [cell(answered(run, length)) for length in QA_LENGTHS]
            oldest = [cell(answered_back(run, 5, back)) for back in (1, 5)]
            rows.append([name, vectors, str(len(question_runs(run))), *shares, *oldest])
    header = ["memory", "vectors", "seeds", *(f"{n} episode{'s' * (n > 1)}" for n in QA_LENGTHS)]
    print_table("Right answers, %", [*header, "newest of 5", "oldest of 5"], rows)


def draw_episodic_qa() -> Figure:
    """Right answers by length of the history, and in histories of five by episodes back."""
    figure, (by_length, by_back) = new_figure(5.6, 2)
    shown = {"": "ct-lt", "-ct": "ct", "-ct-26": "ct-26", "-ct-slots": "ct-slots", "-ct-log": "ct-log"}
    shown |= {"-lstm-o1": "lstm-o1", "-lstm-on": "lstm-on", "-text-only": "the question alone"}
    for k, (suffix, name) in enumerate(shown.items()):
        run = f"episodic-qa{suffix}"
        lengths = [length for length in QA_LENGTHS if len(answered(run, length))]
        if not lengths:
            continue
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k], "linewidth": 2.5, "markersize": 8}
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
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=FONT - 3)
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


def thesis_qa() -> None:
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


# ---------------------------------------------------------------------- the README's table


def memory() -> None:
    """Score with memory, without, and of a scripted policy almost without; one row a task."""
    rows = [
        [
            "where objects were in earlier episodes",
            "[ExtObjNav](docs/in_context.md), success in the 15th episode, %",
            format_percent(in_context_scores("relic", "success")[:, -1]) + " (`relic`)",
            format_percent(in_context_scores("no-iea", "success")[:, -1]) + " (`no-iea`)",
            "-",
        ]
    ]
    remembered = {"roaming": "where there is room to move", "coverage": "where it has been"}
    remembered["search"] = "where it has searched"
    for task, (_, unit) in EXPLORED.items():
        with_memory = ", ".join(f"{format_explored(task, run)} (`{run}`)" for run in ("smt-causal", "smt"))
        cells = [with_memory, f"{format_explored(task, 'reactive')} (`reactive`)"]
        rule = f"{format_explored(task, 'window4')} (`window4`)"
        rows.append([remembered[task], f"[{task.capitalize()}](docs/explorers.md), {unit} in 200 steps", *cells, rule])
    cells = [f"{format_percent(ballet(f'ballet-aba:{run}'))} (`{run}`)" for run in ("sat-pm", "sat-fifo")]
    measured = "[Room Ballet](docs/room_ballet.md) ABA, right answers, %"
    rows.append(["dances from before a long stay", measured, *cells, "12.5 (chance)"])
    names = {"last3": "MTVM, last 3 actions", "none": "`no-memory`"}  # run -> MTVM, and its variant
    for legs in (3, 2):
        cells = [f"{format_mean(vln_scores(run, legs))} ({name})" for run, name in names.items()]
        rule = f"{format_percent(reader_scores('vln_memory', f'memoryless-{legs}', 'sr'))} (`memoryless`)"
        measured = f"[R2R](docs/vln.md) of {'three' if legs == 3 else 'two'} legs, success, %"
        rows.append(["how much of a text is done", measured, *cells, rule])
    header = ["what must be remembered", "measured", "with memory", "without", "scripted"]
    print_table("What memory is worth", header, rows)


TABLES: Mapping[str, Callable[[], None]] = {
    "in_context": in_context,
    "explorers": explorers,
    "room_ballet": room_ballet,
    "visual_match": visual_match,
    "vln": vln,
    "episodic_qa": episodic_qa,
    "thesis_qa": thesis_qa,
    "memory": memory,
}
FIGURES: Mapping[str, Callable[[], Figure]] = {
    "in_context": draw_in_context,
    "explorers": draw_explorers,
    "room_ballet": draw_room_ballet,
    "visual_match": draw_visual_match,
    "vln": draw_vln,
    "episodic_qa": draw_episodic_qa,
}


def main() -> int:
    """Print the tables, and draw the figures where a folder is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLES)} (default all)")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="also draw the figures into this folder")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in TABLES]
    if unknown:
        parser.error(f"unknown {unknown[0]!r}; choose from {', '.join(TABLES)}")
    for name in options.names or TABLES:
        TABLES[name]()
        if options.draw is not None and name in FIGURES:
            write_file(options.draw / f"results_{name}.png", figure_png(FIGURES[name]()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
