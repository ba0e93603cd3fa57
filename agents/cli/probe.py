"""`memenvs probe`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import read_config
from memenvs.cli.common import non_negative_int, output_folder, positive_int


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("folder", type=Path, help="folder of the run")
    command.add_argument("--steps", type=positive_int, help="steps of the trial; default the preset's")
    command.add_argument(
        "--count", type=positive_int, default=100, help="steps at which attention is recorded (default 100)"
    )
    command.add_argument("--layout", type=non_negative_int, help="number of the layout; default drawn")
    command.add_argument("--seed", type=non_negative_int, default=1, help="seed of the trial (default 1)")
    command.add_argument("--out", type=output_folder, help="folder of the files; default the run's")


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
