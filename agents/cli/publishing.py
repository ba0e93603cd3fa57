"""`memenvs-agents push` and `pull`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import check_new, read_config


def push(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Write the agent of a run into a folder, or upload it to the Hugging Face Hub."""
    read_config(options.run)

    from memenvs.agents.presets.hub import HUB, push_to_hub, save_to_folder

    if options.target.startswith(HUB):
        place = push_to_hub(options.run, options.target, checkpoint=options.checkpoint, private=options.private)
    else:
        if options.private:
            raise ValueError(f"--private is for names on the Hub, which begin with {HUB!r}, got {options.target!r}")
        place = str(save_to_folder(options.run, options.target, checkpoint=options.checkpoint))
    if not options.json:
        print(f"written: {place}")
    return {"agent": place}


def pull(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Make a run folder of an agent of this package, in a folder or on the Hugging Face Hub."""
    check_new(options.out)

    from memenvs.agents.presets.hub import pull as pull_agent
    from memenvs.agents.presets.pretrained import PRETRAINED, unpack_pretrained

    fetch = unpack_pretrained if options.source in PRETRAINED else pull_agent
    folder = fetch(options.source, options.out)
    if not options.json:
        print(f"run: {folder}")
    return {"run": str(folder)}
