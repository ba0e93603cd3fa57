"""`memenvs pull`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.experiments.config import check_new

ARGUMENTS = """
source SOURCE: extobjnav-small, which comes with the package; folder that `push` has written; or
    hf:ORGANISATION/NAME[@REVISION] on the Hub
--out OUT_FOLDER!: folder of the run to make
"""


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
