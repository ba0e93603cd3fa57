"""`memenvs score`: score a file of results of one task."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from memenvs.cli.common import UserError

#: Modules with `SCORERS`, task -> `Scorer`. They are imported to name the tasks, so they import what they need late.
FAMILIES = ("memenvs.vln.cli", "memenvs.verbalization.cli")


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """Scorer of a file of results, a task of `memenvs score`.

    Attributes:
        help: What FILE is.
        run: Scores it, prints the result and returns its JSON document; gets the arguments of `memenvs score`.
        needs_split: Whether --split names the episodes; otherwise FILE does.
    """

    help: str
    run: Callable[[argparse.Namespace], Any]
    needs_split: bool = False


def scorers() -> dict[str, Scorer]:
    """Collect the scorers of all families by task."""
    return {name: scorer for family in FAMILIES for name, scorer in import_module(family).SCORERS.items()}


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
