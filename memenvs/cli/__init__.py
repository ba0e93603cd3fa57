"""The command line `memenvs`.

Each command is a module with a function `run`, imported only when the command runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

import memenvs
from memenvs.cli.common import (
    Parser,
    UserError,
    add_import_argument,
    add_settings_argument,
    frame_count,
    frame_rate,
    import_modules,
    lossy_streams,
    non_negative_int,
    output_folder,
    positive_float,
    positive_int,
    run_command,
)
from memenvs.cli.doctor import PARTS, part_name
from memenvs.cli.extensions import load_extensions
from memenvs.cli.policies import POLICIES, policy_help
from memenvs.cli.score import add_arguments as add_score_arguments
from memenvs.compilation import COMPILATION
from memenvs.data import UNKNOWN_ASSETS
from memenvs.registry import environments


@lossy_streams("memenvs")
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; None for those of the process.

    Returns:
        Exit status: 0, 2 for wrong arguments or output that cannot be written (one line on standard error says which),
        130 after Ctrl-C. `doctor` ends with 1 where something does not work.
    """
    parser = make_parser()
    arguments = parser.parse_args(argv)

    def command() -> None:
        import_modules(arguments.imports)
        run = arguments.run or import_module(f"memenvs.cli.{arguments.module}").run
        COMPILATION.register()
        run(arguments)

    return run_command(f"{parser.prog} {arguments.command}", command, UserError)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    parser = Parser(
        prog="memenvs",
        description="Environments that measure the memory of embodied agents.",
        epilog="The command memenvs-agents trains, evaluates and reports agents.",
        sibling="memenvs.agents.cli.parser:make_parser",
    )
    parser.add_argument("--version", action="version", version=f"memenvs {memenvs.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, module: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(module=module, run=None)
        command.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        add_import_argument(command)
        return command

    listing = add("list", "listing", "every id, what must be remembered, and what it needs beyond the core install")
    text = "print a Markdown table, also with the scores of oracle and random policy; not with --json"
    listing.add_argument("id", nargs="?", metavar="ID", help="show this one: spaces, settings, scores, certificate")
    listing.add_argument("--markdown", action="store_true", help=text)
    _add_rollout_arguments(
        add("rollout", "rollout", "play episodes; mean and standard error of every metric in the final info")
    )
    _add_bench_arguments(
        add("bench", "bench", "speed of the vector environment with random actions, compilation apart")
    )
    _add_house_arguments(
        add("house", "house", "one home: statistics, a map, an export for other simulators; or a check of a file")
    )
    assets = add("assets", "assets", "sizes of assets, which files of ProcTHOR houses need, from a database of assets")
    assets.add_argument(
        "databases",
        nargs="+",
        metavar="DATABASE",
        help="ProcTHOR's asset-database.json, what ai2thor's GetAssetDatabase returns, or Objathor's annotations.json",
    )
    assets.add_argument(
        "--out", required=True, metavar="FILE", help="file to write, asset_sizes.json.gz beside the house file"
    )
    play = add("play", "play", "drive an environment by keyboard (needs memenvs[play])")
    _add_environment(play)
    play.add_argument("--seed", type=non_negative_int, default=0, metavar="S", help="seed (default: %(default)s)")
    _add_record_arguments(add("record", "record", "record a policy as a video; .mp4 needs memenvs[video]"))

    _add_dataset_arguments(
        add("dataset", "dataset", "write whole trials of a policy as a Minari dataset (needs memenvs[minari])")
    )
    add_score_arguments(
        add("score", "score", "score a file of results: trajectories of R2R or NDH, or answers about a robot's life")
    )
    certify = add(
        "certify",
        "certify",
        "how much of an environment needs a memory: scores of a policy without one, of windows, of an ideal one",
    )
    _add_id(certify)
    certify.add_argument("--quick", action="store_true", help="play 40 trials in place of 200, for a first estimate")
    certify.add_argument("--out", metavar="FILE", help="write the certificate into this .json file")
    certify.add_argument(
        "--rows", metavar="FILE", help="a .json file of rows that were measured elsewhere, such as trained attacks"
    )
    certify.add_argument(
        "--certificate",
        metavar="FILE",
        help="add --rows or --train to this certificate and play nothing, if the hash of the episodes still fits",
    )
    certify.add_argument(
        "--train",
        type=positive_int,
        metavar="STEPS",
        help="also train attacks, by one recipe for every id, for this many environment steps each: a policy of the "
        "present alone, and one with a window of 16 steps; at least one rollout of 64 environments: "
        "16,384 to 65,536 steps by id (needs memenvs[agents])",
    )
    certify.add_argument(
        "--runs", metavar="FOLDER", help="folder of the trained attacks, which resume there (default: runs/certify-ID)"
    )
    _add_id(add("test-set", "test_sets", "the trials that everyone plays: seeds, settings and their hash"))
    add("warmup", "warmup", "compile what the environments need ahead of their first use; takes a minute or two, once")
    doctor = add("doctor", "doctor", "what works on this machine, and why the rest does not")
    needed, parts = ([part.name for part in PARTS if part.needed or not only] for only in (True, False))
    doctor.add_argument(
        "parts",
        nargs="*",
        type=part_name,
        metavar="PART",
        help="parts to check; the exit status is 1 where one of them does not work (default: all, of which only "
        f"{' and '.join(needed)} must work); {', '.join(parts)}",
    )

    for extension in load_extensions():
        for each in extension.commands:
            command = add(each.name, "", each.help)
            command.set_defaults(run=each.run)
            each.add_arguments(command)
    return parser


def _add_rollout_arguments(rollout: argparse.ArgumentParser) -> None:
    _add_environment(rollout)
    _add_policy(rollout, seed=None)
    rollout.add_argument("--episodes", type=positive_int, metavar="N", help="episodes (default: 10)")
    exact = " or ".join(name for extension in load_extensions() for name in extension.exact_policies)
    families = ", ".join(extension.family for extension in load_extensions() if extension.exact_policies)
    rollout.add_argument(
        "--exact",
        action="store_true",
        help=f"for {families} with the policy {exact}: play each episode of the split once and print exact "
        "expectations over the random choices of the policy; takes no --episodes and no --seed",
    )


def _add_bench_arguments(bench: argparse.ArgumentParser) -> None:
    _add_environment(bench)
    bench.add_argument(
        "--num-envs", type=positive_int, default=16, metavar="N", help="environments (default: %(default)s)"
    )
    bench.add_argument(
        "--seconds", type=positive_float, default=5.0, metavar="S", help="time to measure (default: %(default)s)"
    )
    bench.add_argument("--seed", type=non_negative_int, default=0, metavar="S", help="seed (default: %(default)s)")


def _add_house_arguments(house: argparse.ArgumentParser) -> None:
    source = house.add_mutually_exclusive_group(required=True)
    source.add_argument("--seed", type=non_negative_int, metavar="S", help="the home with this number")
    house.add_argument(
        "--world", choices=("procedural", "suncg_style"), help="which kind of home --seed makes (default: procedural)"
    )
    source.add_argument("--file", metavar="F", help="a file of ProcTHOR houses (.jsonl, .json, either with .gz)")
    house.add_argument(
        "--index", type=non_negative_int, metavar="I", help="which house of the file, from 0 (default: 0)"
    )
    house.add_argument(
        "--asset-sizes", metavar="F", help="sizes of the file's assets (default: asset_sizes.json.gz beside it)"
    )
    house.add_argument(
        "--unknown-assets",
        choices=UNKNOWN_ASSETS,
        help="assets without a size get that of their class, are left out, or are an error (default: class)",
    )
    house.add_argument(
        "--check", metavar="ID", help="list the homes of --file that this task in homes cannot play, and why"
    )
    house.add_argument("--out", metavar="MAP.png", help="draw the map seen from above into this file")
    house.add_argument(
        "--json-out",
        metavar="HOUSE.json",
        help="write rooms, doors and shapes of the home into this file, which --file reads without sizes of assets",
    )
    house.add_argument(
        "--glb", metavar="HOUSE.glb", help="export the home as glTF with semantic classes (needs memenvs[export])"
    )
    house.add_argument(
        "--habitat",
        type=output_folder,
        metavar="FOLDER",
        help="add the home to a scene dataset of habitat-sim in this folder: stage, semantic ids, and, if the package "
        "is installed, navigation mesh (needs memenvs[export])",
    )


def _add_record_arguments(record: argparse.ArgumentParser) -> None:
    _add_environment(record)
    _add_policy(record)
    record.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="video to write: .gif (512 pixels wide at most, 128 colours) or .mp4",
    )
    record.add_argument("--episodes", type=positive_int, default=1, metavar="N", help="episodes (default: %(default)s)")
    record.add_argument(
        "--steps", type=positive_int, metavar="T", help="stop after this many steps (default: no limit)"
    )
    record.add_argument(
        "--frames",
        type=frame_count,
        metavar="N",
        help="most frames to keep; longer videos keep every second, fourth, ... step "
        "(default: 300 in a .gif, no limit in an .mp4)",
    )
    record.add_argument(
        "--fps", type=frame_rate, default=10.0, metavar="F", help="frames a second, 0.1 to 50 (default: %(default)s)"
    )


