"""The command line `memenvs-agents`, also `python -m memenvs.agents`.

A module holds a group of commands and is imported when one of them runs. Mistakes that can be found without torch are
reported before it is imported, which takes seconds: commands import the modules that need it after their checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import gymnasium as gym

from memenvs.agents.cli.parser import SCRIPT, make_parser
from memenvs.cli.common import UserError, import_modules, lossy_streams, print_json, run_command


@lossy_streams(SCRIPT)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Arguments without the program's name; None for those of the process.

    Returns:
        Exit status: 0, 2 after a one-line error, or 130 after Ctrl-C.
    """
    parser = make_parser()
    options, extra_arguments = parser.parse_known_args(arguments)
    if extra_arguments and not options.takes_settings:
        parser.error(f"unknown arguments: {' '.join(extra_arguments)}")

    def command() -> None:
        import_modules(options.imports)
        result = getattr(import_module(f"memenvs.agents.cli.{options.module}"), options.command)(
            options, extra_arguments
        )
        if options.json and result is not None:
            print_json(result)

    user_errors = (UserError, ValueError, TypeError, OSError, RuntimeError, gym.error.Error)
    return run_command(f"{parser.prog} {options.command}", command, *user_errors)
