"""`memenvs dataset`."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.cli.common import (
    UserError,
    as_user_error,
    environment_spec,
    parse_settings,
    print_json,
    settings_as_user_error,
)
from memenvs.cli.policies import POLICIES, make_policy, policy_help
from memenvs.dataset import CARD, Source, check_dataset_id, make_spec_env, read_card, write_dataset
from memenvs.progress import progress_bar

DEFAULT_POLICY, DEFAULT_EPISODES, DEFAULT_SEED = "random", 10, 0


def run(arguments: argparse.Namespace) -> None:
    """Play whole trials of a policy and write them as a Minari dataset."""
    card = card_to_rebuild(arguments, ("id", "policy", "episodes", "seed", "env_kwargs"))
    if card is None:
        if arguments.id is None:
            raise UserError("argument ID: is needed where there is no --rebuild")
        settings = parse_settings(arguments.env_kwargs)
        policy = DEFAULT_POLICY if arguments.policy is None else arguments.policy
        source = make_source(arguments.id, settings, policy, arguments.seed or DEFAULT_SEED, arguments.imports)
    else:
        policy = card["policy"].get("name")
        if policy not in (*POLICIES, *policy_help()):
            raise UserError(
                "argument --rebuild: the dataset is of an agent; use memenvs-agents dataset RUN --rebuild CARD, got "
                f"{arguments.rebuild}"
            )
        environment = card["environment"]
        source = make_source(environment["id"], environment["settings"], policy, card["seed"], arguments.imports)
    try:
        written = write(arguments, source, card)
    except NotImplementedError as error:  # a task of a user may have no oracle
        raise UserError(f"argument --policy: {error}") from error
    finally:
        source.env.close()
    summary = summarize(arguments, written)
    if arguments.json:
        print_json(summary)


def make_source(id: str, settings: dict[str, Any], policy: str, seed: int, imports: Sequence[str]) -> Source:
    """Make the source of a dataset of a scripted policy.

    Args:
        id: Argument ID.
        settings: Settings beside the default ones.
        policy: One of `POLICIES` or of `policy_help`.
        seed: Seed of environment and policy.
        imports: Modules that register the id.

    Raises:
        UserError: The environment cannot be made, its trials never end, or it does not have the policy.
    """
    spec = environment_spec(id)
    with settings_as_user_error(spec, settings):
        env = make_spec_env(spec.id, settings)
        make_policy(policy, env, spec, np.random.default_rng(0))  # refused now, not once a folder is there

        def begin_trial(trial: int) -> Callable[[bool], Any]:
            player = make_policy(policy, env, spec, np.random.default_rng([seed, trial]))

            def next_action(begins_episode: bool) -> Any:
                if begins_episode:
                    player.begin()
                return player.action()

            return next_action

        words = ["memenvs", "dataset", spec.id, "--policy", policy, "--seed", str(seed)]
        words += [word for name in imports for word in ("--import", name)]
        return Source(
            env=env,
            settings=settings,
            policy={"name": policy},
            seed=seed,
            begin_trial=begin_trial,
            command=shlex.join([*words, *(["--env_kwargs", json.dumps(settings)] if settings else [])]),
        )


def card_to_rebuild(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Check --out, and read the card that --rebuild names; None without --rebuild.

    Args:
        arguments: Those of the command.
        names: Arguments that the card stands for.

    Raises:
        UserError: The id of the dataset is malformed, Minari is missing, there is no card, or one of the arguments is
            given beside it.
    """
    with as_user_error("--out", ValueError, ImportError):
        check_dataset_id(arguments.out)
    if arguments.rebuild is None:
        return None
    for name in (*names, "append"):
        value = getattr(arguments, name)
        if value is not None and value is not False:
            shown = "ID" if name == "id" else f"--{name}"
            raise UserError(f"argument {shown}: must not be given with --rebuild, whose card has it, got {value}")
    with as_user_error("--rebuild", ValueError, OSError):
        return read_card(Path(arguments.rebuild))


def write(arguments: argparse.Namespace, source: Source, card: dict[str, Any] | None) -> dict[str, Any]:
    """Write the dataset and return its card.

    Raises:
        UserError: The source has changed, the id is taken, or the files cannot be written.
    """
    episodes = card["episodes"] if card is not None else arguments.episodes or DEFAULT_EPISODES
    argument = "--rebuild" if card is not None else "--append" if arguments.append else "--out"
    with (
        as_user_error(argument, ValueError, OSError),
        progress_bar(f"playing {episodes} episodes", quiet=arguments.json) as progress,
    ):
        return write_dataset(arguments.out, source, episodes, append=arguments.append, expected=card, progress=progress)


def summarize(arguments: argparse.Namespace, card: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a dataset, printed but with --json."""
    path = check_dataset_id(arguments.out) / CARD
    counts = {"episodes": card["episodes"], "trials": len(card["checksums"]), "steps": card["steps"]}
    if not arguments.json:
        shown = ", ".join(f"{count} {name}" for name, count in counts.items())
        print(f"wrote dataset {arguments.out}: {shown}\ncard: {path}")
    return {"dataset": arguments.out, "id": card["environment"]["id"], **counts, "card": str(path)}
