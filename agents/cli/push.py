"""`memenvs push`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import read_config

ARGUMENTS = """
run RUN: folder of the run
target TARGET: folder to write; or hf:ORGANISATION/NAME on the Hugging Face Hub, after `hf auth login`
--checkpoint FILE: file in the run's folder (default: the one that is evaluated)
--private: make a new repository private; for the Hub only
"""


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
