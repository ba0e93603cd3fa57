"""`memenvs pull`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import check_new
from memenvs.cli.common import output_folder


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "source",
        help="extobjnav-small, which comes with the package; folder that `push` has written; or "
        "hf:ORGANISATION/NAME[@REVISION] on the Hub",
    )
    command.add_argument("--out", type=output_folder, required=True, help="folder of the run to make")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make a run folder of an agent of this package, in a folder or on the Hugging Face Hub."""
    check_new(arguments.out)

    from memenvs.agents.presets.hub import pull as pull_agent
    from memenvs.agents.presets.pretrained import PRETRAINED, unpack_pretrained

    fetch = unpack_pretrained if arguments.source in PRETRAINED else pull_agent
    folder = fetch(arguments.source, arguments.out)
    if not arguments.json:
        print(f"run: {folder}")
    return {"run": str(folder)}
