"""Answers with pictures from a memory (SAT's generation); 5 tables in 5 environments.

Every run is a variant of the preset `sat-pictures`. Tables and their runs for one seed:

    faces     6 runs  memories without places (t-fifo, with moves t-fifo+a) and with them (sat-fifo), and read in
                      chunks of 8, 16 or 32 regions; MSE on faces that were not learned from
    codes     4 runs  codes of places in FFHQ-world: sinusoids or learned vectors, of row and column or of the cell;
                      vectors of 128 numbers, as published
    longstay  3 runs  a memory of half of the steps with FIFO, with MVFO, or with an allocator that chooses (AMA)
    ballet3d  5 runs  each strategy, and AMA, in all four tasks of Ballet3D
    recall    6 runs  FIFO, MVFO and AMA in ColorRecall (accuracy) and ViewRecall (MSE)

A GPU is used if there is one; several runs share it with `--jobs`. A stopped command resumes, also in the middle of a
run. Pictures of answers are drawn where the checkpoints are there.

    python examples/sat_pictures.py [--tables faces recall] [--seeds 0 1 2] [--jobs 8] [--device cuda]
        [--precision bfloat16] [--out DIR] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.report import Report
from memenvs.agents.papers.sat.picture_study import add_picture_table, train_and_evaluate
from memenvs.agents.presets import find_preset, folder_name
from memenvs.agents.presets.sat_pictures import PICTURE_TABLES, smoke_config
from memenvs.agents.studies.study_results import has_results
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=list(PICTURE_TABLES),
        metavar="TABLE",
        help="(default all; with --smoke the long stay)",
    )
    parser.add_argument("--device", default="auto", help='"cpu", "cuda" or "cuda:1" (default: a GPU if there is one)')
    parser.add_argument(
        "--precision",
        choices=["float32", "bfloat16"],
        default="float32",
        help="bfloat16 takes half of the time on a CPU with AVX512-BF16, and far longer on a CPU without",
    )
    options = sweep_options(parser, "runs/sat_pictures")
    tables = options.tables or (["longstay"] if options.smoke else list(PICTURE_TABLES))
    wanted = {table: PICTURE_TABLES[table] for table in tables}
    runs: dict[Path, SweepRun] = {}  # a run may be in two tables
    for seed, presets in itertools.product(options.seeds, wanted.values()):
        for preset in presets:
            config = replace(find_preset(preset), seed=seed, device=options.device)
            config = with_overrides(config, [("supervised.precision", options.precision)])
            run = SweepRun(smoke_config(config) if options.smoke else config, train_and_evaluate, ("evaluation",))
            runs.setdefault(options.out / folder_name(preset, seed), run)
    run_sweep(parser, options, runs)
    report = Report("Spatially-Aware Transformer: memories of pictures", options.out)
    for table, presets in wanted.items():
        folders = {preset: [options.out / folder_name(preset, seed) for seed in options.seeds] for preset in presets}
        done = {preset: [each for each in of if has_results(each, "evaluation")] for preset, of in folders.items()}
        add_picture_table(report, table, {preset: of for preset, of in done.items() if of})
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
