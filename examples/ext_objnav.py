"""ReLIC's claims in small homes: what agents remember of a home they have never seen, over three seeds.

Trains the presets `extobjnav-small` (ReLIC) and its baselines and ablations, and plays each in validation homes: success and SPL by episode of
the trial. ReLIC is also played as it was earlier in its training, in trials eight times as long as those it learned from, with one goal for a
whole trial, after demonstrations of the oracle, and, if `MEMENVS_DATA` is set, in the real four-room ProcTHOR houses. `--agents rgb`, in a folder
of its own, is ReLIC from pictures, for a twentieth of the steps. A stopped command goes on where it was.

    python examples/ext_objnav.py [--out runs/ext_objnav] [--agents relic no-iea] [--seeds 0 1 2] [--jobs 2] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare, evaluate_run, trained_policy
from memenvs.agents.experiments.report import Report, add_table, figure_png, in_context_figure, write_report
from memenvs.agents.experiments.study_results import has_results, metric_means, result_names, write_result
from memenvs.agents.experiments.sweep import SweepRun, over_seeds, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import PRESETS, find_preset

PRESET = "extobjnav-small"
AGENTS = ["relic", *PRESETS[PRESET].variants]
EPISODES = 15
"""Episodes that every evaluation trial has; the last of them is compared with the first."""
TRIALS = 2048
"""Evaluation trials of a run for the first table: a gain of a single run has a standard error of about one point with so many."""
DEMONSTRATIONS = (1, 2, 4, 8, 16)
REAL_HOUSES = {"split": "all", "trial_steps": None, "world": "procthor", "rooms": None}


def settings(agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset of an agent with a seed; for seconds only if it is a smoke test."""
    preset = find_preset(PRESET if agent == "relic" else f"{PRESET}:{agent}")
    config = replace(preset, seed=seed, eval_trials=preset.eval_trials if agent == "rgb" else TRIALS)
    if not smoke:
        return config
    sizes = replace(config.learner, n_steps=64)
    return replace(config, n_envs=4, total_steps=512, eval_steps=130, eval_trials=4, learner=sizes)


def train_and_evaluate(run: RunDirectory, quiet: bool, agent: str, smoke: bool) -> None:
    """One run, to its end and with all its evaluations."""
    folder, config = run.path, run.config
    many, few = (2, 2) if smoke else (512, 256)
    train_run(run, quiet=quiet)
    # the evaluation's own seed: other layouts and goals for each run, so that errors over seeds hold their share
    own = 1 + config.seed

    def once(name: str, **changes: Any) -> None:
        if not has_results(folder, name):
            write_result(folder, name, {"agent": evaluate_run(run, seed=own, quiet=quiet, **changes).to_json()})

    if agent == "rgb":  # random and oracle do not look, and their pictures cost as much as the agent's
        once("evaluation")
    elif not has_results(folder, "evaluation"):
        evaluate_and_compare(run, own, quiet=quiet)
    if agent == "relic":
        for file in sorted(folder.glob("checkpoint_*.zip")):
            once(file.stem, policy=trained_policy(run, own, file.name), eval_trials=few)
        once("fixed_goal", eval_kwargs={**config.eval_kwargs, "fixed_goal_per_trial": True}, eval_trials=few)
        once("long", eval_steps=8 * config.learner.n_steps, eval_trials=few)
        for count in DEMONSTRATIONS:
            once(f"demonstrations_{count}", demonstrations=count, eval_trials=many, eval_steps=64)
        if os.environ.get("MEMENVS_DATA"):
            once("procthor", eval_kwargs=REAL_HOUSES, eval_trials=few)
    write_report([run], folder)


def files_of(agent: str) -> tuple[str, ...]:
    """All evaluations of a run, but for those of its milestones."""
    real = ["procthor"] if os.environ.get("MEMENVS_DATA") else []
    more = ["fixed_goal", "long", *(f"demonstrations_{count}" for count in DEMONSTRATIONS), *real]
    return ("evaluation", *(more if agent == "relic" else []))


def milestones(folder: Path) -> list[str]:
    """The checkpoints along the way that were evaluated, in order."""
    names = [name for name in result_names(folder) if name.startswith("checkpoint_")]
    return sorted(names, key=lambda name: int(name.split("_")[1]))


def values(folders: list[Path], name: str, metric: str) -> np.ndarray:
    """A metric by episode of every run's agent, float64, (runs, E); only the episodes that all have."""
    return metric_means(folders, metric, name=name)


def shown(sample: np.ndarray, scale: float = 1.0) -> str:
    """Mean and, of several seeds, standard error in words."""
    mean, spread = over_seeds(scale * sample)
    return f"{mean:.3g} +- {spread:.2g}" if len(sample) > 1 else f"{mean:.3g}"


