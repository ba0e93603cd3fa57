"""MTVM follows tours of one to three legs with more or less memory; 4 to 39 minutes a run.

Trains the laptop's MTVM with full memory, with the last three actions or none, and without language; each learns one
leg, then, from its own weights, two, then three. The activation of an action is made while attending to older ones, so
that the last three carry information of those too. Agents that store only the view of the option taken do not.
Beside them plays the scripted reader `memoryless`, which sees no step but the present one.
Prints success rate (SR) and success weighted by nDTW (SDTW) in unseen houses; for three legs also by the number of
repeated actions, with the accuracy of the one decision that needs memory (TURN), to which the teacher leads.

    python examples/vln_memory.py [--legs 1 2] [--agents all last3] [--seeds 0 1] [--jobs 2] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_rule, evaluate_run
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_mean, format_percent
from memenvs.agents.experiments.train import train_run
from memenvs.agents.papers.mtvm import repeated_actions
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.study_figures import error_bar_figure
from memenvs.agents.studies.study_results import has_results, metric_means, read_result, write_result
from memenvs.agents.studies.sweep import SweepRun, group_by_name, run_sweep, sweep_options

LEGS = (1, 2, 3)
METRICS = ("sr", "sdtw")
#: Agent -> variant of the preset "vln-laptop" ("": the preset), and its name in the table.
AGENTS = {
    "all": ("", "full memory"),
    "last3": ("last3", "last 3 actions"),
    "observations": ("observations", "full memory of observations"),
    "last3-observations": ("last3-observations", "observations of the last 3 actions"),
    "last1": ("last1", "last action"),
    "none": ("no-memory", "no memory"),
    "recurrent": ("recurrent", "recurrent state"),
    "no-language": ("no-language", "full memory, does not read the text"),
    "consistency": ("consistency", "full memory, with the consistency loss"),
}
TABLE = ["all", "last3", "observations", "last3-observations", "recurrent", "none", "no-language", "consistency"]
RULE = "memoryless"
NAMES = {RULE: "scripted reader, no memory"} | {agent: name for agent, (_, name) in AGENTS.items()}
REPEATS = {"few": "1 to 3 repeated actions", "many": "4 or more"}


def make_config(out: Path, legs: int, agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed, starting with the run of one leg less; small in a smoke test."""
    variant = "-".join(filter(None, (f"tours{legs}" * (legs > 1), AGENTS[agent][0])))
    config = replace(find_preset("vln-laptop" + f":{variant}" * bool(variant)), seed=seed)
    if legs > 1:
        config = replace(config, encoder_from=str(out / f"{agent}-{legs - 1}-{seed}"))
    small = [("n_envs", 2), ("total_steps", 2), ("eval_trials", 4), ("policy.network.dim", 16)]
    return with_overrides(config, small) if smoke else config


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train one run to its end and evaluate it."""
    train_run(run, quiet=quiet)
    played = evaluate_run(run, quiet=quiet)
    results = {"agent": played.to_json()}
    if run.config.env_kwargs["legs"] == 3:
        results["again"] = repeated_actions.score_by_repeats(run, played)  # scores by the number of repeated actions
    write_result(run.path, "evaluation", results)


def evaluate_reader(out: Path, legs: int, smoke: bool) -> Path:
    """Play the evaluation trials with the scripted reader, unless its result is there."""
    folder = out / f"{RULE}-{legs}"
    if not has_results(folder, "evaluation"):
        played = evaluate_rule(make_config(out, legs, "all", 0, smoke), RULE)
        write_result(folder, "evaluation", {"agent": played.to_json()})
    return folder


def write_results(out: Path, runs: dict[str, list[Path]], agents: list[str]) -> Path:
    """Write the page with the tables and a picture of each metric, and print the tables."""
    report = Report("MTVM in procedural houses", out)
    agents = [agent for agent in agents if any(f"{agent}-{legs}" in runs for legs in LEGS)]
    legs = [count for count in LEGS if any(f"{agent}-{count}" in runs for agent in agents)]
    scores: dict[str, dict[str, dict[int, np.ndarray]]] = {}  # metric -> name of the agent -> legs -> (seeds,), in %
    for metric, agent, count in itertools.product(METRICS, agents, legs):
        if folders := runs.get(f"{agent}-{count}"):
            values = 100 * metric_means(folders, metric)[:, 0]
            scores.setdefault(metric, {}).setdefault(NAMES[agent], {})[count] = values
    header = ["agent", *(f"{metric.upper()} %, {count} leg{'s' * (count > 1)}" for metric in METRICS for count in legs)]
    rows = []
    for name in dict.fromkeys(NAMES[agent] for agent in agents):
        cells = [scores[metric][name].get(count) for metric in METRICS for count in legs]
        rows.append([name, *("-" if cell is None else format_mean(cell) for cell in cells)])
    add_table(report, "Unseen houses", header, rows)
    figure = error_bar_figure(scores, "legs of the tour", "on unseen houses, %")
    report.picture("memory", figure_png(figure), "mean and 95 % interval over seeds")
    pairs = list(itertools.product(REPEATS, repeated_actions.METRICS))
    rows = []
    for agent in agents:
        by_repeats = [read_result(folder, "evaluation").get("again") for folder in runs.get(f"{agent}-3", [])]
        if by_repeats and None not in by_repeats:
            cells = [np.array([each[kind][metric] for each in by_repeats]) for kind, metric in pairs]
            rows.append([NAMES[agent], *map(format_percent, cells)])
    if rows:
        header = ["agent", *(f"{metric.upper()} %, {REPEATS[kind]}" for kind, metric in pairs)]
        add_table(report, "Three legs, by the number of repeated actions", header, rows)
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legs", type=int, nargs="+", default=list(LEGS), choices=LEGS)
    parser.add_argument("--agents", nargs="+", default=TABLE, choices=list(AGENTS))
    options = sweep_options(parser, "runs/vln_memory")
    if options.smoke:
        options.agents = options.agents[:1]
    runs: dict[Path, SweepRun] = {}
    for seed, last, agent in itertools.product(options.seeds, sorted(options.legs), options.agents):
        for legs in [last] if options.show else range(1, last + 1):  # first the run that it starts with
            config = make_config(options.out, legs, agent, seed, options.smoke)
            runs[options.out / f"{agent}-{legs}-{seed}"] = SweepRun(config, train_and_evaluate, ("evaluation",))
    found = group_by_name(run_sweep(parser, options, runs))
    for legs in options.legs:
        if not options.show or has_results(options.out / f"{RULE}-{legs}", "evaluation"):
            found[f"{RULE}-{legs}"] = [evaluate_reader(options.out, legs, options.smoke)]
    print(f"report: {write_results(options.out, found, [*options.agents, RULE]).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
