"""Commands about a robot's life: `score emv`, `verbalization questions | rate | gate`.

Every command that names policies imports this module. Each function therefore imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memenvs.cli.common import UserError, as_user_error, check_output, print_json
from memenvs.cli.extensions import Extension, Scorer
from memenvs.cli.parser import non_negative_int, positive_int
from memenvs.progress import progress_bar

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
    rate = commands.add_parser("rate", help="rate the answers of a file in seven categories; goes on where it stopped")
    rate.add_argument("file", metavar="FILE", help="answers; the ratings go to a file beside it")
    rate.add_argument("--count", type=positive_int, default=100, metavar="N", help="answers (default: %(default)s)")
    gate = commands.add_parser("gate", help="fail if a model without memory is right too often")
    gate.add_argument("--preset", choices=_PRESETS, default="debiased", help="default: %(default)s")
    gate.add_argument(
        "--histories", type=positive_int, default=500, metavar="N", help="of each length (default: %(default)s)"
    )
    gate.add_argument("--seed", type=non_negative_int, default=0, metavar="S", help="default: %(default)s")
    for command in (questions, rate, gate):
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Run one of the actions."""
    actions: dict[str, Callable[[argparse.Namespace], dict[str, Any] | None]]
    actions = {"questions": _write_questions, "rate": _rate, "gate": _gate}
    return actions[arguments.action](arguments)


def _write_questions(arguments: argparse.Namespace) -> dict[str, Any]:
    from memenvs.verbalization.language.question_sets import QuestionSet, write_questions

    out = check_output("OUT.json", arguments.out, ".json")
    names = ("preset", "split", "scale", "data_seed", "lengths", "questions", "paraphrases")
    with as_user_error("OUT.json", ValueError, OSError):
        count = write_questions(out, QuestionSet(**{name: getattr(arguments, name) for name in names}))
    if not arguments.json:
        print(f"{count} questions in {out}; fill in the answers, then: memenvs score emv {out}")
    return {"file": str(out), "questions": count}


def _rate(arguments: argparse.Namespace) -> dict[str, Any]:
    from memenvs.verbalization.language.rating import rate, ratings_path
    from memenvs.verbalization.language.score import CATEGORIES

    path = Path(arguments.file)
    with as_user_error("FILE", ValueError, OSError):
        ratings = rate(path, arguments.count)
    counts = dict(zip(CATEGORIES, ratings.by_category, strict=True))
    if not arguments.json:
        print(f"\n{ratings.rated} ratings in {ratings_path(path)}; {ratings.equal} of them as the scorer")
        for name, count in counts.items():
            print(f"{name:34}  {count}")
    return {"rated": ratings.rated, "as_the_scorer": ratings.equal, "categories": counts}


def _gate(arguments: argparse.Namespace) -> None:
    from memenvs.verbalization.language.gate import measure
    from memenvs.verbalization.language.text_only import BANDS, TARGETS, failures

    with progress_bar("questions", quiet=arguments.json) as progress:
        rates = measure(arguments.preset, arguments.histories, arguments.seed, progress)
    if arguments.json:
        print_json({kind: rate._asdict() for kind, rate in rates.items()})
    else:
        for kind, rate in rates.items():
            low, high = BANDS.get(kind, (0.0, 0.0)) if arguments.preset == "faithful" else (0.0, TARGETS.get(kind, 0.0))
            wanted = f"{100 * low:.0f} to {100 * high:.0f} %" if high else ""
            print(f"{kind:10}  {100 * rate.share:5.1f} % of {rate.questions}  {wanted:12}  {rate.level}")
    wrong = failures(rates, arguments.preset)
    if wrong:
        raise UserError("; ".join(wrong))


def _score(arguments: argparse.Namespace) -> dict[str, Any]:
    from memenvs.verbalization.language.plots import check_plots, draw_tables
    from memenvs.verbalization.language.question_sets import score_file
    from memenvs.verbalization.language.tables import make_tables

    folder = None if arguments.plots is None else Path(arguments.plots)
    if folder is not None:
        with as_user_error("--plots", OSError, ImportError):
            check_plots(folder)
    with as_user_error("FILE", ValueError, OSError):
        tables = make_tables(score_file(Path(arguments.file)))
    if folder is not None:
        draw_tables(tables, folder)
    if not arguments.json:
        print("\n\n".join(table.text() for table in tables.values()))
    return {name: table.data() for name, table in tables.items()}


EXTENSION = Extension(
    family="verbalization",
    scorers={
        "emv": Scorer(help="a file of `memenvs verbalization questions` with answers", run=_score, has_plots=True)
    },
)
