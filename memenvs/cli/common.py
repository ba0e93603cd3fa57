"""Helpers of all commands: errors of arguments, argument types, JSON output, environments."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import gymnasium as gym

from memenvs.checks import choices_for
from memenvs.cli.extras import extra_of
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.files import check_writable
from memenvs.json_records import MAX_SHOWN, format_json, parse_json
from memenvs.registry import EnvironmentSpec, environments, find_environment

#: Ours, each with a folder of its own in an editable install.
PACKAGES = ("memenvs", "memenvs.agents", "memenvs.wrappers")


#: Name of the settings among the parsed arguments.
SETTINGS = "settings"
#: Beginning of the names of settings of environments.
ENV_KWARGS = "env_kwargs"
#: Errors with which a command refuses its arguments.
REFUSALS = (ValueError, TypeError, OSError, RuntimeError, gym.error.Error)


class UserError(Exception):
    """An argument is wrong; the message names it, what came and what is allowed."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, with the nearest right ones.

    Settings, such as `--env_kwargs.size 4` or `--env_kwargs '{"size": 4}'`, are read before the other arguments, so
    that their values are no positionals. They are in the attribute `settings` of what is parsed: (name, text) in their
    order.

    Args:
        module: Module of a command, whose `add_arguments` declares its arguments; "" if they are declared elsewhere.
        **kwargs: As of `argparse.ArgumentParser`.

    Attributes:
        takes_settings: Whether every option that is not declared is a setting, as of `train`.
    """

    def __init__(self, *, module: str = "", **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)
        self.takes_settings = False
        self._module = module

    def declare(self) -> None:
        """Import the module of the command, and let it declare its arguments; a second call does nothing."""
        if self._module:
            module, self._module = import_module(self._module), ""
            self.set_defaults(module=module)
            self.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
            _add_import_argument(self)
            module.add_arguments(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse an unknown option of this command."""
        self.declare()
        arguments, settings = self._take_settings(sys.argv[1:] if args is None else args)
        namespace, extras = super().parse_known_args(self._free_positionals(arguments), namespace)
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

    def _free_positionals(self, arguments: list[str]) -> list[str]:
        """Move what an option of several values cannot take before it, such as FILE in `--lengths 1 2 FILE`."""
        freed = list(arguments)
        for i, text in enumerate(arguments):
            action = self._option_string_actions.get(text)
            if action is not None and action.nargs == "+":
                values = list(takewhile(lambda value: not value.startswith("-"), arguments[i + 1 :]))
                taken = values[:1] + list(takewhile(partial(self._takes, action), values[1:]))
                freed[i : i + 1 + len(values)] = [*values[len(taken) :], text, *taken]
        return freed

    def _takes(self, action: argparse.Action, text: str) -> bool:
        """Return True if a text is a value of an option."""
        try:
            self._check_value(action, self._get_value(action, text))
        except argparse.ArgumentError:
            return False
        return True

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"unknown {value!r}; {choices_for(value, action.choices)}")

    def error(self, message: str) -> NoReturn:
        """Print the message and end the process with status 2."""
        if message.startswith("the following arguments are required"):
            message += f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {_one_line(message)}\n")


class LossyStream:
    """A standard stream that drops what cannot be written, so that no command depends on it.

    Args:
        stream: Text stream of the process.

    Attributes:
        error: Why the first text was dropped; None before.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):  # names of files, and letters that the locale lacks
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write or drop a text."""
        return self._attempt(lambda: self._stream.write(text)) or 0

    def flush(self) -> None:
        """Write or drop what is buffered."""
        self._attempt(self._stream.flush)

    def _attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except OSError as error:
            self.error = self.error or error
            with open(os.devnull, "w") as nowhere:  # what is still buffered would fail again when the process ends
                os.dup2(nowhere.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lossy_streams(name: str) -> Iterator[None]:
    """Make a program independent of its streams: closed ones, full disks, closed pipes.

    Args:
        name: Of the program, for the message.

    Raises:
        SystemExit: At the end, with status 2, if some of standard output is lost, but for a pipe that its reader has
            closed, as in `memenvs list | head -1`.
    """
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:  # in this order each takes its own number, which no other file then gets
            setattr(sys, stream, open(os.devnull, mode))  # noqa: SIM115
    out = LossyStream(sys.stdout)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, LossyStream(sys.stderr))):
        try:
            yield
        finally:
            out.flush()
            is_lost = out.error is not None and not isinstance(out.error, BrokenPipeError)
            if is_lost and not isinstance(sys.exception(), Exception):  # whose traceback says more
                print(f"{name}: error: cannot write to standard output: {out.error}", file=sys.stderr)
                sys.exit(2)


