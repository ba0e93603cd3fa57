"""Memory strategies in the tasks of Room Ballet (SAT's tables); 3 to 60 minutes a run.

Every run is a preset or a variant; accuracies are those in 12,000 fresh episodes, mean and 95 % interval over seeds,
beside those that an ideal observer has from the same memory. Tables, their runs for one seed, and minutes of one core
for a run, with validation and evaluation:

    strategies  18 runs  3 to 10, 15   each task with each of four strategies; all tasks with an allocator that chooses
                                       (AMA), and learns from episodes whose memory has the answer, or from all
    next         3 runs  8             places and actions in the memory: t-fifo, t-fifo+a, sat-fifo in Next Ballet
    shortstay   18 runs  3 to 13       reading at once, by chunks of time or of places, in 9, 16 and 25 rooms, with time
                                       modulo 32 (as in the release) and with the step number (as in the paper)
    language     3 runs  9             AMA reads the task in words: accuracy with unseen descriptions, three splits
    aba          2 runs  3             a quota for each place against one queue for all
    rooms        1 run   6             4 to 12 rooms after learning in 8
    unlimited    2 runs  15, 20        AMA with half of the visits against a memory with room for all
    dnc          3 runs  8, 16, 16     a small DNC against AMA, three steps of a visit, all four tasks
    opposite     1 run   8             attention by room and layer
    parity       1 run   60            Ballet-MVFO from the release's initial weights and learning rate

A stopped command resumes, also in the middle of a run.

    python examples/room_ballet.py [--tables strategies next] [--seeds 0 1 2] [--jobs 2] [--out DIR] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from memenvs.agents.experiments.report import Report
from memenvs.agents.papers.sat import tables
from memenvs.agents.papers.sat.study import EVALUATIONS, train_and_evaluate
from memenvs.agents.presets import find_preset, folder_name
from memenvs.agents.presets.sat import TABLES, smoke_config
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options

TITLES = {
    "next": "Next",
    "shortstay": "Short Stay",
    "aba": "ABA",
    "opposite": "Opposite",
    "unlimited": "Half of the visits, chosen by an allocator, against all",
    "dnc": "DNC against a spatial memory with an allocator",
}
SMOKE = ["ballet-fifo", "ballet-fifo:lifo", "ballet-ama"]  # of the table of strategies


def add_table(report: Report, table: str, runs: dict[str, list[Path]]) -> None:
    """Add one table, with its figures, over the runs that are there."""
    if table == "strategies":
        tables.add_strategies(report, runs)
    elif table == "language":
        tables.add_language(report, runs)
    elif table == "rooms":
        tables.add_rooms(report, runs)
    elif table == "parity":
        tables.add_parity(report, runs)
    elif table in ("unlimited", "dnc"):
        tables.add_accuracy_curves(report, table, TITLES[table], runs)
    else:
        tables.add_accuracies(report, TITLES[table], runs)
    if table == "opposite":
        tables.add_attention(report, runs["ballet-opposite"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables",
        nargs="+",
        default=["strategies"],
        choices=list(TABLES),
        metavar="TABLE",
        help="(default strategies)",
    )
    options = sweep_options(parser, "runs/room_ballet")
    wanted = {table: TABLES[table] for table in options.tables}
    if options.smoke and "strategies" in wanted:
        wanted["strategies"] = SMOKE
    runs: dict[Path, SweepRun] = {}  # some runs are in two tables, which need the same of them
    for seed, (table, presets) in itertools.product(options.seeds, wanted.items()):
        for preset in presets:
            config = replace(find_preset(preset), seed=seed)
            work = partial(train_and_evaluate, table=table)
            names = ("evaluation", *EVALUATIONS.get(table, ()))
            run = SweepRun(smoke_config(config) if options.smoke else config, work, names)
            runs.setdefault(options.out / folder_name(preset, seed), run)
    done = run_sweep(parser, options, runs)
    report = Report("Spatially-Aware Transformer in Room Ballet", options.out)
    for table, presets in wanted.items():
        folders = {preset: [options.out / folder_name(preset, seed) for seed in options.seeds] for preset in presets}
        found = {preset: [each for each in of_preset if each in done] for preset, of_preset in folders.items()}
        if any(found.values()):
            add_table(report, table, {preset: of_preset for preset, of_preset in found.items() if of_preset})
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
