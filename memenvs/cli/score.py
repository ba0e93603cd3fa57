"""`memenvs score`."""

from __future__ import annotations

import argparse

from memenvs.cli.common import blame, print_json
from memenvs.vln.results import score_file


def run(arguments: argparse.Namespace) -> None:
    """Scores a file of trajectories and prints the means."""
    with blame("FILE", ValueError, OSError):
        metrics = score_file(arguments.task, arguments.file, arguments.split, arguments.data)
    if arguments.json:
        print_json(metrics)
        return
    print(f"{arguments.task} {arguments.split}")
    for name, value in metrics.items():
        print(f"{name:4}  {value:.4f}")
