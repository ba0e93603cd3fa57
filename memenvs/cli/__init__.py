"""The command line `memenvs`: one module for a group of commands, each imported only when it runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from importlib import import_module

import memenvs
from memenvs.cli.common import Parser, UserError, non_negative_int, positive_int, run_command
from memenvs.registry import ENVIRONMENTS

POLICIES = ("random", "oracle")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Arguments without the program's name; None for those of the process.

    Returns:
        Exit status: 0, 2 for wrong arguments (one line on standard error says which), 130 after Ctrl-C.
    """
    parser = _make_parser()
    arguments = parser.parse_args(argv)
    return run_command(
        f"{parser.prog} {arguments.command}",
        lambda: import_module(f"memenvs.cli.{arguments.module}").run(arguments),
        UserError,
    )


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="memenvs", description="Environments that measure the memory of embodied agents.")
    parser.add_argument("--version", action="version", version=f"memenvs {memenvs.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, module: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(module=module)
        command.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        return command

    listing = add("list", "listing", "every id, what it asks of memory, and what it needs beyond the core install")
    listing.add_argument("--markdown", action="store_true", help="print the table of the README; not with --json")

    rollout = add("rollout", "rollout", "play episodes; mean and standard error of every metric in the final info")
    _add_environment(rollout)
    _add_policy(
        rollout,
        (*POLICIES, "r2r-random"),
        "who plays; r2r-random, for VLN only, takes a random heading and walks straight on",
        seed=None,
    )
    rollout.add_argument("--episodes", type=positive_int, metavar="N", help="episodes (default: 10)")
    rollout.add_argument(
        "--exact",
        action="store_true",
        help="for VLN: each episode of the split once, by the oracle or, in exact expectation over its first headings, r2r-random; "
        "takes no --episodes and no --seed",
    )

    bench = add("bench", "bench", "speed of the vector form under random actions, compile time apart")
    _add_environment(bench)
    bench.add_argument(
        "--num-envs", type=positive_int, default=16, metavar="N", help="environments (default: %(default)s)"
    )
    bench.add_argument(
        "--seconds", type=_positive_float, default=5.0, metavar="S", help="time to measure (default: %(default)s)"
    )
    bench.add_argument("--seed", type=non_negative_int, default=0, metavar="S", help="seed (default: %(default)s)")

    score = add("score", "score", "score a file of trajectories of R2R or NDH; means over a split")
    score.add_argument("task", choices=("r2r", "ndh", "cvdn"), metavar="TASK", help="r2r or ndh (cvdn is the same)")
    score.add_argument(
        "file",
        metavar="FILE",
        help="JSON list of {instr_id (r2r) or inst_idx (ndh), trajectory: [[viewpoint, heading, elevation], ...]}",
    )
    score.add_argument(
        "--split",
        required=True,
        metavar="NAME",
        help="train, val_seen, val_unseen or, of r2r, val_train_seen, all of which FILE must hold",
    )
    score.add_argument("--data", metavar="DIR", help="folder of graphs and annotations (default: $MEMENVS_DATA/vln)")

    house = add("house", "house", "one home: statistics, a map, an export for other simulators")
    which = house.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=non_negative_int, metavar="S", help="the home with this number")
    house.add_argument(
        "--world", choices=("procedural", "suncg_style"), help="which kind of home --seed makes (default: procedural)"
    )
    which.add_argument("--file", metavar="F", help="a file of ProcTHOR houses (.jsonl, .json, either with .gz)")
    house.add_argument(
        "--index", type=non_negative_int, metavar="I", help="which house of the file, from 0 (default: 0)"
    )
    house.add_argument("--out", metavar="MAP.png", help="draw the map seen from above into this file")
    house.add_argument(
        "--glb", metavar="HOUSE.glb", help="export the home as glTF with semantic classes (needs memenvs[export])"
    )

    play = add("play", "play", "drive an environment by keyboard (needs memenvs[play])")
    _add_environment(play)
    play.add_argument("--seed", type=non_negative_int, default=0, metavar="S", help="seed (default: %(default)s)")

    record = add("record", "record", "record a policy as a film; .mp4 needs memenvs[video]")
    _add_environment(record)
    _add_policy(record)
    record.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="film to write: .gif (512 pixels wide at most, 128 colours) or .mp4",
    )
    record.add_argument("--episodes", type=positive_int, default=1, metavar="N", help="episodes (default: %(default)s)")
    record.add_argument(
        "--steps", type=positive_int, metavar="T", help="stop after this many steps (default: no limit)"
    )
    record.add_argument(
        "--frames",
        type=_frame_count,
        metavar="N",
        help="at most so many pictures: of more, those of every second, fourth, ... step are kept (default: 300 in a .gif, no limit in an .mp4)",
    )
    record.add_argument(
        "--fps", type=_frame_rate, default=10.0, metavar="F", help="frames a second, 0.1 to 50 (default: %(default)s)"
    )
    return parser


def _add_environment(command: argparse.ArgumentParser) -> None:
    ids = [row.id for row in ENVIRONMENTS]
    command.add_argument("id", metavar="ID", help=f"one of {', '.join(ids)}; the namespace may be left out")
    command.add_argument(
        "--kwargs", default="{}", metavar="JSON", help='settings of the environment, such as \'{"split": "test"}\''
    )


def _add_policy(
    command: argparse.ArgumentParser, policies: Sequence[str] = POLICIES, who: str = "who plays", seed: int | None = 0
) -> None:
    command.add_argument("--policy", choices=policies, default="random", help=f"{who} (default: %(default)s)")
    command.add_argument(
        "--seed", type=non_negative_int, default=seed, metavar="S", help="seed of environment and policy (default: 0)"
    )


def _frame_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 2, got {text!r}")
    return int(text)


def _positive_float(text: str) -> float:
    value = _float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value


def _frame_rate(text: str) -> float:
    value = _float(text)
    if not 0.1 <= value <= 50.0:  # GIF counts in hundredths of a second, and viewers slow down what is below two
        raise argparse.ArgumentTypeError(f"must be a number from 0.1 to 50, got {text!r}")
    return value


def _float(text: str) -> float:
    """The number, or NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
