"""Commands about a robot's life: `score emv` and `verbalization questions`.

Every command that names policies imports this module. Each function therefore imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.cli.common import as_user_error, check_output
from memenvs.cli.extensions import Extension, Scorer
from memenvs.cli.parser import non_negative_int, positive_int

_PRESETS = ("faithful", "debiased")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `memenvs verbalization`."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(parser))
    questions = commands.add_parser("questions", help="write a file of questions, for a model to fill in its answers")
    questions.add_argument("out", metavar="OUT.json", help="file to write")
    questions.add_argument("--preset", choices=_PRESETS, default="debiased", help="default: %(default)s")
    questions.add_argument("--split", default="test", metavar="NAME", help="default: %(default)s")
    questions.add_argument("--scale", default="laptop", metavar="NAME", help="default: %(default)s")
    questions.add_argument("--data-seed", type=non_negative_int, default=0, metavar="S", help="default: %(default)s")
    questions.add_argument(
        "--lengths", type=positive_int, nargs="+", default=[1, 2, 3, 5, 10], metavar="N", help="default: 1 2 3 5 10"
    )
    questions.add_argument(
        "--questions", type=positive_int, default=60, metavar="N", help="about each history (default: %(default)s)"
    )
    questions.add_argument(
        "--paraphrases", default="all", metavar="NAME", help="all, seen or held_out (default: %(default)s)"
    )
    questions.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write a file of questions, the only action."""
    from memenvs.verbalization.language.question_sets import QuestionSet, write_questions

    out = check_output("OUT.json", arguments.out, ".json")
    names = ("preset", "split", "scale", "data_seed", "lengths", "questions", "paraphrases")
    with as_user_error("OUT.json", ValueError, OSError):
        count = write_questions(out, QuestionSet(**{name: getattr(arguments, name) for name in names}))
    if not arguments.json:
        print(f"{count} questions in {out}; fill in the answers, then: memenvs score emv {out}")
    return {"file": str(out), "questions": count}


def _score(arguments: argparse.Namespace) -> dict[str, Any]:
    from memenvs.verbalization.language.question_sets import score_file, summarise

    with as_user_error("FILE", ValueError, OSError):
        summary = summarise(score_file(Path(arguments.file)))
    if not arguments.json:
        _print_summary(summary)
    return summary


def _print_summary(summary: dict[str, Any]) -> None:
    """Print right answers by kind and length, facts, and categories."""
    rows: dict[str, dict[str, float]] = summary["correct"]
    columns = list(next(iter(rows.values()), {}))
    print(f"{'right answers, %, by episodes':30}" + "".join(f"{column:>7}" for column in columns))
    for name, shares in rows.items():
        cells = (f"{100 * shares[column]:.1f}" if column in shares else "-" for column in columns)
        print(f"{name:30}" + "".join(f"{cell:>7}" for cell in cells))
    facts = ", ".join(f"{name} {100 * share:.1f} %" for name, share in summary["facts"].items() if share is not None)
    print(f"facts: {facts}")
    for name, count in summary["categories"].items():
        print(f"{name:40}{count:>7}")


EXTENSION = Extension(
    family="verbalization",
    scorers={"emv": Scorer(help="a file of `memenvs verbalization questions` with answers", run=_score)},
)
