"""What the commands share: wrong arguments, JSON, environments, metrics."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.registry import EnvironmentSpec, find_environment


class UserError(Exception):
    """An argument is wrong; the message names it, what came and what is allowed."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        if message.startswith("the following arguments are required"):
            message += f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {_one_line(message)}\n")


def run_command(name: str, command: Callable[[], None], *errors: type[Exception]) -> int:
    """Runs a command.

    Args:
        name: Of the command, as it was called.
        command: What it does.
        errors: What it raises where it refuses; the message goes to standard error in one line.

    Returns:
        Exit status: 0, 2 after one of `errors`, 130 after Ctrl-C.
    """
    try:
        command()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as in `memenvs list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except errors as error:
        print(f"{name}: error: {_one_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _one_line(message: str) -> str:
    return " ".join(message.split())


@contextmanager
def as_user_error(argument: str, *errors: type[Exception]) -> Iterator[None]:
    """Turns errors of what a user gave into `UserError` that names the argument."""
    try:
        yield
    except errors as error:
        raise UserError(f"argument {argument}: {error}") from error


def positive_int(text: str) -> int:
    """Type of an argument: an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def non_negative_int(text: str) -> int:
    """Type of an argument, such as a seed: an integer of at least 0."""
    if not text.isdecimal() or int(text) >= 2**62:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0 and below 2^62, got {text!r}")
    return int(text)


def environment_spec(id: str) -> EnvironmentSpec:
    """The registry's row of the argument ID."""
    with as_user_error("ID", ValueError):
        return find_environment(id)


def parse_settings(text: str) -> dict[str, Any]:
    """The argument --kwargs as a dictionary."""
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"argument --kwargs: must be a JSON object, got {text!r} ({error})") from None
    if not isinstance(settings, dict):
        raise UserError(f"argument --kwargs: must be a JSON object, got {text!r}")
    for name in ("task", "id", "render_mode", "num_envs", "autoreset_mode", "copy"):
        if name in settings:
            raise UserError(f"argument --kwargs: must not contain {name!r}, which the command sets itself")
    return settings


@contextmanager
def refused_by(row: EnvironmentSpec, settings: dict[str, Any]) -> Iterator[None]:
    """Turns what an environment cannot be made with into `UserError` with its message and the settings given."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError, ImportError) as error:
        given = f" with --kwargs {json.dumps(settings)}" if settings else ""
        raise UserError(f"{row.id}{given}: {error}") from error


def make_env(arguments: argparse.Namespace, *, render_mode: str | None = None) -> TrialEnv:
    """The environment of the arguments ID and --kwargs, single form."""
    row = environment_spec(arguments.id)
    given = parse_settings(arguments.kwargs)
    with refused_by(row, given):
        return TrialEnv(row.task, **{"render_mode": render_mode, **row.defaults, **given})


def begin(env: TrialEnv | TrialVectorEnv, seed: int | None, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Resets the environment; what its settings turn out not to allow becomes a `UserError`. Returns `info`."""
    with as_user_error("--kwargs", ValueError):
        return env.reset(seed=seed, options=options)[1]


def choose_action(env: TrialEnv, policy: str, rng: np.random.Generator) -> int:
    """Action of the policy "random" (one of those that are possible now) or "oracle"."""
    if policy == "oracle":
        return env.oracle_action()
    possible = env.task.possible_actions()
    if possible is None:
        assert isinstance(env.action_space, gym.spaces.Discrete)
        return int(rng.integers(env.action_space.n))
    return int(draw_possible(possible, rng)[0])


def draw_possible(possible: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of the possible actions of each environment, int64, (N,); `possible` is bool or int8, (N, actions)."""
    return (rng.random(possible.shape) * possible).argmax(1)


def number_or_none(value: float) -> float | None:
    """The value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


def print_json(document: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(document, allow_nan=False))


def check_output(argument: str, path: str, *suffixes: str) -> Path:
    """The path of a file to write, before any work is done for it.

    Raises:
        UserError: It ends otherwise than in `suffixes`, its folder is not there, or it is a folder.
    """
    found = Path(path)
    if found.suffix.lower() not in suffixes:
        raise UserError(f"argument {argument}: must end in {' or '.join(suffixes)}, got {path!r}")
    if not found.parent.is_dir():
        raise UserError(f"argument {argument}: no such folder {str(found.parent)!r}")
    if found.is_dir():
        raise UserError(f"argument {argument}: {path!r} is a folder")
    if not os.access(found.parent, os.W_OK):
        raise UserError(f"argument {argument}: the folder {str(found.parent)!r} is not writable")
    return found
