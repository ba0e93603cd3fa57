"""`memenvs dataset`."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.cli.common import (
    UserError,
    as_user_error,
    environment_spec,
    find_target,
    parse_settings,
    refuse_options,
    settings_as_user_error,
)
from memenvs.cli.parser import SETTINGS
from memenvs.cli.policies import POLICIES, make_policy, policy_help
from memenvs.dataset import CARD, Source, check_dataset_id, make_spec_env, read_card, write_dataset
from memenvs.episodes import EnvPolicy
from memenvs.progress import progress_bar

ARGUMENTS = """
target TARGET?: id that a policy plays, as of `memenvs rollout`; or folder of a run, whose agent plays the trials of its
    evaluation
--env_kwargs JSON: settings of the environment of an id
--policy NAME: who plays an id, as of `memenvs rollout` (default: random)
--checkpoint FILE: file in the folder (default: the one that is evaluated)
--seed K: seed of environment and policy (default: 0), or of an agent's evaluation (default: 1)
--episodes N: episodes (default: 10); the trial in which this number is reached is played to its end
--out NAME-vN!: Minari id of the dataset, such as darkroom/oracle-v0; it is written below the folder that
    MINARI_DATASETS_PATH names (default: ~/.minari/datasets)
--append: add the episodes to that dataset, which must be of the same source
--rebuild CARD: make the dataset of this card.json, or of the folder that it is in, again, and check every bit; with
    --out, --json and, for that of an agent, its run alone
"""

DEFAULT_POLICY, DEFAULT_EPISODES, DEFAULT_SEED = "random", 10, 0


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play whole trials of a policy and write them as a Minari dataset."""
    target = None if arguments.target is None else find_target(arguments.target)
    if isinstance(target, Path):
        refuse_options(arguments, (SETTINGS, "policy"), "goes with an id and not with a run")
        document: dict[str, Any] = import_module("memenvs.agents.cli.dataset").write_trials(arguments, target)
        return document
    refuse_options(arguments, ("checkpoint",), "goes with a run and not with an id")
    card = card_to_rebuild(arguments, ("target", "policy", "episodes", "seed", SETTINGS))
    if card is None:
        if target is None:
            raise UserError("argument TARGET: is needed where there is no --rebuild")
        settings = parse_settings(arguments.settings)
        policy = DEFAULT_POLICY if arguments.policy is None else arguments.policy
        source = make_source(target.id, settings, policy, arguments.seed or DEFAULT_SEED, arguments.imports)
    else:
        policy = card["policy"].get("name")
        if policy not in (*POLICIES, *policy_help()):
            raise UserError(
                "argument --rebuild: the dataset is of an agent; use memenvs dataset RUN --rebuild CARD, got "
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
    return summarize(arguments, written)


def make_source(id: str, settings: dict[str, Any], policy: str, seed: int, imports: Sequence[str]) -> Source:
    """Make the source of a dataset of a scripted policy.

    Args:
        id: Argument TARGET.
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

        def begin_trial(trial: int) -> EnvPolicy:
            return make_policy(policy, env, spec, np.random.default_rng([seed, trial]))

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
    refuse_options(arguments, (*names, "append"), "must not be given with --rebuild, whose card has it")
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
    """Return the summary of a dataset; print it without --json."""
    path = check_dataset_id(arguments.out) / CARD
    counts = {"episodes": card["episodes"], "trials": len(card["checksums"]), "steps": card["steps"]}
    if not arguments.json:
        amounts = ", ".join(f"{count} {name}" for name, count in counts.items())
        print(f"wrote dataset {arguments.out}: {amounts}\ncard: {path}")
    return {"dataset": arguments.out, "id": card["environment"]["id"], **counts, "card": str(path)}
