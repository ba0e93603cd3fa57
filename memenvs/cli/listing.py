"""`memenvs list`."""

from __future__ import annotations

import argparse

from memenvs.certificate import Verdict
from memenvs.cli.common import UserError, print_json
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec, environments


def run(arguments: argparse.Namespace) -> None:
    """Print the registry; as Markdown the rows of this package only."""
    if arguments.json and arguments.markdown:
        raise UserError("argument --markdown: not allowed with argument --json")
    if arguments.markdown:
        print(markdown_table())
        return
    if arguments.json:
        names = ("id", "family", "remembers", "needs")
        rows = (
            {name: getattr(spec, name) for name in names} | {"policies": [*spec.policies], "verdict": verdict_of(spec)}
            for spec in environments()
        )
        print_json([*rows])
        return
    width = max(len(spec.id) for spec in environments())
    for spec in environments():
        needs = f" (needs {spec.needs})" if spec.needs else ""
        remembers = f"remember {spec.remembers}" if spec.remembers else ""
        print(f"{spec.id:{width}}  {verdict_of(spec) or '-':5}  {remembers}{needs}".rstrip())


def verdict_of(spec: EnvironmentSpec) -> Verdict | None:
    """Return the verdict of the certificate of an id; None if it has none."""
    certificate = spec.load_certificate()
    return None if certificate is None else certificate.verdict


def markdown_table() -> str:
    """Format the registry as the Markdown table of `docs/benchmarks.md`."""
    columns = (
        "id",
        "what must be remembered",
        "verdict",
        "score",
        "oracle at least",
        "random below",
        "scripted",
        "needs",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for spec in ENVIRONMENTS:
        cells = (
            f"`{spec.id}`",
            spec.remembers,
            verdict_of(spec) or "-",
            f"`{spec.score_key}`",
            f"{spec.oracle_at_least:g}",
            f"{spec.random_below:g}",
            ", ".join(f"`{name}`" for name in spec.policies) or "-",
            spec.needs or "-",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
