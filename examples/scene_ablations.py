"""Parts of the Scene Memory Transformer, left out or shrunk; 3 to 22 minutes a run.

Four studies of the paper, each drawn with 95 % bootstrap intervals over 46 test homes, 10 episodes in each, means over
seeds: `centres` (Table 4: kind and number of centres, and no factorisation), `capacity` (Fig. 5a: steps kept),
`modalities` (Fig. 5b: one modality left out, or the encoder), `noise` (Fig. 7: slip of the wheels under dead
reckoning, by the encoding of ages). One study is ours: `causal` (number of steps that `smt-causal` keeps, also in
longer episodes). The page says what was trained, and what was changed in a trained agent. Runs are those of
`examples/scene_memory.py`, in the same folder. With all studies a task and seed has 13 runs and 5 first stages. A
stopped command resumes.

    python examples/scene_ablations.py [--tasks coverage] [--studies centres capacity] [--seeds 0 1 2] [--size laptop]
        [--jobs 2] [--out runs/scene_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

from scene_memory import SIZES, make_config

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_gain, format_interval
from memenvs.agents.presets.smt import TASKS
from memenvs.agents.studies.layout_evaluation import (
    LayoutEvaluation,
    evaluate_untrained,
    layout_run,
    layout_scores,
)
from memenvs.agents.studies.smt_ablations import ABLATIONS, Point, smoke_points
from memenvs.agents.studies.study_figures import bootstrap_figure
from memenvs.agents.studies.study_results import has_results
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options


def points_of(study: str, task: str, size: str, smoke: bool) -> list[Point]:
    """Points of a study; few of them in a smoke test."""
    points = ABLATIONS[study].points(make_config(task, size, ABLATIONS[study].method, 0, smoke))
    return smoke_points(points) if smoke else points


def add_study(report: Report, out: Path, task: str, study: str, points: list[Point], seeds: list[int]) -> None:
    """Draw a study and print its table; gains are over the preset as it was trained."""
    columns, score = TASKS[task].columns, TASKS[task].score
    axis = ABLATIONS[study].axis

    def values(point: Point, column: str = score) -> Any:
        return layout_scores([out / f"{task}-{point.run}-{seed}" for seed in seeds], column, point.evaluation.name)

    as_trained = ("smt", LayoutEvaluation.name)
    base = next((each for each in points if (each.run, each.evaluation.name) == as_trained), None)
    rows: dict[tuple[str, str], list[Any]] = {}
    for point in points:
        key = point.run, point.evaluation.name
        if key in rows:  # the same agent, played alike, wherever on the axis
            rows[key][1] = "any"
            continue
        gain = "-" if base is None or point is base else format_gain(values(point), values(base))
        at = [] if point.at is None else [f"{point.at:g}"]
        means = [format_interval(values(point, column)) for column in columns]
        rows[key] = [point.line, *at, point.run, *means, gain]
    title = f"{task.capitalize()}: {ABLATIONS[study].title}, {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    header = ["", *([axis] if axis else []), "run", *columns, f"{score} over smt"]
    add_table(report, title, header, list(rows.values()))
    report.text(ABLATIONS[study].note)
    drawn = bootstrap_figure([(point.line, point.at, values(point)) for point in points], axis, score)
    report.picture(f"{task}_{study}", figure_png(drawn))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["coverage"], choices=list(TASKS), help="(default coverage)")
    parser.add_argument("--studies", nargs="+", default=list(ABLATIONS), choices=list(ABLATIONS), help="(default all)")
    parser.add_argument("--size", choices=SIZES, default="laptop", help="(default laptop); paper-like needs a GPU")
    options = sweep_options(parser, "runs/scene_memory")
    out, size, smoke = options.out, options.size, options.smoke
    if smoke:
        options.tasks = options.tasks[:1]

    seeds: dict[tuple[str, str], list[int]] = {}  # task and study -> seeds of its runs
    plan: dict[tuple[str, str, int], dict[str, Point]] = {}  # task, run and seed -> evaluation -> a point with it
    for task, study, seed in itertools.product(options.tasks, options.studies, options.seeds):
        points = points_of(study, task, size, smoke)
        found = (has_results(out / f"{task}-{each.run}-{seed}", each.evaluation.name) for each in points)
        if options.show and not all(found):
            continue
        seeds.setdefault((task, study), []).append(seed)
        for point in points:
            plan.setdefault((task, point.run, seed), {}).setdefault(point.evaluation.name, point)
    if not plan:
        parser.error(f"--show: no study in {out} is done")

    encoders: dict[Path, SweepRun] = {}
    runs: dict[Path, SweepRun] = {}
    for (task, run, seed), evaluated in plan.items():
        point = next(iter(evaluated.values()))
        both_stages = list(point.both_stages.items())  # changes of both stages need a first stage of their own
        source = out / "-".join([task, "encoder", *([point.name] if both_stages else []), str(seed)])
        encoder = with_overrides(make_config(task, size, "encoder", seed, smoke), both_stages)
        encoders[source] = layout_run(encoder, TASKS[task].rewards)
        overrides = [*both_stages, *point.overrides.items(), ("encoder_from", str(source))]
        config = with_overrides(make_config(task, size, point.method, seed, smoke), overrides)
        evaluations = tuple(each.evaluation for each in evaluated.values())
        runs[out / f"{task}-{run}-{seed}"] = layout_run(config, TASKS[task].rewards, evaluations)
    run_sweep(parser, options, {**encoders, **runs})

    report = Report(f"Scene Memory Transformer, {size}: ablations in 46 test homes", out)
    for task in dict.fromkeys(task for task, _ in seeds):
        config, score = make_config(task, size, "encoder", 0, smoke), TASKS[task].score
        bounds = evaluate_untrained(out / task, config, TASKS[task].rewards, LayoutEvaluation())
        shown = (f"{name} {format_interval(layout_scores([folder], score))}" for name, folder in bounds.items())
        report.text(f"{task.capitalize()}, {score}: {', '.join(shown)}.")
        for study in options.studies:
            if (task, study) in seeds:
                add_study(report, out, task, study, points_of(study, task, size, smoke), seeds[task, study])
    print(f"report: {report.write(out / 'ablations.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
