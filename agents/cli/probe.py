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
        for head in [*result["heads"], result["uniform"]]:
            name = "for comparison" if head is result["uniform"] else f"layer {head['layer']} head {head['head']}"
            shares = ", ".join(f"{key} {head[key]:.2f}" for key in ("sink", "own", "earlier", "evenness", "invariance"))
            print(f"{name}: {head['pattern']:17} {shares}")
        print("own, earlier: shares of the attention off the sink, to steps of the same episode and of earlier ones")
        print("evenness, invariance: its overlap with uniform attention, and between steps of different episodes")
        print("\n".join(result["files"]))
    return result
