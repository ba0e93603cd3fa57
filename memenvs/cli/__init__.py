"""The command line `memenvs`.

Each command is a row of a table of `Command`s and a module that is imported only when the command is called. So no
command waits for the packages of another, and `memenvs list` imports no PyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module

import memenvs
from memenvs.cli.commands import Command
from memenvs.cli.common import Parser, import_modules, lossy_streams, print_json, run_command
from memenvs.compilation import COMPILATION

#: Title of a table of commands -> "module:name"; found by name, since environments know no agents.
TABLES = {"Environments": "memenvs.cli.commands:COMMANDS", "Agents": "memenvs.agents.cli:COMMANDS"}


@lossy_streams("memenvs")
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; None for those of the process.

    Returns:
        Exit status: 0, 2 for wrong arguments or output that cannot be written (one line on standard error says which),
        130 after Ctrl-C. `doctor` ends with 1 where something does not work.
    """
    arguments = make_parser().parse_args(argv)

    def command() -> None:
        import_modules(arguments.imports)
        COMPILATION.register()
        document = arguments.module.run(arguments)
        if arguments.json and document is not None:
            print_json(document)

    return run_command(f"memenvs {arguments.command}", command)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands; the arguments of each are declared when it is called."""
    parser = Parser(
        prog="memenvs",
        description="Environments that measure the memory of embodied agents, and the agents that solve them.",
    )
    parser.add_argument("--version", action="version", version=f"memenvs {memenvs.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for title in TABLES:
        for row in find_commands(title):
            description = row.help[0].upper() + row.help[1:] + "."
            commands.add_parser(row.name, help=row.help, description=description, module=row.module)
    return parser


def find_commands(title: str) -> Iterator[Command]:
    """Yield the rows of one of `TABLES`."""
    module, _, name = TABLES[title].partition(":")
    yield from getattr(import_module(module), name)
