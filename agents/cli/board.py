"""`memenvs board add`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import read_config
from memenvs.board.entry import Entry, check_entry, make_entry
from memenvs.board.replay import replay
from memenvs.cli.common import as_user_error
from memenvs.progress import progress_bar


def entry_of_runs(arguments: argparse.Namespace, board: Path) -> Entry:
    """Let the agents of runs play a test set, and make an entry that is new to the board."""
    configs = [read_config(folder) for folder in arguments.runs]
    first = configs[0]
    for folder, config in zip(arguments.runs, configs, strict=True):
        if replace(config, seed=first.seed) != first:
            raise ValueError(f"runs must differ in their seed alone, those of {folder} are other settings")
    seeds = [config.seed for config in configs]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"runs must differ in their seeds, got {seeds}")
    memory = arguments.memory or first.policy.get("memory")
    if memory is None:
        raise ValueError(f"--memory is needed: the settings of {arguments.runs[0]} name none")

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.evaluate import evaluate_run
    from memenvs.agents.experiments.prediction_experiment import answer_test_set
    from memenvs.agents.study import settings_hash

    entry = make_entry(
        arguments.name,
        arguments.id or first.env,
        (),
        memory=memory,
        settings=settings_hash(replace(first, seed=0)),
        author=arguments.author,
        link=arguments.link,
        kind=getattr(arguments, "class"),
    )
    check_entry(entry, board / entry.folder, is_new=True)  # before minutes of playing
    options = {"test_set": entry.test_set, "seed": arguments.seed, "quiet": arguments.json}
    for folder, config in zip(arguments.runs, configs, strict=True):
        with RunDirectory(folder) as run:
            if config.kind.acts:
                played = evaluate_run(run, keep_actions=True, env=entry.id, **options)
                actions, observed = played.actions, dict(played.observed)
            else:
                with as_user_error("runs", NotImplementedError):  # the task of a user may have no such answers
                    actions, observed = answer_test_set(run, entry.id, **options)
        entry = replace(entry, observed=observed)  # raises where the class does not fit
        with progress_bar("replaying", quiet=arguments.json) as progress:
            again = replay(entry.id, actions, entry.test_set, seed=config.seed, progress=progress)
        entry = replace(entry, runs=(*entry.runs, again))
    return entry
