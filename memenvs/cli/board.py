"""`memenvs board`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from memenvs.board.entry import check_entry, read_entry, write_entry
from memenvs.board.page import entry_folders, make_page
from memenvs.board.replay import check_replay
from memenvs.cli.common import UserError
from memenvs.cli.parser import Parser
from memenvs.files import write_file
from memenvs.progress import progress_bar

_BOARD = "--board FOLDER=board: folder of the board"
#: Action -> what it does, and its arguments.
ACTIONS = {
    "add": (
        "let the agent of a run play or answer a test set, and write its entry",
        """
runs RUN+: folder of the run; several runs may differ in their seed alone
--name NAME!: name of the entry
--author NAME!: who trained it
--link ADDRESS!: https address of its code, or of a description
--id ID: play the test set of this id (default: that of the run)
--memory NAME: name of the memory (default: that of the run)
--class plain|pretrained|privileged=plain: pretrained where a part of the agent learned elsewhere or it learned in other
    settings of the id, such as its size; privileged where it observes more than the id shows, such as places
--seed K=1: seed of the actions that it draws
""",
    ),
    "check": (
        "check entries, and play their actions again; status 2 where one is refused",
        """
folders FOLDER*: folder of an entry (default: all entries of the board but the old ones)
""",
    ),
    "page": ("write the page of a board", "--out OUT_FILE: file to write (default: README.md in the board)"),
}


def add_arguments(parser: Parser) -> None:
    """Declare the arguments of each action."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    for name, (text, arguments) in ACTIONS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.add_text(f"{arguments.strip()}\n{_BOARD}")
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the action."""
    board = Path(arguments.board)
    if arguments.action == "add":
        # by name, since this package does without PyTorch
        entry = import_module("memenvs.agents.cli.board").entry_of_runs(arguments, board)
        folder = write_entry(board, entry)
        if not arguments.json:
            print(f"written: {folder}, {entry.mean:.4g} +- {entry.stderr:.2g}; next: memenvs board page")
        return {"folder": str(folder), "mean": entry.mean, "stderr": entry.stderr}
    if arguments.action == "check":
        return _check([Path(folder) for folder in arguments.folders] or entry_folders(board), quiet=arguments.json)
    out = arguments.out or board / "README.md"
    write_file(out, make_page(board).encode())
    if not arguments.json:
        print(f"written: {out}")
    return {"page": str(out)}


def _check(folders: list[Path], quiet: bool) -> dict[str, Any]:
    """Check entries, and name all that are refused."""
    checked, refused = {}, []
    for folder in folders:
        try:
            entry = read_entry(folder)
            check_entry(entry, folder.resolve())
            if entry.has_actions:
                with progress_bar(f"playing {folder.name}", quiet=quiet) as progress:
                    check_replay(entry, progress)
        except (OSError, ValueError, TypeError) as error:
            text = str(error)
            refused.append(text if str(folder) in text else f"{folder}: {text}")
            continue
        checked[str(folder)] = "replayed" if entry.has_actions else "reported"
        if not quiet:
            print(f"{folder}: {checked[str(folder)]}, {entry.mean:.4g} +- {entry.stderr:.2g}")
    for text in refused[:-1]:
        print(text, file=sys.stderr)
    if refused:
        raise UserError(f"{len(refused)} of {len(folders)} entries refused; {refused[-1]}")
    return checked
