"""`memenvs score`: score a file of results of one task."""

from __future__ import annotations

import argparse

from memenvs.cli.common import UserError
from memenvs.cli.extensions import Scorer, load_extensions


def scorers() -> dict[str, Scorer]:
    """Collect the scorers of all families by task."""
    return {name: scorer for extension in load_extensions() for name, scorer in extension.scorers.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    found = scorers()
    split = ", ".join(name for name, scorer in found.items() if scorer.needs_split)
    parser.add_argument(
        "task",
        choices=tuple(found),
        metavar="TASK",
        help="; ".join(f"{name}: {each.help}" for name, each in found.items()),
    )
    parser.add_argument("file", metavar="FILE", help="the results")
    parser.add_argument(
        "--split",
        metavar="NAME",
        help=f"for {split}: train, val_seen, val_unseen or, of r2r, val_train_seen; FILE must contain each of its "
        "episodes",
    )
    parser.add_argument(
        "--data", metavar="DIR", help=f"for {split}: graphs and annotations (default: $MEMENVS_DATA/vln)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Score the file and print the result."""
    scorer = scorers()[arguments.task]
    if scorer.needs_split and arguments.split is None:
        raise UserError(f"argument --split: {arguments.task} needs it; see memenvs score --help")
    for name in ("split", "data"):
        if not scorer.needs_split and getattr(arguments, name) is not None:
            raise UserError(
                f"argument --{name}: must not be given with {arguments.task}, whose FILE names its questions"
            )
    scorer.run(arguments)
