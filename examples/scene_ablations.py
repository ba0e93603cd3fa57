"""What the Scene Memory Transformer owes to its parts: centres, reach, senses, and a sense of time where poses drift.

Four studies of the article, each drawn with 95 % bootstrap intervals over the 46 test homes, 10 episodes in each, means over seeds:
`centres` (Table 4: kind and number of centres, and no factorisation), `capacity` (Fig. 5a: how many steps the memory keeps), `modalities` (Fig. 5b:
one sense left out, or the encoder) and `noise` (Fig. 7: slip of the wheels under dead reckoning, by what tells the age of memories); and one of ours,
`causal` (how many steps `smt-causal` keeps, in episodes as long as those that it has learned from and in longer ones). What can be changed in a
trained agent is changed in it: reach, number of centres, slip, length of episodes. Everything else is another run; the page says which. Runs are
those of `examples/scene_memory.py`, in the same folder, so that what was trained there is not trained again; a stopped command goes on where it was.
With all studies a task and seed has 13 runs and 5 first stages, of 3 to 22 minutes each on one core.

    python examples/scene_ablations.py [--tasks coverage] [--studies centres capacity] [--seeds 0 1 2] [--size laptop] [--jobs 2]
        [--out runs/scene_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scene_memory import (
    COLUMNS,
    SIZES,
    Evaluation,
    ahead,
    both_ends,
    interval,
    scores,
    settings,
    shown,
    sweep_run,
)

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.study_results import has_results
from memenvs.agents.experiments.sweep import SweepRun, run_sweep, sweep_options
from memenvs.exploration.config import MODALITIES

Changes = list[tuple[str, Any]]
#: Parts of an episode that the memory reaches back: the article's 50 to 500 of 500 steps, and shorter ones, down to the present step alone.
REACHES = (0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: The same for our causal memory, which is also played in episodes that are so many times as long as those of training: 500 steps for a laptop's 200.
CAUSAL_REACHES, LONGER = (0.025, 0.05, 0.1, 0.2, 0.4, 1.0), 2.5
#: Numbers of centres over that in training; the article's size: 25, 50, 100, 200.
CENTRES = (0.25, 0.5, 1.0, 2.0)
#: Standard deviations of the wheels' rates, rad/s; agents learn with 0.5.
SLIPS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
TIMES = ("none", "sinusoidal", "exponential")


@dataclass(frozen=True, eq=False)
class Row:
    """One point of a study.

    Attributes:
        line: The line that it is on, or what the table calls it.
        at: Where on the line; None in a study without an axis.
        method: Whose preset its run is derived from.
        name: Of the run, after the method; "" for the preset itself.
        changes: What the second stage has otherwise than its preset.
        first: What both stages have otherwise.
        evaluation: How the trained agent is played.
    """

    line: str
    at: float | None
    method: str
    name: str = ""
    changes: tuple[tuple[str, Any], ...] = ()
    first: tuple[tuple[str, Any], ...] = ()
    evaluation: Evaluation = field(default_factory=Evaluation)

    @property
    def run(self) -> str:
        """Method and name, as in the run's folder."""
        return "-".join(filter(None, (self.method, self.name)))


def centres(config: RunConfig) -> list[Row]:
    """Kinds of centres, each with the number of its training; those that are picked from the elements also with other numbers."""
    trained = config.policy["memory_kwargs"]["n_centres"]
    counts = [round(trained * share) for share in CENTRES]
    rows = [Row("all elements", count, "smt") for count in counts]
    for kind, name in (("fps", ""), ("window", "window")):
        changes = () if kind == "fps" else (("policy.memory_kwargs.centres", kind),)
        for count in counts:
            played = Evaluation() if count == trained else Evaluation(f"homes_centres_{count}", {"n_centres": count})
            rows.append(Row(kind, count, "smt-factorized", name, changes, evaluation=played))
    return [*rows, Row("static", trained, "smt-factorized", "static", (("policy.memory_kwargs.centres", "static"),))]


def capacity(config: RunConfig) -> list[Row]:
    """How many steps the memory keeps."""
    rows = []
    for share in REACHES:
        kept = max(1, round(share * config.eval_steps))
        played = Evaluation() if share == 1.0 else Evaluation(f"homes_capacity_{kept}", {"capacity": kept})
        rows.append(Row("smt", kept, "smt", evaluation=played))
    return rows


