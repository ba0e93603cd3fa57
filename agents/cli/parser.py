"""The arguments of every command; imports nothing heavy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import memenvs
from memenvs.cli import add_dataset_outputs
from memenvs.cli.common import (
    Parser,
    add_import_argument,
    add_settings_argument,
    file_stem,
    frame_count,
    frame_rate,
    non_negative_int,
    output_file,
    output_folder,
    positive_int,
)

SCRIPT = "memenvs-agents"
"""Name of the console script."""
ANSWERER = Path(__file__).parents[1] / "papers" / "emv" / "episodic-qa.zip"
"""Checkpoint of a trained model that answers questions; it comes with the package."""


def make_parser() -> Parser:
    """Make the parser of all commands, under the name by which the program was called."""
    program = SCRIPT if Path(sys.argv[0]).stem in (SCRIPT, "memenvs") else "python -m memenvs.agents"
    parser = Parser(
        prog=program,
        description="Train, evaluate and report agents with memory.",
        epilog="The command memenvs lists, plays and records environments.",
        takes_settings=True,
        sibling="memenvs.cli:make_parser",
    )
    parser.add_argument("--version", action="version", version=f"memenvs {memenvs.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_train,
        _add_evaluate,
        _add_probe,
        _add_paths,
        _add_trajectories,
        _add_record,
        _add_dataset,
        _add_ask,
        _add_answer,
        _add_report,
        _add_pack,
        _add_push,
        _add_pull,
        _add_presets,
        _add_warmup,
    ):
        add(commands)
    return parser


def _add_train(commands: Any) -> None:
    train = _command(
        commands, "train", "training", "train a preset, evaluate it and write its report", takes_settings=True
    )
    train.add_argument(
        "preset",
        help="name, or NAME:VARIANT such as darkroom:k1; `presets` lists all, `presets NAME` the variants of one",
    )
    train.add_argument(
        "--out",
        type=output_folder,
        help="folder of the run; default runs/PRESET-SEED, with a variant runs/PRESET-VARIANT-SEED",
    )
    train.add_argument(
        "--resume",
        action="store_true",
        help="resume the run in that folder; all other arguments must be those that began it, but for more "
        "--total_steps, which also extends a finished run",
    )
    train.add_argument("--no-evaluate", action="store_true", help="only train")
    train.epilog = (
        "Any setting of the preset can be changed by its dotted name, the value as JSON: "
        "--seed 3  --ppo.n_epochs 2  --policy.memory_kwargs.layers 4  --env_kwargs.size 8. See `presets NAME`. "
        "Another memory, such as --policy.memory lstm, begins with its own default settings. "
        "Training ends with the first whole rollout that reaches total_steps, which "
        "counts environment steps of all copies together where a preset learns with ppo or dqn, "
        "batches with supervised, updates with imitation."
    )


def _add_evaluate(commands: Any) -> None:
    evaluate = _command(
        commands,
        "evaluate",
        "training",
        "evaluate a run in its evaluation trials, beside random and oracle, or on its prediction task",
    )
    evaluate.add_argument("folder", type=Path, help="folder of the run")
    evaluate.add_argument("--steps", type=positive_int, help="steps of a trial; default the preset's")
    evaluate.add_argument("--trials", type=positive_int, help="number of trials; default the preset's")
    evaluate.add_argument("--seed", type=non_negative_int, default=1, help="seed of the evaluation (default 1)")
    evaluate.add_argument(
        "--checkpoint",
        help="file in the folder, such as that of a milestone (default best.zip of a run with validation, else "
        "checkpoint.zip)",
    )
    evaluate.add_argument(
        "--name",
        type=file_stem,
        help="NAME.json is written (default evaluation or demonstrations_N, which the report shows); needed with "
        "other steps, trials, checkpoint or environments than the run's own",
    )
    evaluate.add_argument(
        "--demonstrations",
        type=non_negative_int,
        default=0,
        metavar="N",
        help="the oracle plays the first N episodes of each trial before the steps of the agent; only the agent is "
        "evaluated then",
    )
    evaluate.add_argument(
        "--test_set",
        metavar="NAME",
        help="play the test set of this name, such as v0, in place of the evaluation trials (memenvs test-set ID), "
        "with its settings but for what the run observes; test_set_NAME.json is written, which the report shows",
    )
    add_settings_argument(evaluate, "changes to the run's eval_kwargs, with --name", "--eval_kwargs")
    evaluate.epilog = (
        "Other environments than the preset's: "
        "--name procthor --env_kwargs.world procthor --env_kwargs.split all --env_kwargs.rooms null."
    )


def _add_probe(commands: Any) -> None:
    probe = _command(
        commands, "probe", "reports", "record the attention of a run's ReLIC memory: attention.png and .json"
    )
    probe.add_argument("folder", type=Path, help="folder of the run")
    probe.add_argument("--steps", type=positive_int, help="steps of the trial; default the preset's")
    probe.add_argument(
        "--count", type=positive_int, default=100, help="steps at which attention is recorded (default 100)"
    )
    probe.add_argument("--layout", type=non_negative_int, help="number of the layout; default drawn")
    probe.add_argument("--seed", type=non_negative_int, default=1, help="seed of the trial (default 1)")
    probe.add_argument("--out", type=output_folder, help="folder of the files; default the run's")


def _add_paths(commands: Any) -> None:
    paths = _command(
        commands, "paths", "reports", "draw the paths of runs' agents, random and oracle, and a metric by step"
    )
    paths.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="folder",
        help="folders of runs of one task; their agents play the same episodes",
    )
    paths.add_argument("--episodes", type=positive_int, default=20, help="episodes that each policy plays (default 20)")
    paths.add_argument("--maps", type=non_negative_int, default=4, help="episodes that are drawn (default 4)")
    paths.add_argument("--metric", help="metric by step (default the preset's score)")
    paths.add_argument(
        "--policies",
        type=_name,
        nargs="+",
        metavar="POLICY",
        help="some of agent (of each run), random, oracle (default all)",
    )
    paths.add_argument("--seed", type=non_negative_int, default=1, help="seed of the episodes (default 1)")
    paths.add_argument(
        "--out",
        type=output_folder,
        help="folder of paths.html and its files; default the run's, needed with several runs",
    )


def _add_trajectories(commands: Any) -> None:
    trajectories = _command(
        commands,
        "trajectories",
        "reports",
        "write the trajectories of a run's agent on R2R's or CVDN's real graphs, for `memenvs score`",
    )
    trajectories.add_argument("folder", type=Path, help="folder of the run")
    trajectories.add_argument("--split", help="split of the instructions (default that of the run's evaluation)")
    trajectories.add_argument("--seed", type=non_negative_int, default=1, help="seed of the evaluation (default 1)")
    trajectories.add_argument(
        "--out", type=output_file, help="the file; default trajectories_SPLIT.json in the run's folder"
    )


def _add_record(commands: Any) -> None:
    record = _command(
        commands,
        "record",
        "reports",
        "record a video of a run's agent, or of a model, over a trial, with goal, episode and step in each frame",
    )
    record.add_argument("folder", type=Path, help="folder of the run; or file of a model, from model.save(FILE)")
    record.add_argument("--env", metavar="ID", help="id that a model plays; needed with a file")
    add_settings_argument(record, "settings of that environment", "--kwargs")
    record.add_argument("--steps", type=positive_int, help="most steps of the video (default those of the evaluation)")
    record.add_argument("--layout", type=non_negative_int, help="number of the layout (default that of the evaluation)")
    record.add_argument("--checkpoint", help="file in the folder (default the one that is evaluated)")
    record.add_argument("--seed", type=non_negative_int, default=1, help="seed of the evaluation (default 1)")
    record.add_argument(
        "--frames",
        type=frame_count,
        help="most frames; longer videos keep every second, fourth, ... step (default 300 in a .gif, no limit in an "
        ".mp4)",
    )
    record.add_argument("--fps", type=frame_rate, default=10.0, help="frames a second, 0.1 to 50 (default 10)")
    record.add_argument(
        "--out",
        type=output_file,
        help="the video, .gif or .mp4, which needs memenvs[video]; default video.gif in the folder of a run, gru.gif "
        "beside a file gru.zip",
    )


def _add_dataset(commands: Any) -> None:
    dataset = _command(
        commands,
        "dataset",
        "datasets",
        "write whole evaluation trials of a run's agent as a Minari dataset (needs memenvs[minari])",
    )
    dataset.add_argument("folder", type=Path, help="folder of the run")
    dataset.add_argument("--checkpoint", help="file in the folder (default the one that is evaluated)")
    dataset.add_argument("--seed", type=non_negative_int, help="seed of the evaluation (default 1)")
    dataset.add_argument(
        "--episodes",
        type=positive_int,
        metavar="N",
        help="episodes (default 10); the trial in which this number is reached is played to its end",
    )
    add_dataset_outputs(dataset)


def _add_answerer(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model",
        type=Path,
        nargs="?",
        default=ANSWERER,
        help="folder of a run of the preset episodic-qa, or a checkpoint of one (default: the model of the package)",
    )


def _add_ask(commands: Any) -> None:
    ask = _command(
        commands,
        "ask",
        "ask",
        "type questions about the generated life of a household robot; a trained model answers from its memory",
    )
    _add_answerer(ask)
    ask.add_argument(  # the model of the package answers the first examples about life 2 rightly
        "--life", type=non_negative_int, default=2, metavar="N", help="number of the life, any (default %(default)s)"
    )
    ask.add_argument("--episodes", type=positive_int, default=3, metavar="N", help="its episodes (default %(default)s)")
    ask.add_argument(
        "--question",
        action="append",
        metavar="TEXT",
        help="a question; may be given several times. Without it, questions are the lines of standard input, or are "
        "typed, and lines may also be the words that `help` lists, but with --json",
    )
    ask.add_argument("--gold", action="store_true", help="show the answer by what happened too")
    ask.add_argument(
        "--page",
        type=output_file,
        metavar="FILE",
        help="write a page: the life, the questions (without --question one of each kind), the answers and the key "
        "frames on which they depend",
    )
    ask.set_defaults(example=0)
    ask.epilog = (
        "In a conversation, `help` lists what else can be typed: gold, life, examples, grammar. Example: "
        'memenvs-agents ask --life 7 --question "what did you grasp today at about 03 PM?" --gold'
    )


def _add_answer(commands: Any) -> None:
    answer = _command(
        commands,
        "answer",
        "answer",
        "fill a model's answers into a file of `memenvs verbalization questions`, for `memenvs score emv`",
    )
    _add_answerer(answer)
    answer.add_argument("file", type=Path, help="the questions; answers that are there are replaced")


def _add_report(commands: Any) -> None:
    report = _command(commands, "report", "reports", "write report.html of one run, or of several of the same task")
    report.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="folder",
        help="folders of the runs; those that differ in their seed alone are shown by mean and 95 %% interval",
    )
    report.add_argument(
        "--out", type=output_folder, help="folder of the report; default the run's, needed with several runs"
    )


def _add_pack(commands: Any) -> None:
    pack = _command(
        commands, "pack", "packing", "write settings and evaluations of finished runs into a table for results/"
    )
    pack.add_argument("folders", type=Path, nargs="+", metavar="folder", help="folders of the runs")
    pack.add_argument(
        "--out",
        type=output_file,
        required=True,
        help="the table, FOLDER/NAME.jsonl; rows of the same runs are replaced",
    )
    pack.add_argument(
        "--metrics", type=_name, nargs="+", default=[], metavar="METRIC", help="metrics to keep (default all)"
    )


def _add_push(commands: Any) -> None:
    push = _command(
        commands, "push", "publishing", "write the agent of a run, with a model card, into a folder or onto the Hub"
    )
    push.add_argument("run", type=Path, help="folder of the run")
    push.add_argument(
        "target", help="folder to write; or hf:ORGANISATION/NAME on the Hugging Face Hub, after `hf auth login`"
    )
    push.add_argument("--checkpoint", help="file in the run's folder (default the one that is evaluated)")
    push.add_argument("--private", action="store_true", help="make a new repository private; for the Hub only")


def _add_pull(commands: Any) -> None:
    pull = _command(
        commands,
        "pull",
        "publishing",
        "make a run folder of a published agent, for evaluate, record and report",
    )
    pull.add_argument(
        "source",
        help="extobjnav-small, which comes with the package; folder that `push` has written; or "
        "hf:ORGANISATION/NAME[@REVISION] on the Hub",
    )
    pull.add_argument("--out", type=output_folder, required=True, help="folder of the run to make")


def _add_presets(commands: Any) -> None:
    presets = _command(commands, "presets", "listing", "list the presets, or show one with its variants")
    presets.add_argument(
        "name",
        nargs="?",
        help="show this one; or list presets and variants whose names contain it or, with * or ?, match it, such as "
        "'darkroom:*'",
    )


def _add_warmup(commands: Any) -> None:
    _command(
        commands, "warmup", "warmup", "compile what learners need ahead of their first use; see also memenvs warmup"
    )


def _name(text: str) -> str:
    """Parse an argument that must be a name, so that a list of names ends where the folders of runs begin."""
    if Path(text).exists():
        raise argparse.ArgumentTypeError(f"must be a name, got the path {text!r}")
    return text


def _command(
    commands: Any, name: str, module: str, text: str, *, takes_settings: bool = False
) -> argparse.ArgumentParser:
    """Add a command, which is the function of this name in a module of `memenvs.agents.cli`."""
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        allow_abbrev=False,
        takes_settings=takes_settings,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document on standard output and nothing else there"
    )
    add_import_argument(parser)
    parser.set_defaults(module=module, takes_settings=takes_settings)
    return parser
