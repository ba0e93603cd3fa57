"""ReLIC in the 10 x 10 Darkroom, goals held out: return by episode of the trial over three seeds; about half an hour a seed on one core.

Compare with the article: 32 in episode 1, 89 in episode 10; an agent that knows the goal gets 90.9, a blind sweep 47.9. Also with other presets,
such as `darkroom:k1` (no partial updates); with fewer steps, what partial updates give first. A stopped command goes on where it was.

    python examples/darkroom.py [--presets darkroom darkroom:k1] [--steps 4000000] [--out runs/darkroom] [--seeds 0 1 2] [--jobs 2] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare
from memenvs.agents.experiments.report import Report, add_table, figure_png, in_context_figure, write_report
from memenvs.agents.experiments.statistics import format_mean, mean_and_stderr
from memenvs.agents.experiments.study_results import metric_means
from memenvs.agents.experiments.sweep import SweepRun, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset, folder_name, run_names


def settings(preset: str, steps: int | None, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed, for other steps if they are given; for seconds only if it is a smoke test."""
    config = replace(find_preset(preset), seed=seed)
    if steps is not None:
        config = replace(config, total_steps=steps)
    if not smoke:
        return config
    return replace(config, n_envs=4, total_steps=min(2_000, config.total_steps), eval_steps=200, eval_trials=4)


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """One run, to its end, with its evaluation, beside the oracle's and a random policy's, and its report."""
    train_run(run, quiet=quiet)
    evaluate_and_compare(run, quiet=quiet)
    write_report([run], run.path)


def returns(folders: list[Path]) -> np.ndarray:
    """Return by episode of every run's agent, float64, (runs, E)."""
    return metric_means(folders, "return")


def write_results(out: Path, runs: dict[str, list[Path]]) -> Path:
    """First, third and last episode by preset, and the curves: `report.html`; prints the table."""
    report = Report("In-context learning in the Darkroom", out)
    rows, curves = [], {}
    for name, folders in runs.items():
        sample = returns(folders)
        mean, spread = mean_and_stderr(sample)
        curves[name] = {"mean": mean.tolist(), "stderr": spread.tolist()}
        if len(folders) > 1:
            curves |= {
                folder.name: {"mean": each, "stderr": [0.0] * len(each)}
                for folder, each in zip(folders, sample.tolist(), strict=True)
            }
        chosen = [0, min(2, len(mean) - 1), len(mean) - 1]
        rows.append([name, len(folders), len(mean), *(format_mean(sample[:, e]) for e in chosen)])
    add_table(
        report,
        "Return by episode of a trial, over seeds",
        ["preset", "seeds", "episodes", "first", "third", "last"],
        rows,
    )
    report.picture(
        "in_context",
        figure_png(in_context_figure(curves, "return")),
        "mean and standard error over seeds, and each seed",
    )
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name in run_names() if name.startswith("darkroom")]
    parser.add_argument(
        "--presets",
        nargs="+",
        default=["darkroom"],
        choices=names,
        metavar="PRESET",
        help=f"of {', '.join(names)} (default darkroom)",
    )
    parser.add_argument("--steps", type=int, help="environment steps of a run (default the preset's)")
    options = sweep_options(parser, "runs/darkroom")
    wanted: dict[Path, tuple[str, int]] = {}
    for seed in options.seeds:
        for preset in options.presets:
            name = preset if options.steps is None else f"{preset}-{options.steps}"
            wanted[options.out / folder_name(name, seed)] = preset, seed
    sweep = {
        folder: SweepRun(settings(preset, options.steps, seed, options.smoke), train_and_evaluate, ("evaluation",))
        for folder, (preset, seed) in wanted.items()
    }
    runs: dict[str, list[Path]] = {}
    for folder in run_sweep(parser, options, sweep):
        runs.setdefault(wanted[folder][0], []).append(folder)
    print(f"report: {write_results(options.out, runs).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
