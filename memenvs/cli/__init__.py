"""The command line `memenvs`.

Each command is a row of a table of `TABLES` and a module that is imported only when the command is called. So no
command waits for the packages of another, and `memenvs list` imports no PyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

import memenvs
from memenvs.cli.common import import_modules, lossy_streams, print_json, run_command
from memenvs.cli.parser import Parser
from memenvs.compilation import COMPILATION

#: Modules with a table of commands; imported by name, since environments know no agents.
TABLES = ("memenvs.cli.commands", "memenvs.agents.cli")


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
    for module in TABLES:
        for name, (path, text) in import_module(module).COMMANDS.items():
            commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", module=path)
    return parser
