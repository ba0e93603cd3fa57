"""Helpers of all commands: errors of arguments, JSON output, settings, environments."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO, cast

import gymnasium as gym

from memenvs.cli.extras import extra_of
from memenvs.cli.parser import ENV_KWARGS, SETTINGS, one_line
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.files import check_writable
from memenvs.json_records import MAX_SHOWN, format_json, parse_json
from memenvs.registry import EnvironmentSpec, find_environment

#: Ours, each with a folder of its own in an editable install.
PACKAGES = ("memenvs", "memenvs.agents", "memenvs.wrappers")


#: Errors with which a command refuses its arguments.
REFUSALS = (ValueError, TypeError, OSError, RuntimeError, gym.error.Error)


class UserError(Exception):
    """An argument is wrong; the message names it, what came and what is allowed."""


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
    print(f"{name}: error: {one_line(message)}", file=sys.stderr)
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


@contextmanager
def as_user_error(argument: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors that an argument causes into a `UserError` that names the argument."""
    try:
        yield
    except errors as error:
        raise UserError(f"argument {argument}: {error}") from error


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


def json_or_text(text: str) -> Any:
    """Read the value of a setting as JSON, or as a number such as .5; all else is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return float(text) if re.fullmatch(r"[+-]?(\d+\.|\.\d+)(e[+-]?\d+)?", text, re.ASCII | re.IGNORECASE) else text


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
    """Make one environment with the settings of --env_kwargs.

    It is a `TrialEnv` if it has a `BatchTask`.
    """
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


def reset_env(env: gym.Env | TrialVectorEnv, seed: int | None) -> dict[str, Any]:
    """Reset the environment and return `info`.

    Raises:
        UserError: The settings do not go together, which some environments find out only now.
    """
    with as_user_error("--env_kwargs", ValueError):
        return env.reset(seed=seed)[1]


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
