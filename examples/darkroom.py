"""ReLIC learns in context in the Darkroom or in FourBoxes; half an hour a seed on a core.

Prints the return by episode of the trial on held-out goals, mean and 95 % interval over seeds. Compare with the paper:
32 in episode 1, 89 in episode 10; an agent that knows the goal gets 90.9, the scripted sweep 47.9 in every episode.
Also with variants, such as `darkroom:k1` (no partial updates), in the 5 x 5 room (`demo`, or `demo:ct-lt` with another
memory; 3 minutes), and with fewer steps. `fourboxes:unseen` is FourBoxes with arrangements of the colours that were not
trained: the paper has 30 in episode 1 and 42 in episode 3. A stopped command resumes.

    python examples/darkroom.py [--presets darkroom darkroom:k1] [--steps 4000000] [--seeds 0 1 2] [--jobs 2]
        [--out runs/darkroom] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_and_compare
from memenvs.agents.experiments.report import Report, add_table, figure_png, in_context_figure
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.statistics import format_mean
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset, folder_name, preset_descriptions
from memenvs.agents.studies.in_context_tables import mean_curve
from memenvs.agents.studies.study_results import metric_means
from memenvs.agents.studies.sweep import SweepRun, group_by_name, run_sweep, sweep_options


def make_config(preset: str, steps: int | None, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed and, if given, other steps; shortened to seconds if `smoke`."""
    config = replace(find_preset(preset), seed=seed)
    if steps is not None:
        config = replace(config, total_steps=steps)
    if not smoke:
        return config
    return replace(config, n_envs=4, total_steps=min(2_000, config.total_steps), eval_steps=200, eval_trials=4)


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train one run to its end, evaluate it beside random and oracle, and write its report."""
    train_run(run, quiet=quiet)
    evaluate_and_compare(run, quiet=quiet)
    write_report([run], run.path)


def write_results(out: Path, runs: dict[str, list[Path]]) -> Path:
    """Write the page with the table, which is printed too, and the curves."""
    report = Report("In-context learning in one room", out)
    rows, curves = [], {}
    for name, folders in runs.items():
        sample = metric_means(folders, "return")  # (seeds, episodes)
        curves[name] = mean_curve(sample)
        if len(folders) > 1:
            curves |= {folder.name: mean_curve(each[None]) for folder, each in zip(folders, sample, strict=True)}
        last = sample.shape[1] - 1
        chosen = (format_mean(sample[:, episode]) for episode in (0, min(2, last), last))
        rows.append([name, len(folders), last + 1, *chosen])
    header = ["agent", "seeds", "episodes", "first", "third", "last"]
    add_table(report, "Return by episode of a trial, over seeds", header, rows)
    figure = in_context_figure(curves, "return")
    report.picture("in_context", figure_png(figure), "mean and 95 % interval over seeds, and each seed")
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name in preset_descriptions() if name.partition(":")[0] in ("darkroom", "demo", "fourboxes")]
    parser.add_argument("--presets", nargs="+", default=["darkroom"], choices=names, help="(default darkroom)")
    parser.add_argument("--steps", type=int, help="environment steps of a run (default the preset's)")
    options = sweep_options(parser, "runs/darkroom")
    runs = {}
    for seed, preset in itertools.product(options.seeds, options.presets):
        config = make_config(preset, options.steps, seed, options.smoke)
        name = preset if options.steps is None else f"{preset}-{options.steps}"
        runs[options.out / folder_name(name, seed)] = SweepRun(config, train_and_evaluate, ("evaluation",))
    found = group_by_name(run_sweep(parser, options, runs))
    print(f"report: {write_results(options.out, found).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
