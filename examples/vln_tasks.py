"""Laptop agents in R2R and CVDN: on real graphs, from dialogues, and from rewards alone.

Trains MTVM by the teacher on R2R's real graphs, with features made from the lists of objects of their houses
(MEMENVS_DATA), and on dialogues in procedural houses, taught by each of CVDN's three supervisions; and
`PartialUpdatePPO` in procedural houses from the reward. Plays each in all instructions of val_unseen, beside random
actions and the shortest path to the goal of the supervision. Prints a table for each task: mean and 95 % interval over
seeds. Published tables are of agents that see photographs; these are not comparable. A stopped command resumes.

    python examples/vln_tasks.py [--agents r2r cvdn ppo] [--seeds 0 1 2] [--jobs 2] [--out DIR] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare, evaluate_rule
from memenvs.agents.experiments.report import Report, add_table
from memenvs.agents.experiments.statistics import format_mean, format_percent
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.study_results import has_results, metric_means, write_result
from memenvs.agents.studies.sweep import SweepRun, group_by_name, run_sweep, sweep_options

#: Title of a table -> its metrics.
TABLES = {
    "R2R, real graphs": ("sr", "spl", "ndtw", "sdtw", "ne"),
    "CVDN, dialogues in procedural houses": ("gp", "sr", "spl", "ndtw"),
    "R2R, procedural houses, from rewards": ("return", "sr", "osr", "spl", "ndtw", "sdtw", "ne"),
}
#: Metric -> its unit in a table; the others are shares, in %.
UNITS = {"gp": " m", "ne": " m", "return": ""}
BASELINES = {"random": "random actions", "oracle": "shortest path"}


@dataclass(frozen=True)
class Agent:
    """A row of a table.

    Attributes:
        preset: Preset that it is trained with.
        table: Title of the table.
        name: Name in the row.
        supervision: In CVDN, the path that teaches it and gives the goal of SR, SPL and nDTW; None elsewhere.
    """

    preset: str
    table: str
    name: str
    supervision: str | None = None


_REAL, _DIALOGUES, _REWARDS = TABLES
AGENTS = {
    "r2r": Agent("vln-r2r-laptop", _REAL, "MTVM"),
    "cvdn": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "mixed"),
    "cvdn-oracle": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "oracle"),
    "cvdn-navigator": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "navigator"),
    "ppo": Agent("vln-ppo", _REWARDS, "PPO"),
}


#: Row of the scripted reader, which sees no step but the present one.
RULE = "cvdn-memoryless"


def make_config(agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed and a supervision; shortened to seconds if `smoke`."""
    config = replace(find_preset(AGENTS[agent].preset), seed=seed)
    if AGENTS[agent].supervision is not None:
        config = with_overrides(config, [("env_kwargs.supervision", AGENTS[agent].supervision)])
    if not smoke:
        return config
    steps = 2 * config.learner.n_steps if agent == "ppo" else 2
    small = [("n_envs", 2), ("eval_trials", 4), ("total_steps", steps)]
    return with_overrides(config, small if agent == "ppo" else [*small, ("policy.network.dim", 16)])


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train one run to its end and evaluate it beside random and oracle."""
    train_run(run, quiet=quiet)
    evaluate_and_compare(run, quiet=quiet)


def evaluate_reader(out: Path, smoke: bool) -> Path:
    """Play CVDN's trials with the rule `memoryless`, unless its result is there."""
    folder = out / RULE
    if not has_results(folder, "evaluation"):
        played = evaluate_rule(make_config("cvdn", 0, smoke), "memoryless")
        write_result(folder, "evaluation", {"agent": played.to_json()})
    return folder


def write_results(out: Path, runs: dict[str, list[Path]], reader: Path) -> Path:
    """Write the page with a table for each task, with the scripted reader, and print them."""
    report = Report("R2R and CVDN on a laptop", out)
    for title, metrics in TABLES.items():
        rows = []
        for agent, folders in runs.items():
            if AGENTS[agent].table != title:
                continue
            supervision = f", {AGENTS[agent].supervision}" if AGENTS[agent].supervision is not None else ""
            for policy, name in {"agent": AGENTS[agent].name, **BASELINES}.items():
                found = folders if policy == "agent" else folders[:1]  # baselines do not learn
                forms = [(metric, format_mean if metric in UNITS else format_percent) for metric in metrics]
                cells = [form(metric_means(found, metric, policy)[:, 0]) for metric, form in forms]
                rows.append([name + supervision, *cells])
        if rows and title == _DIALOGUES:
            played = [
                (format_mean if metric in UNITS else format_percent)(metric_means([reader], metric)[:, 0])
                for metric in metrics
            ]
            rows.append(["scripted reader, no memory, mixed", *played])
        if rows:
            add_table(report, title, ["agent", *(metric.upper() + UNITS.get(metric, " %") for metric in metrics)], rows)
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), choices=list(AGENTS), help="(default all)")
    options = sweep_options(parser, "runs/vln_tasks")
    if not options.show and not os.environ.get("MEMENVS_DATA") and "r2r" in options.agents:
        options.agents.remove("r2r")
        if not options.agents:
            parser.error("--agents r2r: needs the real graphs; MEMENVS_DATA is not set")
        print("MEMENVS_DATA is not set: no agent on the real graphs")
    if options.smoke:  # one of each table
        options.agents = list({AGENTS[agent].table: agent for agent in options.agents}.values())
    runs = {}
    for seed, agent in itertools.product(options.seeds, options.agents):
        config = make_config(agent, seed, options.smoke)
        runs[options.out / f"{agent}-{seed}"] = SweepRun(config, train_and_evaluate, ("evaluation",))
    found = group_by_name(run_sweep(parser, options, runs))
    reader = evaluate_reader(options.out, options.smoke)
    print(f"report: {write_results(options.out, found, reader).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