def causal(config: RunConfig) -> list[Row]:
    """How many steps our causal memory keeps, in episodes as long as those of training and in longer ones."""
    trained, rows = config.eval_steps, []
    for steps in (trained, round(LONGER * trained)):
        for share in CAUSAL_REACHES:
            kept = max(1, round(share * trained))
            played = Evaluation(f"homes_steps_{steps}_capacity_{kept}", {"capacity": kept}, steps=steps)
            rows.append(Row(f"{steps} steps", kept, "smt-causal", evaluation=played))
    return rows


def modalities(config: RunConfig) -> list[Row]:
    """All senses, then each left out in both stages, then no encoder over the memory."""
    known = MODALITIES[config.env_kwargs.get("obs_mode", "frames")]
    rows = [Row("all", None, "smt")]
    for each in known:
        without: tuple[tuple[str, Any], ...] = (("env_kwargs.modalities", [name for name in known if name != each]),)
        if each == "pose":
            without = (*without, ("policy.memory_kwargs.poses", False))
        rows.append(Row(f"no {each}", None, "smt", f"no-{each}", first=without))
    rows.append(
        Row("no previous action", None, "smt", "no-previous-action", first=(("policy.previous_action_dim", 0),))
    )
    return [*rows, Row("no encoder", None, "smt", "no-encoder", (("policy.memory_kwargs.encoder", False),))]


def noise(config: RunConfig) -> list[Row]:
    """Slip of the wheels by what tells the age of memories; poses are those of dead reckoning that notices collisions."""
    rows = []
    for time in TIMES:
        changes = (
            ("env_kwargs.pose_source", "dead_reckoning"),
            ("env_kwargs.collision_known", True),
            ("policy.memory_kwargs.time", time),
        )
        for slip in SLIPS:
            played = Evaluation(f"homes_slip_{slip}", env={"wheel_noise": slip})
            rows.append(Row(time, slip, "smt", f"reckoned-{time}", changes, evaluation=played))
    return rows


#: Study -> its rows, the method whose settings they start from, title, label of the axis, and what was trained for it.
STUDIES: dict[str, tuple[Callable[[RunConfig], list[Row]], str, str, str, str]] = {
    "centres": (
        centres, "smt-factorized", "Kind and number of centres (Table 4)", "centres",
        "Each kind of centres was trained with one number of them; others were set in the trained agent, but for learned (static) ones.",
    ),
    "capacity": (
        capacity, "smt", "Reach of the memory (Fig. 5a)", "steps kept",
        "One run: trained with a memory of the whole episode, which was shortened in the trained agent.",
    ),
    "causal": (
        causal, "smt-causal", "Reach of our causal memory, also in longer episodes", "steps kept",
        "One run: trained with a memory of the whole episode, which was shortened in the trained agent, and keeps as much in longer episodes.",
    ),
    "modalities": (
        modalities, "smt", "One sense left out (Fig. 5b)", "",
        "Every row is a run of its own, with a first stage of its own too, but for the last, which has that of all senses.",
    ),
    "noise": (
        noise, "smt", "Slip of the wheels under dead reckoning (Fig. 7)", "wheel noise (rad/s)",
        "One run for each way to tell time, trained with 0.5 rad/s and poses by dead reckoning that notices collisions; other slips were met in the "
        "test homes only. "
        "An action lasts D = 1 s, so that 0.5 rad/s is 7.0 degrees of heading an action (standard deviation).",
    ),
}  # fmt: skip


def thinned(rows: list[Row]) -> list[Row]:
    """Two rows where there is no axis, else the first and the last of two lines; for a smoke test."""
    if rows[0].at is None:
        return rows[:2]
    lines = list(dict.fromkeys(row.line for row in rows))[:2]
    each = [[row for row in rows if row.line == line] for line in lines]
    return [row for line in each for row in (line[0], line[-1])]


def draw(rows: list[Row], values: list[np.ndarray], axis: str, score: str) -> Figure:
    """Means and intervals: lines over an axis, or one bar for each row where there is none."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    points = np.array([interval(each) for each in values])
    errors = np.abs(points[:, 1:].T - points[:, 0])
    if rows[0].at is None:
        axes.barh([row.line for row in rows][::-1], points[::-1, 0], xerr=errors[:, ::-1], color="#8fa8c8", capsize=3)
        axes.set_xlabel(score)
        return figure
    for line in dict.fromkeys(row.line for row in rows):
        own = [k for k, row in enumerate(rows) if row.line == line]
        at = np.array([rows[k].at for k in own], np.float64)
        axes.errorbar(at, points[own, 0], yerr=errors[:, own], label=line, marker="o", markersize=4, capsize=3)
    axes.set_xlabel(axis)
    axes.set_ylabel(score)
    axes.legend(frameon=False)
    return figure


def encoder_folder(out: Path, task: str, row: Row, seed: int) -> Path:
    """The first stage of a row's run: that of the presets, or one of its own where both stages are changed."""
    return out / "-".join([task, "encoder", *([row.name] if row.first else []), str(seed)])


