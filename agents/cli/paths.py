"""`memenvs paths`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from memenvs.agents.cli.report import check_out
from memenvs.agents.experiments.config import read_config

ARGUMENTS = """
folders RUN+: folders of runs of one task; their agents play the same episodes
--episodes N=20: episodes that each policy plays
--seed K=1: seed of the episodes
--out OUT_FOLDER: folder of paths.html and its files (default: the run's); needed with several runs
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Draw the paths of runs' agents, random and oracle."""
    for folder in arguments.folders:
        read_config(folder)
    check_out(arguments)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.paths import compare_paths

    with ExitStack() as opened:
        result = compare_paths(
            [opened.enter_context(RunDirectory(folder)) for folder in arguments.folders],
            arguments.out or arguments.folders[0],
            episodes=arguments.episodes,
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
