"""`memenvs score`."""

from __future__ import annotations

import argparse

from memenvs.checks import choices_for
from memenvs.cli.common import UserError, as_user_error, print_json
from memenvs.vln.results import ALIASES, LENGTHS, SPLITS, load_world, score_walks


def run(arguments: argparse.Namespace) -> None:
    """Scores a file of trajectories and prints the means."""
    task = ALIASES.get(arguments.task, arguments.task)
    splits = SPLITS[task]
    if arguments.split not in splits:
        raise UserError(f"argument --split: unknown split {arguments.split!r}; {choices_for(arguments.split, splits)}")
    with as_user_error(
        f"--split {arguments.split}, --data {arguments.data or '$MEMENVS_DATA/vln'}", ValueError, OSError
    ):
        world = load_world(task, arguments.split, arguments.data)
    with as_user_error("FILE", ValueError, OSError):
        metrics = score_walks(task, arguments.file, world)
    if arguments.json:
        print_json(metrics)
        return
    print(f"{task} {arguments.split}")
    for name, value in metrics.items():
        print(f"{name:4}  {value:.4f}{' m' * (name in LENGTHS)}")
