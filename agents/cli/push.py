"""`memenvs push`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import read_config


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("run", type=Path, help="folder of the run")
    command.add_argument(
        "target", help="folder to write; or hf:ORGANISATION/NAME on the Hugging Face Hub, after `hf auth login`"
    )
    command.add_argument("--checkpoint", help="file in the run's folder (default the one that is evaluated)")
    command.add_argument("--private", action="store_true", help="make a new repository private; for the Hub only")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the agent of a run into a folder, or upload it to the Hugging Face Hub."""
    read_config(arguments.run)

    from memenvs.agents.presets.hub import HUB, push_to_hub, save_to_folder

    if arguments.target.startswith(HUB):
        place = push_to_hub(arguments.run, arguments.target, checkpoint=arguments.checkpoint, private=arguments.private)
    else:
        if arguments.private:
            raise ValueError(f"--private is for names on the Hub, which begin with {HUB!r}, got {arguments.target!r}")
        place = str(save_to_folder(arguments.run, arguments.target, checkpoint=arguments.checkpoint))
    if not arguments.json:
        print(f"written: {place}")
    return {"agent": place}
