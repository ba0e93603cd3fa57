"""`memenvs certify`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from memenvs.certificate import DATA, Certificate, PolicyRow, read_certificate, write_certificate
from memenvs.certificates.engine import certify, check_hash, read_rows
from memenvs.cli.common import UserError, as_user_error, check_output, environment_spec
from memenvs.progress import progress_bar
from memenvs.registry import EnvironmentSpec

ARGUMENTS = """
id ID: as of `memenvs rollout`, with its default settings
--quick: play 40 trials in place of 200, for a first estimate
--out FILE: write the certificate into this .json file
--rows FILE: a .json file of rows that were measured elsewhere, such as trained attacks
--certificate FILE: add --rows or --train to this certificate and play nothing, if the hash of the episodes still fits
--train N: also train attacks, by one recipe for every id, for this many environment steps each: a policy of the present
    alone, and one with a window of 16 steps; at least one rollout of 64 environments: 16,384 to 65,536 steps by id
    (needs memenvs[agents])
--runs FOLDER: folder of the trained attacks, which resume there (default: runs/certify-ID)
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make a certificate, print it, and write it into a file."""
    spec = environment_spec(arguments.id)
    out = None if arguments.out is None else check_output("--out", arguments.out, ".json")
    if arguments.quick and out is not None and out.absolute().parent == DATA:
        raise UserError(
            f"argument --out: certificates that are shipped have 200 trials, got {arguments.out!r} and --quick"
        )
    adds_rows = arguments.rows is not None or arguments.train is not None
    if arguments.certificate is not None and (not adds_rows or arguments.quick):
        raise UserError("argument --certificate: goes with --rows or --train, and without --quick")
    if arguments.certificate is not None:
        with as_user_error("--certificate", ValueError, FileNotFoundError):
            certificate = read_certificate(Path(arguments.certificate))
            if certificate.id != spec.id:
                raise ValueError(f"{arguments.certificate}: id must be {spec.id!r}, got {certificate.id!r}")
            check_hash(certificate)
    if arguments.train is not None:
        _check_training(arguments.train, spec)
    if arguments.certificate is None:
        with as_user_error("ID", ValueError), progress_bar("certifying", quiet=arguments.json) as progress:
            certificate = certify(spec.id, quick=arguments.quick, progress=progress)
    if arguments.train is not None:
        certificate = certificate.with_rows(_trained_rows(arguments, spec))
    if arguments.rows is not None:
        with as_user_error("--rows", ValueError, FileNotFoundError):
            certificate = certificate.with_rows(read_rows(Path(arguments.rows), certificate))
    if out is not None:
        with as_user_error("--out", ValueError):
            write_certificate(certificate, out)
    if not arguments.json:
        print("\n".join(certificate_lines(certificate)))
    return certificate.to_json()


def _attacks() -> ModuleType:
    return import_module("memenvs.agents.attacks")  # by name, since this package does without PyTorch


def _check_training(steps: int, spec: EnvironmentSpec) -> None:
    """Check --train before anything is played."""
    attacks = _attacks()
    with as_user_error("--train", ValueError, TypeError):
        for window in attacks.WINDOWS:
            attacks.check_config(attacks.attack_config(spec.id, window, steps=steps))


def _trained_rows(arguments: argparse.Namespace, spec: EnvironmentSpec) -> list[PolicyRow]:
    """Train the attacks: a policy of the present alone, and one with a window of 16 steps."""
    attacks = _attacks()
    folder = Path(arguments.runs or f"runs/certify-{spec.name}")
    with as_user_error("--train", ValueError, TypeError):
        return [
            attacks.trained_row(spec.id, window, folder, steps=arguments.train, quiet=arguments.json)
            for window in attacks.WINDOWS
        ]


def certificate_lines(certificate: Certificate) -> Iterator[str]:
    """Format a certificate as the lines that people read."""
    quick = " (quick: too few to ship)" if certificate.is_quick else ""
    split = "" if certificate.split is None else f", split {certificate.split}"
    played = f"{certificate.trials} trials{quick} of test set {certificate.test_set}{split}"
    yield f"{certificate.id}: {verdict_text(certificate)}"
    yield f"{played}; score: {certificate.score_key}"
    cells = table_cells(certificate)
    width = max(len(row[0]) for row in cells)
    yield f"{'policy':{width}}  {'way':8}  {'window':>6}  {'score':>18}  {'shown':>6}"
    for name, way, window, score, share in cells:
        yield f"{name:{width}}  {way:8}  {window:>6}  {score:>18}  {share:>6}"
    yield "ideal policy, memory wiped every k steps: " + ", ".join(
        f"{k}: {share}" for k, share in horizon_cells(certificate)
    )
    yield from facts(certificate)


def table_cells(certificate: Certificate) -> list[tuple[str, str, str, str, str]]:
    """Cells of a row for each policy, from the lowest score up.

    They are name, way, window, score and score shown.
    """
    return [
        (
            row.name + (f" ({row.training.budget:,} steps)" if row.training is not None else ""),
            row.way,
            "all" if row.window is None else str(row.window),
            f"{row.mean:.4g} +- {row.stderr:.2g}",
            share_text(certificate.share(row.mean)),
        )
        for row in sorted(certificate.rows, key=lambda row: row.mean)
    ]


def horizon_cells(certificate: Certificate) -> list[tuple[str, str]]:
    """Steps between two wipes, and the score shown, for each point of the horizon curve.

    The last one is "never".
    """
    points = [(str(point.steps), point.mean) for point in certificate.horizon]
    points.append(("never", certificate.row("ideal").mean))
    return [(steps, share_text(certificate.share(mean))) for steps, mean in points]


def verdict_text(certificate: Certificate) -> str:
    """Format the verdict, with a note if it is close."""
    return certificate.verdict + (" (close: a threshold lies within 2 standard errors)" if certificate.is_close else "")


def facts(certificate: Certificate) -> Iterator[str]:
    """Format what a certificate says beside scores, a sentence each."""
    if certificate.rule_settings:
        settings = " and ".join(f"{name}={value!r}" for name, value in certificate.rule_settings.items())
        yield f"all policies played these episodes with {settings}, as no rule can read what the id observes"
    back = certificate.steps_back
    if back is not None:
        yield (
            f"the fact that an episode needs lies {back.median:g} steps back (median; 10 % quantile {back.low:g}, "
            f"90 % quantile {back.high:g})"
        )
    if certificate.bits is not None:
        yield f"bits to remember: {certificate.bits:.3g}"
    if certificate.ignored_steps == "proved":
        yield "actions at phase 0 are ignored: other ones changed no bit"
    if certificate.channel == "none":
        yield "all actions before the query are ignored: no policy can leave itself a note"
    yield f"hash of 100 episodes: {certificate.episode_hash}"


def share_text(share: float | None) -> str:
    """Format a score shown; "-" where no memory is needed."""
    return "-" if share is None else f"{share:.2f}"
