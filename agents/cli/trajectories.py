"""`memenvs trajectories`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import read_config
from memenvs.cli.common import non_negative_int, output_file


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("folder", type=Path, help="folder of the run")
    command.add_argument("--split", help="split of the instructions (default that of the run's evaluation)")
    command.add_argument("--seed", type=non_negative_int, default=1, help="seed of the evaluation (default 1)")
    command.add_argument(
        "--out", type=output_file, help="the file; default trajectories_SPLIT.json in the run's folder"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the trajectories of a run's agent as a result file."""
    config = read_config(arguments.folder)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.mtvm.trajectories import check_trajectories, write_trajectories

    check_trajectories(config)
    with RunDirectory(arguments.folder) as run:
        path = write_trajectories(run, arguments.out, split=arguments.split, seed=arguments.seed, quiet=arguments.json)
    if not arguments.json:
        print(f"written: {path}")
    return {"trajectories": str(path)}