def run_command(name: str, command: Callable[[], None]) -> int:
    """Run a command and report its errors in one line.

    Args:
        name: Program and command, for messages.
        command: Does the work. The message of a `UserError` or of one of `REFUSALS` goes to standard error, and so does
            the extra of a package that is missing. An error that passes through code of a user, such as an own
            environment, has its traceback before it.

    Returns:
        Exit status: 0, 2 after such an error, 130 after Ctrl-C.
    """
    try:
        command()
    except (UserError, *REFUSALS) as error:
        return _report(name, error, str(error))
    except ImportError as error:
        extra = extra_of(error.name or "")
        if extra is None:
            raise
        return _report(name, error, f"needs {error.name}; install it with: pip install 'memenvs[{extra}]'")
    except KeyboardInterrupt:
        return 130
    return 0


def _report(name: str, error: Exception, message: str) -> int:
    """Print an error of a command, and return its exit status."""
    if _passes_other_code(error):
        traceback.print_exception(error)
    print(f"{name}: error: {_one_line(message)}", file=sys.stderr)
    return 2


def _passes_other_code(error: BaseException) -> bool:
    """True if an error went through code that is neither ours nor installed, such as a user's environment."""
    ours = [path for name, module in sys.modules.items() if name in PACKAGES for path in module.__path__]
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    folders = [Path(path).resolve() for path in (*ours, *library)]
    files = {Path(frame.f_code.co_filename).resolve() for frame, _ in traceback.walk_tb(error.__traceback__)}
    return any(
        file.is_file()
        and not any(file.is_relative_to(folder) for folder in folders)
        and not {"site-packages", "dist-packages"} & set(file.parts)
        for file in files
    )


def _one_line(message: str) -> str:
    return " ".join(message.split())


