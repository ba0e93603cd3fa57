"""`memenvs score`: score a file of results of one task."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.cli.common import UserError
from memenvs.cli.extensions import Scorer, load_extensions


def scorers() -> dict[str, Scorer]:
    """Collect the scorers of all families by task."""
    return {name: scorer for extension in load_extensions() for name, scorer in extension.scorers.items()}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    tasks = scorers()
    split = ", ".join(name for name, scorer in tasks.items() if scorer.needs_split)
    command.add_argument(
        "task",
        choices=tuple(tasks),
        metavar="TASK",
        help="; ".join(f"{name}: {scorer.help}" for name, scorer in tasks.items()),
    )
    command.add_argument("file", metavar="FILE", help="the results")
    command.add_argument(
        "--split",
        metavar="NAME",
        help=f"for {split}: train, val_seen, val_unseen or, of r2r, val_train_seen; FILE must contain each of its "
        "episodes",
    )
    command.add_argument(
        "--data", metavar="DIR", help=f"for {split}: graphs and annotations (default: $MEMENVS_DATA/vln)"
    )


def run(arguments: argparse.Namespace) -> Any:
    """Score the file and print the result."""
    scorer = scorers()[arguments.task]
    if scorer.needs_split and arguments.split is None:
        raise UserError(f"argument --split: {arguments.task} needs it; see memenvs score --help")
    for name in ("split", "data"):
        if not scorer.needs_split and getattr(arguments, name) is not None:
            raise UserError(
                f"argument --{name}: must not be given with {arguments.task}, whose FILE names its questions"
            )
    return scorer.run(arguments)
