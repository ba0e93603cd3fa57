"""Seven memories explore 46 unseen homes (SMT's tables); a run takes 2 to 18 minutes.

For each task and seed it trains the first stage, then every method on its frozen encoder, and plays each in the test
homes, 10 episodes in each, beside a random policy and the oracle that knows the map; with MEMENVS_DATA also in 14
ProcTHOR houses. The first stage, which sees the present only and learns its encoder too, has a row of its own: on a
laptop it gets four times as many updates as a method, at the paper's sizes half as many. Prints a table a task and
world: means over seeds, episodes and homes with 95 % bootstrap intervals over homes, and gains in the same homes. The
return of each episode is checked against its metrics. A stopped command resumes. Minutes of one core for a laptop run:
first stage 7 to 9, reactive 2, lstm 3, sm-pooling 3, frmqn 6 to 7, smt 11 to 12, smt-4 (four scans) 2, smt-factorized
18, smt-causal 7 to 8.

The start of FRMQN, pooling and `smt-causal` (initial weights, ReLU and ages) is that of the presets. With
--choose-starts each start is trained, and a method has the one that has the best mean score in the 39 validation homes.
No test home is used for that.

    python examples/scene_memory.py [--tasks coverage] [--methods reactive smt smt-ppo] [--seeds 0 1 2] [--size laptop]
        [--choose-starts] [--jobs 2] [--out runs/scene_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import Report, add_table
from memenvs.agents.experiments.statistics import format_gain, format_interval
from memenvs.agents.presets import find_preset, preset_descriptions
from memenvs.agents.presets.smt import METHODS, STARTS, TASKS, smoke_config
from memenvs.agents.studies.layout_evaluation import (
    LayoutEvaluation,
    evaluate_untrained,
    layout_run,
    layout_scores,
)
from memenvs.agents.studies.study_results import has_results
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options

SIZES = ("laptop", "paper-like")
WORLDS = {
    "46 test homes of the SUNCG style": LayoutEvaluation(),
    "14 ProcTHOR houses": LayoutEvaluation("procthor", env={"world": "procthor", "split": "all"}, trials=140),
}
#: Where a start is chosen.
VALIDATION = LayoutEvaluation("validation_homes", env={"split": "validation"}, trials=390)
FIRST = "encoder"  # the first stage
#: By default all methods run, and smt with a memory of four scans, which is there in laptop size alone.
DEFAULT = (*METHODS, "smt-4")
#: Runs only if it is named: smt with PPO, in Coverage and laptop size alone.
NAMED = "smt-ppo"


def make_config(task: str, size: str, stage: str, seed: int, smoke: bool) -> RunConfig:
    """The preset of the first stage or of a method; shortened to seconds if `smoke`."""
    config = replace(find_preset(f"{task}-{size}:{stage}"), seed=seed)
    return smoke_config(config) if smoke else config


def add_world(report: Report, task: str, world: str, rows: dict[str, list[Path]]) -> None:
    """Add the table of a task in one world: a row a method."""
    name, score, columns = WORLDS[world].name, TASKS[task].score, TASKS[task].columns
    scores = {method: layout_scores(folders, score, name) for method, folders in rows.items()}
    lines = []
    for method, folders in rows.items():
        pairs = [(method, "random"), (method, "reactive"), ("smt", method)]
        lines.append(
            [
                method,
                *(format_interval(layout_scores(folders, column, name)) for column in columns),
                " / ".join(f"{seed.mean():.3g}" for seed in scores[method]),
                *(format_gain(scores[a], scores[b]) if a != b and {a, b} <= set(scores) else "-" for a, b in pairs),
            ]
        )
    header = ["method", *columns, f"{score} by seed", "over random", "over reactive", "smt over it"]
    add_table(report, f"{task.capitalize()}, {world}", header, lines)


def best_start(task: str, folders: dict[str, list[Path]]) -> tuple[str, list[list[object]]]:
    """The start of a method that is best in the validation homes.

    Args:
        task: Name of the task.
        folders: Start -> folders of its runs, one a seed.

    Returns:
        The start, and a row of the table for each one.
    """
    scores = {start: layout_scores(each, TASKS[task].score, VALIDATION.name) for start, each in folders.items()}
    best = max(scores, key=lambda start: float(scores[start].mean()))
    what = f"{task}, {TASKS[task].score}"
    rows = [
        [what, start, len(score), format_interval(score), "yes" if start == best else "-"]
        for start, score in scores.items()
    ]
    return best, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS), help="(default all)")
    parser.add_argument(
        "--methods", nargs="+", default=list(DEFAULT), choices=[*DEFAULT, NAMED], help=f"(default all but {NAMED})"
    )
    parser.add_argument(
        "--choose-starts", action="store_true", help=f"choose the start of {', '.join(STARTS)} in validation homes"
    )
    parser.add_argument("--size", choices=SIZES, default="laptop", help="(default laptop); paper-like needs a GPU")
    options = sweep_options(parser, "runs/scene_memory")
    if options.smoke:
        options.tasks, options.methods = options.tasks[:1], ["reactive", "frmqn" if options.choose_starts else "smt"]
    worlds = {world: each for world, each in WORLDS.items() if not each.env or os.environ.get("MEMENVS_DATA")}
    if len(worlds) < len(WORLDS) and not options.show:
        print("MEMENVS_DATA is not set: no table of the ProcTHOR houses")
    evaluations = (LayoutEvaluation(),) if options.show else tuple(worlds.values())  # the test homes are enough to show

    def folder_of(task: str, stage: str, seed: int) -> Path:
        return options.out / f"{task}-{stage}-{seed}"

    def runs_of(task: str, stages: Iterable[str], evaluations: tuple[LayoutEvaluation, ...]) -> dict[Path, SweepRun]:
        """The runs of stages that the size has."""
        runs: dict[Path, SweepRun] = {}
        for seed, stage in itertools.product(options.seeds, stages):
            if f"{task}-{options.size}:{stage}" not in preset_descriptions():
                continue
            config = make_config(task, options.size, stage, seed, options.smoke)
            if stage != FIRST:
                config = replace(config, encoder_from=str(folder_of(task, FIRST, seed)))
            runs[folder_of(task, stage, seed)] = layout_run(config, TASKS[task].rewards, evaluations)
        return runs

    report = Report(f"Scene Memory Transformer, {options.size}", options.out)
    stage_of = {(task, method): method for task in options.tasks for method in options.methods}  # its start
    if options.choose_starts:
        starts = {method: [method, *STARTS[method]] for method in options.methods if method in STARTS}
        runs: dict[Path, SweepRun] = {}
        for task in options.tasks:
            runs |= runs_of(task, [FIRST], ())
            runs |= runs_of(task, itertools.chain(*starts.values()), (VALIDATION,))
        played = run_sweep(parser, options, runs)
        rows: list[list[object]] = []
        for task, (method, names) in itertools.product(options.tasks, starts.items()):
            folders = {name: [folder_of(task, name, seed) for seed in options.seeds] for name in names}
            there = {name: each for name, each in folders.items() if set(each) <= set(played)}
            if there:  # with --show a task may have none
                stage_of[task, method], of_method = best_start(task, there)
                rows += of_method
        add_table(report, "Starts in the 39 validation homes", ["task, score", "start", "seeds", "mean", "taken"], rows)
    runs = {}
    for task in options.tasks:
        runs |= runs_of(task, [FIRST], evaluations)
        runs |= runs_of(task, [stage_of[task, method] for method in options.methods], evaluations)
    done = run_sweep(parser, options, runs)

    for task, (world, evaluation) in itertools.product(options.tasks, WORLDS.items()):
        agents: dict[str, list[Path]] = {}
        for stage, seed in itertools.product((FIRST, *options.methods), options.seeds):
            folder = folder_of(task, stage_of.get((task, stage), stage), seed)
            if folder in done and has_results(folder, evaluation.name):
                agents.setdefault("first stage" if stage == FIRST else stage, []).append(folder)
        if agents:
            config = make_config(task, options.size, FIRST, 0, options.smoke)
            bounds = evaluate_untrained(options.out / task, config, TASKS[task].rewards, evaluation)
            rules = {name: [folder] for name, folder in bounds.items() if name != "oracle"}
            add_world(report, task, world, {**rules, **agents, "oracle": [bounds["oracle"]]})
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
