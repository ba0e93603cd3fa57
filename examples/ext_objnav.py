"""ReLIC and its baselines remember homes they have never seen; an hour a run on one core.

Trains `extobjnav-small` (ReLIC) and variants, and plays each in test homes, also as it was earlier in training: success
and SPL by episode of the trial. ReLIC is also played in trials of 8 T (T: steps of a rollout), with one goal a trial,
after demonstrations of the oracle, and, with MEMENVS_DATA, in real houses. `--agents rgb` is ReLIC from images with
1/20 of the steps.

    python examples/ext_objnav.py [--agents relic no-iea] [--seeds 0 1 2] [--jobs 2] [--out runs/x] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare, evaluate_run, trained_policy
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import PRESETS, find_preset
from memenvs.agents.studies import in_context_tables as tables
from memenvs.agents.studies.study_results import has_results, write_result
from memenvs.agents.studies.sweep import SweepRun, group_by_name, run_sweep, sweep_options
from memenvs.files import numbered_files

PRESET = "extobjnav-small"
TRIALS = 2048  # the gain of a single run has a standard error of about one point
FEW_TRIALS = 256
DEMONSTRATIONS = (1, 2, 4, 8, 16)
FROM_IMAGES = ("rgb", "pictures", "pictures-no-iea")
TITLES = {"fixed_goal": "relic, one goal a trial", "long": "relic, trials of 8 T", "procthor": "relic, real houses"}


def make_config(agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset of an agent with a seed; shortened to seconds if `smoke`."""
    preset = find_preset(PRESET if agent == "relic" else f"{PRESET}:{agent}")
    config = replace(preset, seed=seed, eval_trials=preset.eval_trials if agent == "rgb" else TRIALS)
    small = {"n_envs": 4, "total_steps": 512, "eval_steps": 130, "eval_trials": 4}
    return replace(config, **small, learner=replace(config.learner, n_steps=64)) if smoke else config


def evaluations(config: RunConfig, agent: str, smoke: bool) -> dict[str, dict[str, Any]]:
    """List the evaluations of the agent alone, those beside random and oracle left out.

    Returns:
        Name -> arguments of `evaluate_run` that it changes.
    """
    if agent in FROM_IMAGES:
        return {"evaluation": {}}  # images of random and oracle would cost as much as the agent's
    if agent != "relic":
        return {}
    many, few = (2, 2) if smoke else (512, FEW_TRIALS)
    changes: dict[str, dict[str, Any]] = {
        "fixed_goal": {"eval_kwargs": {**config.eval_kwargs, "fixed_goal_per_trial": True}, "eval_trials": few},
        "long": {"eval_steps": 8 * config.learner.n_steps, "eval_trials": few},
    }
    for count in DEMONSTRATIONS:
        changes[f"demonstrations_{count}"] = {"demonstrations": count, "eval_trials": many, "eval_steps": 64}
    if os.environ.get("MEMENVS_DATA"):
        real = {"split": "all", "trial_steps": None, "world": "procthor", "rooms": None}
        changes["procthor"] = {"eval_kwargs": real, "eval_trials": few}
    return changes


def train_and_evaluate(run: RunDirectory, quiet: bool, agent: str, smoke: bool) -> None:
    """Train one run to its end, evaluate it and write its report."""
    train_run(run, quiet=quiet)
    seed = 1 + run.config.seed  # its hash gives each run other trials, so that errors over seeds contain them
    changes = evaluations(run.config, agent, smoke)
    for file in numbered_files(run.path, "checkpoint_*.zip").values() if agent != "rgb" else []:
        policy = trained_policy(run, seed, file.name)
        changes[file.stem] = {"policy": policy, "eval_trials": 2 if smoke else FEW_TRIALS}
    if "evaluation" not in changes and not has_results(run.path, "evaluation"):
        evaluate_and_compare(run, seed, quiet=quiet)
    for name, changed in changes.items():
        if not has_results(run.path, name):
            results = evaluate_run(run, seed=seed, quiet=quiet, **changed)
            write_result(run.path, name, {"agent": results.to_json()})
    write_report([run], run.path)


def write_results(out: Path, runs: dict[str, list[Path]]) -> Path:
    """Write the page with all tables and curves, and print the tables."""
    report = Report("ReLIC and its baselines in small homes", out)
    earlier = [
        row for agent, folders in runs.items() for row in tables.milestone_rows(agent, folders, tables.LAST_EPISODE)
    ]
    runs = {agent: folders for agent, folders in runs.items() if tables.all_have_results(folders, "evaluation")}
    rows = [tables.gain_row(agent, folders, "evaluation", tables.LAST_EPISODE) for agent, folders in runs.items()]
    if relic := runs.get("relic", []):
        for name, title in TITLES.items():
            if tables.all_have_results(relic, name):
                rows.append(tables.gain_row(title, relic, name, None if name == "long" else tables.LAST_EPISODE))
    if rows:
        tables.add_gain_table(report, "First and last episode of a trial in homes that were not trained in", rows)
        for metric in ("success", "spl"):
            tables.add_curves(report, f"in_context_{metric}", runs, metric)
    if earlier:
        tables.add_gain_table(report, "The same, earlier in training", earlier)
    if relic:
        tables.add_curves(report, "long", {"relic": relic}, "success", "long")
        tables.add_episode_range_table(report, "Trials of 8 T, part by part", relic, "long")
        tables.add_demonstration_table(report, relic, DEMONSTRATIONS, "long", "trials of 8 T")
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default, choices = ["relic", "no-iea", "transformer-se", "k1"], ["relic", *PRESETS[PRESET].variants]
    parser.add_argument("--agents", nargs="+", default=default, choices=choices, help="(default %(default)s)")
    options = sweep_options(parser, "runs/ext_objnav")
    if "rgb" in options.agents and len(options.agents) > 1:
        parser.error("--agents rgb: has other observations and steps than the others and needs a table of its own")
    if options.smoke:
        options.agents = options.agents[:1]
    runs = {}
    for seed, agent in itertools.product(options.seeds, options.agents):
        config = make_config(agent, seed, options.smoke)
        work = partial(train_and_evaluate, agent=agent, smoke=options.smoke)
        names = ("evaluation", *evaluations(config, agent, options.smoke))
        folder = options.out / f"{agent}-{seed}"
        if options.show and not has_results(folder, *names):  # a run that was stopped shows its milestones
            names = tuple(tables.milestones(folder))
        runs[folder] = SweepRun(config, work, names)
    found = group_by_name(run_sweep(parser, options, runs))
    print(f"report: {write_results(options.out, found).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
