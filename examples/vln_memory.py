"""MTVM's ablation in procedural houses: what it is worth to remember moves, in tours of one, two and three legs, and what the text is worth.

Trains the laptop's MTVM with all of its moves in memory, with the last three, the last one or none, and without language, each with several seeds;
what learns several legs begins with the weights of what remembers all moves and has learned one. Prints and draws success rate (SR) and success
weighted by the likeness of the path (SDTW) on the unseen houses, mean and standard error over seeds.
Success in a tour asks for the end of each leg, in order. One leg is a shortest path and can be walked without a memory; of two the camera tells
nearly always whence one has come; in three there is a place and view that comes twice and asks for different moves, in half of the ways also with
the last three moves. A stopped command goes on where it was.

    python examples/vln_memory.py [--legs 1 2 3] [--agents all last3 none deaf consistency] [--seeds 0 1 2] [--jobs 2]
        [--out runs/vln_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from agents.presets import find_preset
from agents.report import Report, figure_png
from agents.run_config import RunConfig, with_overrides
from agents.run_directory import RunDirectory
from agents.runs import evaluate_run, train_run
from agents.sweep import SweepRun, run_sweep, sweep_options
from memenvs.files import write_file

#: Legs -> preset of an agent that remembers all of its moves.
LEGS = {1: "vln-laptop", 2: "vln-laptop-tours2", 3: "vln-laptop-tours3"}
#: Agent -> what is added to the preset's name, and what it is.
AGENTS = {
    "all": ("", "remembers all moves"),
    "last3": ("-last3", "remembers the last 3 moves"),
    "last3-observations": ("-last3-observations", "remembers what options looked like at the last 3 moves"),
    "last1": ("-last1", "remembers the last move"),
    "none": ("-no-memory", "remembers nothing"),
    "recurrent": ("-recurrent", "one recurrent state"),
    "deaf": ("-no-language", "remembers all moves, does not read the text"),
    "consistency": ("-consistency", "remembers all moves, with the consistency loss"),
}
#: Who learns one leg for all that learn several.
FIRST = "all"
METRICS = ("sr", "sdtw")
EVALUATION = "evaluation.json"


def folder_of(out: Path, legs: int, agent: str, seed: int) -> Path:
    """Where a run is."""
    return out / f"{agent}-{legs}-{seed}"


def settings(out: Path, legs: int, agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed, beginning with the run of one leg if there are several; for seconds only if it is a smoke test."""
    config = replace(find_preset(LEGS[legs] + AGENTS[agent][0]), seed=seed)
    if config.encoder_from is not None:
        config = replace(config, encoder_from=str(folder_of(out, 1, FIRST, seed)))
    if not smoke:
        return config
    return with_overrides(config, [("n_envs", 2), ("total_steps", 2), ("eval_trials", 4), ("policy.network.dim", 16)])


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """One run, to its end and with its evaluation."""
    train_run(run, quiet=quiet)
    results = {"agent": evaluate_run(run).to_json()}
    write_file(run.path / EVALUATION, json.dumps(results).encode())


def values(folders: list[Path], metric: str) -> np.ndarray:
    """A metric of each run, float64, (seeds,)."""
    files = [json.loads((folder / EVALUATION).read_text()) for folder in folders]
    return np.array([file["agent"]["metrics"][metric]["mean"][0] for file in files])


def error(sample: np.ndarray) -> float:
    """Standard error of the mean over seeds; 0 of one seed."""
    return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else 0.0


def shown(sample: np.ndarray) -> str:
    """Mean and, of several seeds, standard error, in %."""
    return f"{100 * sample.mean():.1f}" + f" +- {100 * error(sample):.1f}" * (len(sample) > 1)


def write_results(out: Path, runs: dict[tuple[str, int], list[Path]]) -> Path:
    """The table and a picture for each metric: `report.html`; prints the table."""
    report = Report("MTVM in procedural houses", out)
    agents = list(dict.fromkeys(agent for agent, _ in runs))
    legs = sorted({count for _, count in runs})
    header = ["agent", *(f"{metric.upper()} %, {count} leg{'s' * (count > 1)}" for metric in METRICS for count in legs)]
    rows = []
    for agent in agents:
        cells = [(runs.get((agent, count)), metric) for metric in METRICS for count in legs]
        rows.append([AGENTS[agent][1], *(shown(values(found, metric)) if found else "-" for found, metric in cells)])
    report.table(header, rows)
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    for axes, metric in zip(figure.subplots(1, len(METRICS), sharey=True), METRICS, strict=True):
        for agent in agents:
            trained = [count for count in legs if (agent, count) in runs]
            found = [100 * values(runs[agent, count], metric) for count in trained]
            means, errors = [each.mean() for each in found], [error(each) for each in found]
            axes.errorbar(trained, means, errors, marker="o", capsize=3, label=AGENTS[agent][1])
        axes.set_xticks(legs)
        axes.set_xlabel("legs of the tour")
        axes.set_ylabel(f"{metric.upper()} on unseen houses, %")
    axes.legend(frameon=False, fontsize="small")
    report.picture("memory", figure_png(figure), "mean and standard error over seeds")
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legs", type=int, nargs="+", default=list(LEGS), choices=list(LEGS))
    parser.add_argument(
        "--agents", nargs="+", default=["all", "last3", "none", "deaf", "consistency"], choices=list(AGENTS)
    )
    options = sweep_options(parser, "runs/vln_memory")
    if options.smoke:
        options.legs, options.agents = options.legs[:2], options.agents[:2]
    wanted = {
        folder_of(options.out, legs, agent, seed): (legs, agent, seed)
        for seed in options.seeds  # a whole table of the first seed, then of the next
        for legs, agent in [
            *([] if options.show else [(1, FIRST)]),
            *itertools.product(options.legs, options.agents),
        ]
    }
    sweep = {
        folder: SweepRun(settings(options.out, *each, options.smoke), train_and_evaluate, (EVALUATION,))
        for folder, each in wanted.items()
    }
    runs: dict[tuple[str, int], list[Path]] = {}
    for folder in run_sweep(parser, options, sweep):
        legs, agent, _ = wanted[folder]
        runs.setdefault((agent, legs), []).append(folder)
    print(f"report: {write_results(options.out, runs).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
