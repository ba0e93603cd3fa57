"""Eviction strategies learned by reinforcement (SAT); 3 to 12 minutes a run on one core.

An agent sees a colour, stays elsewhere for twice as long as its memory has room, and then has to choose that colour.
With FIFO the colour is gone, with MVFO it is not, and an allocator (AMA) finds out from returns. Compared with memories
that keep everything or a single vector, with the same steps. Prints a table a task: success in 1000 fresh episodes,
mean and 95 % interval over seeds, and the strategy with the largest Q. The page has success and choices along the
training, and the steps that each strategy holds, from the memory of a run. A stopped command resumes.

Compressive Transformers are compared in short-visual-match (--methods relic lstm ct-lt ct-log).

    python examples/visual_match.py [--tasks visual-match] [--methods ama mvfo fifo] [--seeds 0 1 2] [--jobs 2]
        [--device cpu] [--out runs/visual_match] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.report import Report
from memenvs.agents.papers.sat.rl_study import EVALUATIONS, add_task, train_and_evaluate
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.sat_rl import METHODS, TASKS, smoke_config, variant_name
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = [task for task in TASKS if not task.startswith("short-")]
    methods = [method for method in METHODS if not method.startswith("ct-")]
    parser.add_argument("--tasks", nargs="+", default=tasks, choices=list(TASKS), help="(default %(default)s)")
    parser.add_argument("--methods", nargs="+", default=methods, choices=list(METHODS), help="(default %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:0 (default %(default)s)")
    options = sweep_options(parser, "runs/visual_match")
    if options.smoke:
        options.methods = [method for method in options.methods if method in ("ama", "none")]
    runs: dict[Path, SweepRun] = {}
    for task, seed, method in itertools.product(options.tasks, options.seeds, options.methods):
        config = replace(find_preset(variant_name(task, method)), seed=seed, device=options.device)
        config = smoke_config(config) if options.smoke else config
        runs[options.out / f"{task}-{method}-{seed}"] = SweepRun(config, train_and_evaluate, EVALUATIONS)
    done = run_sweep(parser, options, runs)
    report = Report("A memory that must choose what it keeps", options.out)
    for task in options.tasks:
        folders = {
            method: [options.out / f"{task}-{method}-{seed}" for seed in options.seeds] for method in options.methods
        }
        found = {method: [each for each in of_method if each in done] for method, of_method in folders.items()}
        if any(found.values()):
            add_task(report, task, {method: of_method for method, of_method in found.items() if of_method})
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
