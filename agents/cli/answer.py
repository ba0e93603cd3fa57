"""`memenvs-agents answer`."""

from __future__ import annotations

import argparse
from typing import Any

from memenvs.agents.cli.ask import load_model
from memenvs.cli.common import UserError, as_user_error
from memenvs.progress import progress_bar


def answer(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Fill a model's answers into a file of questions."""
    if not options.file.is_file():
        raise UserError(f"argument file: no file at {options.file}")
    model = load_model(options)

    from memenvs.agents.papers.emv.conversation import fill_in_answers

    with as_user_error("file", ValueError, OSError), progress_bar("answering", quiet=options.json) as progress:
        count = fill_in_answers(model, options.file, progress)
    if not options.json:
        print(f"{count} answers in {options.file}; their score: memenvs score emv {options.file}")
    return {"file": str(options.file), "answers": count}
