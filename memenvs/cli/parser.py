"""Parser of the command line: arguments, settings, and errors that name the nearest one."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from memenvs.checks import choices_for
from memenvs.files import check_writable

#: Name of the settings among the parsed arguments.
SETTINGS = "settings"
#: Beginning of the names of settings of environments.
ENV_KWARGS = "env_kwargs"
#: Placeholder of a value, the mark after it, the default.
_PLACEHOLDER = re.compile(r"([^?+*!=]*)([?+*!]?)=?(.*)")


def whole_number(least: int) -> Callable[[str], int]:
    """Make the type of an argument that must be an integer of at least `least`, >= 0."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer of at least {least}, got {text!r}")
        return int(text)

    return parse


def positive_float(text: str) -> float:
    """Parse an argument that must be a finite number above 0."""
    value = _float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value


def frame_rate(text: str) -> float:
    """Parse an argument that must be a number from 0.1 to 50, frames a second."""
    value = _float(text)
    if not 0.1 <= value <= 50.0:  # GIF counts in hundredths of a second, and viewers slow down what is below two
        raise argparse.ArgumentTypeError(f"must be a number from 0.1 to 50, got {text!r}")
    return value


def _float(text: str) -> float:
    """Parse a number; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def file_stem(text: str) -> str:
    """Parse an argument that must be a name for a file in a folder, without its suffix."""
    if not text or text.startswith(".") or set(text) & set("/\\:"):
        raise argparse.ArgumentTypeError(f"must be a name without folders, got {text!r}")
    return text


def output_path(text: str, *, is_folder: bool) -> Path:
    """Parse an argument that must be a file or a folder to write; it need not exist."""
    try:
        check_writable(Path(text), is_folder=is_folder)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


positive_int = whole_number(1)
non_negative_int = whole_number(0)
#: Word that stands for the value of an argument -> its type; other words stand for texts.
TYPES: Mapping[str, Callable[[str], Any]] = {
    "N": positive_int,
    "K": non_negative_int,
    "FRAMES": whole_number(2),
    "SECONDS": positive_float,
    "FPS": frame_rate,
    "STEM": file_stem,
    "RUN": Path,
    "MODEL": Path,
    "RESULTS": Path,
    "OUT_FILE": partial(output_path, is_folder=False),
    "OUT_FOLDER": partial(output_path, is_folder=True),
}


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, with the nearest right ones.

    Settings, such as `--env_kwargs.size 4` or `--env_kwargs '{"size": 4}'`, are read before the other arguments, so
    that their values are no positionals. They are in the attribute `settings` of what is parsed: (name, text) in their
    order.

    Args:
        module: Module of a command; "" for none. Its text `ARGUMENTS` declares arguments (`add_text`), and its function
            `add_arguments` those whose help depends on what is registered.
        **kwargs: As of `argparse.ArgumentParser`.

    Attributes:
        takes_settings: Whether every option that is not declared is a setting, as of `train`.
    """

    def __init__(self, *, module: str = "", **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)
        self.takes_settings = False
        self._module = module

    def declare(self) -> None:
        """Import the module of the command and declare its arguments, once."""
        if self._module:
            module, self._module = import_module(self._module), ""
            self.set_defaults(module=module)
            self.add_text("--json: print one JSON document and nothing else")
            self.add_argument(
                "--import",
                dest="imports",
                action="append",
                default=[],
                metavar="MODULE",
                help="import this module first, which registers environments, memories or presets; may be given "
                "several times",
            )
            self.add_text(getattr(module, "ARGUMENTS", ""))
            getattr(module, "add_arguments", lambda command: None)(self)

    def add_text(self, text: str) -> None:
        """Declare arguments by their help.

        Args:
            text: A line an argument, longer ones indented from the second line on; after a blank line the epilog.
                `NAME TYPE: help` is a positional argument, `--name TYPE: help` an option and `--name: help` a flag. A
                type is one of `TYPES`, choices such as `a|b`, or any other word for a text. After it stand `?` for one
                that may be left out, `+` for one or more values, `*` for any number of values or an option that may be
                given several times, `!` for one that is needed, or `=` and the default.
        """
        lines, _, epilog = text.strip().partition("\n\n")
        self.epilog = epilog or self.epilog
        for argument in re.split(r"\n(?=\S)", lines) if lines else ():
            head, _, help = " ".join(argument.split()).replace("%", "%%").partition(": ")
            names, _, value = head.partition(" ")
            kind, mark, default = _PLACEHOLDER.findall(value)[0]
            options: dict[str, Any] = {"help": help}
            if not kind:
                options["action"] = "store_true"
            elif "|" in kind:
                options["choices"] = kind.split("|")
            else:
                options |= {"metavar": kind, "type": TYPES.get(kind, str)}
            if kind == "JSON":
                example = f'such as \'{{"split": "test"}}\'; or one by one, --{ENV_KWARGS}.split test'
                options |= {"dest": SETTINGS, "default": argparse.SUPPRESS, "help": f"{help}, {example}"}
            if mark in ("?", "+") or (mark == "*" and not names.startswith("-")):
                options["nargs"] = mark
            elif mark == "*":
                options |= {"action": "append", "default": []}
            elif mark == "!":
                options["required"] = True
            if default:
                options |= {"default": TYPES.get(kind, str)(default), "help": f"{help} (default: {default})"}
            self.add_argument(*names.split("/"), **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse an unknown option of this command."""
        self.declare()
        arguments, settings = self._take_settings(sys.argv[1:] if args is None else args)
        namespace, extras = super().parse_known_args(arguments, namespace)
        unknown = next((text for text in extras if text.startswith("-")), None)
        if unknown is not None:
            options = [option for action in self._actions for option in action.option_strings]
            self.error(f"unknown option {unknown!r}; {choices_for(unknown.split('=')[0], options)}")
        namespace.settings = [*getattr(namespace, "settings", ()), *settings]
        return namespace, extras

    def _take_settings(self, arguments: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """Split `--NAME VALUE` and `--NAME=VALUE` off where NAME is a setting."""
        others, settings, waiting = [], [], list(arguments)
        while waiting:
            text = waiting.pop(0)
            option, equals, value = text.partition("=")
            name = self._setting_name(option)
            if name is None:
                others.append(text)
                continue
            if not equals and not waiting:
                self.error(f"argument {option}: must have a value")
            settings.append((name, value if equals else waiting.pop(0)))
        return others, settings

    def _setting_name(self, option: str) -> str | None:
        """Return the dotted name of the setting of an option; None if it is another option or none."""
        head, dot, rest = option.partition(".")
        action = self._option_string_actions.get(head)
        if action is not None and action.dest == SETTINGS:
            return ENV_KWARGS + dot + rest
        is_free = self.takes_settings and option.startswith("--") and option not in self._option_string_actions
        return option.removeprefix("--") if is_free else None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"unknown {value!r}; {choices_for(value, action.choices)}")

    def error(self, message: str) -> NoReturn:
        """Print the message and end the process with status 2."""
        if message.startswith("the following arguments are required"):
            message += f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {one_line(message)}\n")


def one_line(message: str) -> str:
    """Join the lines of a message."""
    return " ".join(message.split())
