"""`memenvs trajectories`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import read_config

ARGUMENTS = """
folder RUN: folder of the run
--split NAME: split of the instructions (default: that of the run's evaluation)
--seed K=1: seed of the evaluation
--out OUT_FILE: the file (default: trajectories_SPLIT.json in the run's folder)
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the trajectories of a run's agent as a result file."""
    config = read_config(arguments.folder)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.papers.mtvm.trajectories import check_trajectories, write_trajectories

    check_trajectories(config)
    with RunDirectory(arguments.folder) as run:
        path = write_trajectories(run, arguments.out, split=arguments.split, seed=arguments.seed, quiet=arguments.json)
    if not arguments.json:
        print(f"written: {path}")
    return {"trajectories": str(path)}
