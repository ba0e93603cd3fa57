"""`memenvs probe`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import read_config

ARGUMENTS = """
folder RUN: folder of the run
--steps N: steps of the trial (default: the preset's)
--count N=100: steps at which attention is recorded
--layout K: number of the layout (default: drawn)
--seed K=1: seed of the trial
--out OUT_FOLDER: folder of the files (default: the run's)
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Record and draw the attention of a run's ReLIC memory."""
    read_config(arguments.folder)

    from memenvs.agents.experiments.attention_probe import probe_run
    from memenvs.agents.experiments.directory import RunDirectory

    with RunDirectory(arguments.folder) as run:
        result = probe_run(
            run,
            arguments.out or arguments.folder,
            steps=arguments.steps,
            count=arguments.count,
            layout=arguments.layout,
            seed=arguments.seed,
            quiet=arguments.json,
        )
    if not arguments.json:
        print("\n".join(result["files"]))
    return result