def add_study(report: Report, out: Path, task: str, study: str, rows: list[Row], seeds: list[int]) -> None:
    """Draws a study and prints its table; compared is with the preset's agent as it was trained, where it is among the rows."""
    _, _, title, axis, note = STUDIES[study]
    columns, score = COLUMNS[task], COLUMNS[task][1]

    def values(row: Row, column: str) -> np.ndarray:
        return scores([out / f"{task}-{row.run}-{seed}" for seed in seeds], column, row.evaluation.name)

    base = next((row for row in rows if row.run == "smt" and row.evaluation.name == Evaluation.name), None)
    header = ["", *([axis] if axis else []), "run", *columns, f"{score} over smt"]
    lines: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        if (row.run, row.evaluation.name) in lines:  # the same agent, played alike, wherever on the axis
            lines[row.run, row.evaluation.name][1] = "any"
            continue
        gain = "-" if base is None or row is base else ahead(values(row, score), values(base, score))
        at = [] if row.at is None else [f"{row.at:g}"]
        means = [shown(values(row, column)) for column in columns]
        lines[row.run, row.evaluation.name] = [row.line, *at, row.run, *means, gain]
    title = f"{task.capitalize()}: {title}, {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    add_table(report, title, header, list(lines.values()))
    report.text(note)
    picture = figure_png(draw(rows, [values(row, score) for row in rows], axis, score))
    report.picture(f"{task}_{study}", picture)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["coverage"], choices=list(COLUMNS), help="(default coverage)")
    parser.add_argument("--studies", nargs="+", default=list(STUDIES), choices=list(STUDIES), help="(default all)")
    parser.add_argument(
        "--size", choices=SIZES, default="laptop", help="of the presets (default laptop); paper-like needs a GPU"
    )
    options = sweep_options(parser, "runs/scene_memory")
    if options.smoke:
        options.tasks = options.tasks[:1]

    def config_of(task: str, stage: str, seed: int) -> RunConfig:
        return settings(f"{task}-{options.size}:{stage}", seed, options.smoke)

    def rows_of(task: str, study: str) -> list[Row]:
        make, method, *_ = STUDIES[study]
        rows = make(config_of(task, method, 0))
        return thinned(rows) if options.smoke else rows

    seeds: dict[tuple[str, str], list[int]] = {}  # task and study -> seeds of its runs
    plan: dict[tuple[str, str, int], list[Row]] = {}  # task, run and seed -> one row of each of its evaluations
    for task, study, seed in itertools.product(options.tasks, options.studies, options.seeds):
        rows = rows_of(task, study)
        found = [has_results(options.out / f"{task}-{row.run}-{seed}", row.evaluation.name) for row in rows]
        if options.show and not all(found):
            continue
        seeds.setdefault((task, study), []).append(seed)
        for row in rows:
            known = plan.setdefault((task, row.run, seed), [])
            if row.evaluation.name not in [each.evaluation.name for each in known]:
                known.append(row)
    if not plan:
        parser.error(f"--show: no study in {options.out} is done")

    encoders: dict[Path, SweepRun] = {}
    runs: dict[Path, SweepRun] = {}
    for (task, run, seed), rows in plan.items():
        source = encoder_folder(options.out, task, rows[0], seed)
        encoders[source] = sweep_run(with_overrides(config_of(task, "encoder", seed), list(rows[0].first)), task)
        changes = [*rows[0].first, *rows[0].changes, ("encoder_from", str(source))]
        config = with_overrides(config_of(task, rows[0].method, seed), changes)
        runs[options.out / f"{task}-{run}-{seed}"] = sweep_run(config, task, tuple(row.evaluation for row in rows))
    run_sweep(parser, options, {**encoders, **runs})
    report = Report(
        f"Scene Memory Transformer, {options.size}: what its parts are worth, in 46 test homes", options.out
    )
    for task in dict.fromkeys(task for task, _ in seeds):
        ends = both_ends(options.out, config_of(task, "encoder", 0), task)
        score = COLUMNS[task][1]
        low, high = (shown(scores([ends[name]], score)) for name in ("random", "oracle"))
        report.text(f"{task.capitalize()}: {score} of a random policy {low}, of the oracle that knows the map {high}.")
        for study in options.studies:
            if (task, study) in seeds:
                add_study(report, options.out, task, study, rows_of(task, study), seeds[task, study])
    print(f"report: {report.write(options.out / 'ablations.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