@contextmanager
def as_user_error(argument: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors that an argument causes into a `UserError` that names the argument."""
    try:
        yield
    except errors as error:
        raise UserError(f"argument {argument}: {error}") from error


def positive_int(text: str) -> int:
    """Parse an argument that must be an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def file_stem(text: str) -> str:
    """Parse an argument that must be a name for a file in a folder, without its suffix."""
    if not text or text.startswith(".") or set(text) & set("/\\:"):
        raise argparse.ArgumentTypeError(f"must be a name without folders, got {text!r}")
    return text


def plain_name(text: str) -> str:
    """Parse an argument that must be a name, so that a list of names ends where the folders of runs begin."""
    if Path(text).exists():
        raise argparse.ArgumentTypeError(f"must be a name, got the path {text!r}")
    return text


def output_folder(text: str) -> Path:
    """Parse an argument that must be a folder to write, which may not exist yet."""
    return _output(text, is_folder=True)


def output_file(text: str) -> Path:
    """Parse an argument that must be a file to write, whose folder may not exist yet."""
    return _output(text, is_folder=False)


def _output(text: str, is_folder: bool) -> Path:
    try:
        check_writable(Path(text), is_folder=is_folder)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def non_negative_int(text: str) -> int:
    """Parse an argument, such as a seed, that must be an integer of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, got {text!r}")
    return int(text)


def frame_count(text: str) -> int:
    """Parse an argument that must be an integer of at least 2: the first and the last frame."""
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 2, got {text!r}")
    return int(text)


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


def _add_import_argument(command: argparse.ArgumentParser) -> None:
    """Declare the option --import of a command."""
    command.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module first, which registers environments, memories or presets; may be given several times",
    )


def import_modules(names: Sequence[str]) -> None:
    """Import the modules of the option --import, those of the working folder too.

    Raises:
        UserError: There is no such module.
    """
    # As with `python -m`, so that the console script finds the same modules; last, so that a file there hides no
    # installed package.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    for name in names:
        with as_user_error(f"--import {name}", ImportError):
            import_module(name)


def environment_spec(id: str) -> EnvironmentSpec:
    """Find the row that the argument ID names, or describe another id of Gymnasium."""
    with as_user_error("ID", ValueError):
        return find_environment(id)


def find_target(target: str) -> EnvironmentSpec | Path:
    """Find what the argument TARGET names: the folder of a run, the file of a model, or an id.

    Raises:
        UserError: There is none of them.
    """
    path = Path(target)
    if path.exists():
        return path
    try:
        return find_environment(target)
    except ValueError as error:
        raise UserError(f"argument TARGET: no such folder or file, and {error}") from error


def refuse_options(arguments: argparse.Namespace, names: Sequence[str], reason: str) -> None:
    """Raise a UserError if one of some options is given, which have no default."""
    for name in names:
        value = getattr(arguments, name)
        if value is None or value is False or value == []:
            continue
        if name == SETTINGS:
            option, value = f"--{ENV_KWARGS}", parse_settings(value)
        else:
            option = "--" + name.replace("_", "-") if name != "target" else "TARGET"
        raise UserError(f"argument {option}: {reason}, got {value}")


def add_environment(command: argparse.ArgumentParser) -> None:
    """Declare the argument ID and the settings of the environment."""
    command.add_argument(
        "id",
        metavar="ID",
        help=f"one of {', '.join(spec.id for spec in environments())}; the namespace may be left out; or any other id "
        "of Gymnasium; or MODULE:ID, which imports the module that registers it",
    )
    add_settings_argument(command, "settings of the environment")


def add_id(command: argparse.ArgumentParser) -> None:
    """Declare the argument ID of a command that takes no settings."""
    command.add_argument("id", metavar="ID", help="as of `memenvs rollout`, with its default settings")


def add_settings_argument(command: argparse.ArgumentParser, help: str, alias: str = "--kwargs") -> None:
    """Declare the settings of environments.

    They are JSON, or one by one `--env_kwargs.NAME VALUE`, as in `train`.
    """
    command.add_argument(
        f"--{ENV_KWARGS}",
        alias,
        dest=SETTINGS,
        default=argparse.SUPPRESS,
        metavar="JSON",
        help=f'{help}, such as \'{{"split": "test"}}\'; or one by one, --{ENV_KWARGS}.split test',
    )


def json_or_text(text: str) -> Any:
    """Read the value of a setting as JSON; what is not JSON is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def merge_settings(settings: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return settings with others in their place, also within parts that are objects themselves."""
    inner = {
        name: merge_settings(settings[name], value)
        for name, value in more.items()
        if isinstance(value, dict) and isinstance(settings.get(name), dict)
    }
    return {**settings, **more, **inner}


def parse_settings(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Parse the settings of an environment, later ones in place of earlier ones.

    Args:
        pairs: ("env_kwargs", a JSON object) or ("env_kwargs.NAME", JSON or a text), as `Parser` reads them.

    Raises:
        UserError: One is no JSON object, or sets what the command sets itself.
    """
    settings: dict[str, Any] = {}
    for name, text in pairs:
        _, *keys = name.split(".")
        if keys:
            more = json_or_text(text)
        else:
            with as_user_error(f"--{ENV_KWARGS}", ValueError):
                more = parse_json(text, f"must be a JSON object, got {text[:MAX_SHOWN]!r}")
            if not isinstance(more, dict):
                raise UserError(f"argument --{ENV_KWARGS}: must be a JSON object, got {text!r}")
        for key in reversed(keys):
            more = {key: more}
        settings = merge_settings(settings, more)
    for name in ("task", "id", "render_mode", "num_envs", "autoreset_mode", "copy"):
        if name in settings:
            raise UserError(f"argument --env_kwargs: must not contain {name!r}, which the command sets itself")
    return settings


@contextmanager
def settings_as_user_error(spec: EnvironmentSpec, settings: dict[str, Any]) -> Iterator[None]:
    """Turn errors of making an environment into a `UserError` that names the settings given."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError, ImportError, gym.error.Error) as error:
        changes = f" with --env_kwargs {json.dumps(settings)}" if settings else ""
        raise UserError(f"{spec.id}{changes}: {error}") from error


def make_env(spec: EnvironmentSpec, arguments: argparse.Namespace, *, render_mode: str | None = None) -> gym.Env:
    """Make a single environment with the settings of --env_kwargs; a `TrialEnv` if it has a `BatchTask`."""
    settings = parse_settings(arguments.settings)
    with settings_as_user_error(spec, settings):
        if spec.task is not None:
            return TrialEnv(spec.task, **{"render_mode": render_mode, **spec.defaults, **settings})
        env = gym.make(spec.id, disable_env_checker=True, **settings)
        if render_mode is None:
            return env
        modes = env.metadata.get("render_modes") or ()
        env.close()
        if render_mode not in modes:
            raise UserError(f"argument ID: must have the render mode {render_mode!r}, got {spec.id} with {list(modes)}")
        return gym.make(spec.id, render_mode=render_mode, disable_env_checker=True, **settings)


def reset_env(env: gym.Env | TrialVectorEnv, seed: int | None, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Reset the environment and return `info`.

    Raises:
        UserError: The settings do not go together, which some environments find out only now.
    """
    with as_user_error("--env_kwargs", ValueError):
        return env.reset(seed=seed, options=options)[1]


def share_of_episode(env: gym.Env, num_steps: int) -> float:
    """Return the share of the longest possible episode that is played; 0 without a limit."""
    spec_limit = None if env.spec is None else env.spec.max_episode_steps
    limit = env.max_episode_steps if isinstance(env, TrialEnv) else spec_limit
    return num_steps / limit if limit else 0.0


def number_or_none(value: float) -> float | None:
    """Return the value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


def print_json(document: Any) -> None:
    """Print one JSON document, with null for numbers that are not finite."""
    print(format_json(document))


def check_output(argument: str, path: str, *suffixes: str) -> Path:
    """Check the path of a file to write, before any work is done for it.

    Raises:
        UserError: The suffix is none of `suffixes`, the folder does not exist, or the file cannot be written there.
    """
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        raise UserError(f"argument {argument}: must end in {' or '.join(suffixes)}, got {path!r}")
    if not file.parent.is_dir():
        raise UserError(f"argument {argument}: no such folder {str(file.parent)!r}")
    with as_user_error(argument, ValueError):
        check_writable(file)
    return file
