"""`memenvs-agents dataset`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import read_config
from memenvs.cli.dataset import card_to_rebuild, summarize, write

DEFAULT_SEED = 1


def dataset(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Write whole evaluation trials of a run's agent as a Minari dataset."""
    config = read_config(options.folder)
    if not config.kind.acts:
        raise ValueError(f"run must be of an agent that acts, got one that learns to predict in {options.folder}")
    card = card_to_rebuild(options, ("seed", "episodes"))

    from memenvs.agents.experiments.dataset import run_source, seed_of
    from memenvs.agents.experiments.directory import RunDirectory

    given = DEFAULT_SEED if options.seed is None else options.seed
    seed = given if card is None else seed_of(card)
    with RunDirectory(options.folder) as run:
        source = run_source(run, seed, options.checkpoint)
        written = write(options, source, card)
    return summarize(options, written)