def gain_row(title: str, folders: list[Path], name: str, last: int = EPISODES) -> list[Any]:
    """A line of the table of gains: success in %, and SPL in the first and the last episode."""
    success, spl = values(folders, name, "success"), values(folders, name, "spl")
    end = min(last, success.shape[1]) - 1
    with np.errstate(invalid="ignore", divide="ignore"):  # an agent that never finds anything has no ratio
        ratio = spl[:, end] / spl[:, 0]
    return [
        title,
        len(folders),
        end + 1,
        shown(success[:, 0], 100),
        shown(success[:, end], 100),
        shown(success[:, end] - success[:, 0], 100),
        shown(spl[:, 0]),
        shown(spl[:, end]),
        shown(ratio),
    ]


def part_rows(folders: list[Path]) -> list[list[Any]]:
    """Lines of the table of long trials: success in % and SPL in episodes 1, 2, 3 to 4, 5 to 8 and so on."""
    success, spl = values(folders, "long", "success"), values(folders, "long", "spl")
    rows, begin, end = [], 0, 1
    while end <= success.shape[1]:
        title = str(end) if end == begin + 1 else f"{begin + 1} to {end}"
        rows.append([title, shown(success[:, begin:end].mean(1), 100), shown(spl[:, begin:end].mean(1))])
        begin, end = end, 2 * end
    return rows


def write_results(out: Path, runs: dict[str, list[Path]]) -> Path:
    """Tables and curves over all seeds: `report.html`; prints the tables."""
    report = Report("ReLIC and its baselines in small homes", out)
    header = ["agent", "seeds", "episode", "success 1st %", "last %", "gain", "SPL 1st", "last", "ratio"]
    rows = [gain_row(agent, folders, "evaluation") for agent, folders in runs.items()]
    relic = runs.get("relic", [])
    if relic:
        for name in milestones(relic[0]):
            if all(has_results(folder, name) for folder in relic):
                rows.append(gain_row(f"relic after {int(name.split('_')[1]):,} steps", relic, name))
        rows.append(gain_row("relic, one goal a trial", relic, "fixed_goal"))
        rows.append(gain_row("relic, trials of 8 T", relic, "long", last=sys.maxsize))
        if all(has_results(folder, "procthor") for folder in relic):
            rows.append(gain_row("relic, real houses", relic, "procthor"))
    add_table(report, "First and last episode of a trial in homes that were not trained in", header, rows)
    for metric in ("success", "spl"):
        curves = {}
        for agent, folders in runs.items():
            mean, spread = over_seeds(values(folders, "evaluation", metric))
            curves[agent] = {"mean": mean.tolist(), "stderr": spread.tolist()}
        report.picture(f"in_context_{metric}", figure_png(in_context_figure(curves, metric)), metric)
    if relic:
        mean, spread = over_seeds(values(relic, "long", "success"))
        curve = {"relic": {"mean": mean.tolist(), "stderr": spread.tolist()}}
        report.picture("long", figure_png(in_context_figure(curve, "success")), "trials of 8 T")
        add_table(report, "Trials of 8 T, part by part", ["episodes", "success %", "SPL"], part_rows(relic))
        alone, long = values(relic, "evaluation", "success"), values(relic, "long", "success")
        rows = [[0, shown(alone[:, 0], 100), shown(alone[:, 0], 100)]]
        for count in DEMONSTRATIONS:
            after = values(relic, f"demonstrations_{count}", "success")[:, 0]
            own = "-"
            if count < alone.shape[1]:
                own = shown(alone[:, count], 100)
            elif count < long.shape[1]:  # of other trials, and fewer
                own = f"{shown(long[:, count], 100)} (trials of 8 T)"
            rows.append([count, shown(after, 100), own])
        header = ["N", "success % after N demonstrations", "after N episodes of its own"]
        add_table(report, "The next episode after demonstrations of the oracle", header, rows)
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--agents",
        nargs="+",
        default=["relic", "no-iea", "transformer-se", "k1"],
        choices=AGENTS,
        metavar="AGENT",
        help=f"of {', '.join(AGENTS)} (default relic no-iea transformer-se k1)",
    )
    options = sweep_options(parser, "runs/ext_objnav")
    if "rgb" in options.agents and len(options.agents) > 1:
        parser.error(
            "--agents rgb: sees and learns something else than the others, which do not belong in one table with it"
        )
    if options.smoke:
        options.agents = options.agents[:1]
    wanted = {options.out / f"{agent}-{seed}": (agent, seed) for seed in options.seeds for agent in options.agents}
    sweep = {
        folder: SweepRun(
            settings(agent, seed, options.smoke),
            partial(train_and_evaluate, agent=agent, smoke=options.smoke),
            files_of(agent),
        )
        for folder, (agent, seed) in wanted.items()
    }
    done = run_sweep(parser, options, sweep)
    found = {agent: [folder for folder in done if wanted[folder][0] == agent] for agent in options.agents}
    runs = {agent: folders for agent, folders in found.items() if folders}
    print(f"report: {write_results(options.out, runs).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
