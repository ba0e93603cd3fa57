"""What agents of a laptop reach in R2R and CVDN: on the real graphs, from dialogues, and from rewards alone.

Trains MTVM by the teacher on R2R's real graphs, with features made up from what their houses list (MEMENVS_DATA), and on dialogues in procedural
houses, taught by each of CVDN's three supervisions; and `PartialUpdatePPO` in procedural houses from the reward. Plays each in all instructions of
val_unseen, beside random actions and the shortest path to the goal of the supervision. Prints a table for each task: mean and standard error over
seeds. None of these is to be set beside the table of an article, whose agents see photographs. A stopped command goes on where it was.

    python examples/vln_tasks.py [--agents r2r cvdn cvdn-oracle cvdn-navigator ppo] [--seeds 0 1 2] [--jobs 2] [--out runs/vln_tasks] [--show]
        [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memenvs.agents import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare
from memenvs.agents.experiments.report import Report, add_table
from memenvs.agents.experiments.study_results import metric_means
from memenvs.agents.experiments.sweep import SweepRun, mean_and_error, percent, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

#: Title of a table -> its metrics.
TABLES = {
    "R2R, real graphs": ("sr", "spl", "ndtw", "sdtw", "ne"),
    "CVDN, dialogues in procedural houses": ("gp", "sr", "spl", "ndtw"),
    "R2R, procedural houses, from rewards": ("return", "sr", "osr", "spl", "ndtw", "sdtw", "ne"),
}
#: Metric -> its unit in a table; the others are shares, in %.
UNITS = {"gp": " m", "ne": " m", "return": ""}


@dataclass(frozen=True)
class Agent:
    """A row: its preset, its table, its name, and CVDN's supervision, which teaches it and says which goal SR, SPL and nDTW are about."""

    preset: str
    table: str
    row: str
    supervision: str | None = None


_REAL, _DIALOGUES, _REWARDS = TABLES
AGENTS = {
    "r2r": Agent("vln-r2r-laptop", _REAL, "MTVM"),
    "cvdn": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "mixed"),
    "cvdn-oracle": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "oracle"),
    "cvdn-navigator": Agent("vln-cvdn-laptop", _DIALOGUES, "MTVM", "navigator"),
    "ppo": Agent("vln-ppo", _REWARDS, "PPO"),
}
#: Who is played beside an agent -> its row.
OTHERS = {"random": "random actions", "oracle": "shortest path"}


def settings(agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed and a supervision; for seconds only if it is a smoke test."""
    chosen = AGENTS[agent]
    config = replace(find_preset(chosen.preset), seed=seed)
    if chosen.supervision is not None:
        config = with_overrides(config, [("env_kwargs.supervision", chosen.supervision)])
    if not smoke:
        return config
    small = [("n_envs", 2), ("eval_trials", 4)]
    if isinstance(config.learner, PPOConfig):
        return with_overrides(config, [*small, ("total_steps", 2 * config.learner.n_steps)])
    return with_overrides(config, [*small, ("total_steps", 2), ("policy.network.dim", 16)])


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """One run, to its end and with its evaluation."""
    train_run(run, quiet=quiet)
    evaluate_and_compare(run, quiet=quiet)


def values(folders: list[Path], who: str, metric: str) -> np.ndarray:
    """A metric of each run's agent or of who was played beside it, float64, (seeds,)."""
    return metric_means(folders, metric, who)[:, 0]


def write_results(out: Path, runs: dict[str, list[Path]]) -> Path:
    """A table for each task: `report.html`; prints them."""
    report = Report("R2R and CVDN on a laptop", out)
    for title, metrics in TABLES.items():
        rows = []
        for agent, folders in runs.items():
            if AGENTS[agent].table != title:
                continue
            names = {"agent": AGENTS[agent].row, **OTHERS}
            if AGENTS[agent].supervision is not None:
                names = {who: f"{name}, {AGENTS[agent].supervision}" for who, name in names.items()}
            for who, name in names.items():
                found = folders if who == "agent" else folders[:1]  # these do not learn
                cells = [(values(found, who, metric), metric in UNITS) for metric in metrics]
                rows.append([name, *(mean_and_error(sample) if plain else percent(sample) for sample, plain in cells)])
        if rows:
            header = ["agent", *(metric.upper() + UNITS.get(metric, " %") for metric in metrics)]
            add_table(report, title, header, rows)
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
    wanted = {
        options.out / f"{agent}-{seed}": (agent, seed)
        for seed, agent in itertools.product(options.seeds, options.agents)
    }
    sweep = {
        folder: SweepRun(settings(*each, options.smoke), train_and_evaluate, ("evaluation",))
        for folder, each in wanted.items()
    }
    runs: dict[str, list[Path]] = {agent: [] for agent in options.agents}
    for folder in run_sweep(parser, options, sweep):
        runs[wanted[folder][0]].append(folder)
    print(f"report: {write_results(options.out, {agent: found for agent, found in runs.items() if found}).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
