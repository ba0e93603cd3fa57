"""`memenvs board add`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig, read_config
from memenvs.board.entry import Entry, check_entry, make_entry
from memenvs.board.replay import replay
from memenvs.certificates.test_sets import TrialSet, find_test_set
from memenvs.cli.common import as_user_error
from memenvs.identity import FREE_SETTINGS
from memenvs.progress import progress_bar
from memenvs.registry import find_environment

#: Settings in which a training may differ from its test set: other episodes, and longer or shorter trials.
_SAME_WORLD = (*FREE_SETTINGS, "trial_episodes", "trial_steps")


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
    elsewhere = _learned_elsewhere(first, find_test_set(entry.id, entry.test_set))
    if elsewhere and entry.kind == "plain":
        raise ValueError(f"class must be pretrained or privileged where runs learned in {elsewhere}, got 'plain'")
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


def _learned_elsewhere(config: RunConfig, trials: TrialSet) -> str:
    """Id or settings in which a run learned in place of those of a test set; "" if in the same world."""
    from memenvs.agents.experiments.evaluate import replaced_settings

    if find_environment(config.env).task != find_environment(trials.id).task:
        return config.env
    changed = replaced_settings(replace(config, eval_kwargs={}), trials)  # of its training
    other = {name: pair for name, pair in changed.items() if name not in _SAME_WORLD}
    return ", ".join(f"{name}={own!r} and not {its!r}" for name, (own, its) in other.items())