def _add_dataset_arguments(dataset: argparse.ArgumentParser) -> None:
    dataset.add_argument("id", nargs="?", metavar="ID", help="as of `memenvs rollout`")
    add_settings_argument(dataset, "settings of the environment")
    dataset.add_argument(
        "--policy",
        metavar="NAME",
        help="who plays, as in `memenvs rollout` (default: random); `memenvs-agents dataset RUN` writes trials of a "
        "trained agent",
    )
    dataset.add_argument(
        "--seed", type=non_negative_int, metavar="S", help="seed of environment and policy (default: 0)"
    )
    dataset.add_argument(
        "--episodes",
        type=positive_int,
        metavar="N",
        help="episodes (default: 10); the trial in which this number is reached is played to its end",
    )
    add_dataset_outputs(dataset)


def add_dataset_outputs(dataset: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that writes a dataset which say where, and over what."""
    dataset.add_argument(
        "--out",
        required=True,
        metavar="NAME-vN",
        help="Minari id of the dataset, such as darkroom/oracle-v0; it is written below the folder that "
        "MINARI_DATASETS_PATH names (default: ~/.minari/datasets)",
    )
    dataset.add_argument(
        "--append", action="store_true", help="add the episodes to that dataset, which must be of the same source"
    )
    dataset.add_argument(
        "--rebuild",
        metavar="CARD",
        help="make the dataset of this card.json, or of the folder that it is in, anew, and check every bit; with "
        "--out and --json alone",
    )


def _add_id(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", metavar="ID", help="as of `memenvs rollout`, with its default settings")


def _add_environment(command: argparse.ArgumentParser) -> None:
    ids = [spec.id for spec in environments()]
    command.add_argument(
        "id",
        metavar="ID",
        help=f"one of {', '.join(ids)}; the namespace may be left out; or any other id of Gymnasium; or MODULE:ID, "
        "which imports the module that registers it",
    )
    add_settings_argument(command, "settings of the environment")


def _add_policy(command: argparse.ArgumentParser, seed: int | None = 0) -> None:
    who = "; ".join(
        [f"who plays: {' or '.join(POLICIES)}", *(f"{name}, {text}" for name, text in policy_help().items())]
    )
    command.add_argument("--policy", metavar="NAME", default="random", help=f"{who} (default: %(default)s)")
    command.add_argument(
        "--seed", type=non_negative_int, default=seed, metavar="S", help="seed of environment and policy (default: 0)"
    )
