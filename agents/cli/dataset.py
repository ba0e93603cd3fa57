"""`memenvs dataset` of a trained agent."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import read_config
from memenvs.cli.dataset import card_to_rebuild, summarize, write

DEFAULT_SEED = 1


def write_trials(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write whole evaluation trials of a run's agent as a Minari dataset."""
    config = read_config(folder)
    if not config.kind.acts:
        raise ValueError(f"run must be of an agent that acts, got one that learns to predict in {folder}")
    card = card_to_rebuild(arguments, ("seed", "episodes"))

    from memenvs.agents.experiments.dataset import run_source, seed_of
    from memenvs.agents.experiments.directory import RunDirectory

    chosen_seed = DEFAULT_SEED if arguments.seed is None else arguments.seed
    seed = chosen_seed if card is None else seed_of(card)
    with RunDirectory(folder) as run:
        source = run_source(run, seed, arguments.checkpoint)
        written = write(arguments, source, card)
    return summarize(arguments, written)
