"""`memenvs answer`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.cli.ask import load_model
from memenvs.cli.common import UserError, as_user_error
from memenvs.progress import progress_bar

ARGUMENTS = """
model MODEL?: folder of a run of the preset episodic-qa, or a checkpoint of one (default: the model of the package)
file RESULTS: the questions; answers that are there are replaced
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fill a model's answers into a file of questions."""
    if not arguments.file.is_file():
        raise UserError(f"argument file: no file at {arguments.file}")
    model = load_model(arguments)

    from memenvs.agents.papers.emv.conversation import fill_in_answers

    with as_user_error("file", ValueError, OSError), progress_bar("answering", quiet=arguments.json) as progress:
        count = fill_in_answers(model, arguments.file, progress)
    if not arguments.json:
        print(f"{count} answers in {arguments.file}; their score: memenvs score emv {arguments.file}")
    return {"file": str(arguments.file), "answers": count}
