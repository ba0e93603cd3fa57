"""`memenvs paths`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from memenvs.agents.cli.report import check_out
from memenvs.agents.experiments.config import read_config
from memenvs.cli.common import non_negative_int, output_folder, plain_name, positive_int


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="folder",
        help="folders of runs of one task; their agents play the same episodes",
    )
    command.add_argument(
        "--episodes", type=positive_int, default=20, help="episodes that each policy plays (default 20)"
    )
    command.add_argument("--maps", type=non_negative_int, default=4, help="episodes that are drawn (default 4)")
    command.add_argument("--metric", help="metric by step (default the preset's score)")
    command.add_argument(
        "--policies",
        type=plain_name,
        nargs="+",
        metavar="POLICY",
        help="some of agent (of each run), random, oracle (default all)",
    )
    command.add_argument("--seed", type=non_negative_int, default=1, help="seed of the episodes (default 1)")
    command.add_argument(
        "--out",
        type=output_folder,
        help="folder of command.html and its files; default the run's, needed with several runs",
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Draw the paths of runs' agents, random and oracle."""
    for folder in arguments.folders:
        read_config(folder)
    check_out(arguments)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.paths import POLICIES, compare_paths

    with ExitStack() as opened:
        result = compare_paths(
            [opened.enter_context(RunDirectory(folder)) for folder in arguments.folders],
            arguments.out or arguments.folders[0],
            episodes=arguments.episodes,
            maps=arguments.maps,
            metric=arguments.metric,
            policies=arguments.policies or POLICIES,
            seed=arguments.seed,
            quiet=arguments.json,
        )
    if not arguments.json:
        width = max(map(len, result["policies"]))
        for name, curve in result["policies"].items():
            steps = range(0, len(curve["mean"]), max(1, (len(curve["mean"]) - 1) // 10))
            print(f"{name:{width}} {result['metric']}: " + ", ".join(f"{curve['mean'][t]:.3g} ({t})" for t in steps))
        print("mean over the episodes (after this number of steps)\n" + "\n".join(result["files"]))
    return result
