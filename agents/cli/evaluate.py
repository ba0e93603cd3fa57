"""`memenvs evaluate`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from memenvs.agents.experiments.config import ITINERARY_FILES, TEST_SET_FILES, RunConfig, difference, read_config
from memenvs.agents.experiments.itinerary import score_texts
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli.common import (
    merge_settings,
    parse_settings,
)

ARGUMENTS = """
folder RUN: folder of the run
--steps N: steps of a trial (default: the preset's)
--trials N: number of trials (default: the preset's)
--seed K=1: seed of the evaluation
--checkpoint FILE: file in the folder, such as that of a milestone (default: best.zip of a run with validation, else
    checkpoint.zip)
--name STEM: STEM.json is written (default: evaluation or demonstrations_K, which the report shows, or last_steps_K);
    needed with other steps, trials, checkpoint or environments than the run's own
--demonstrations K=0: the oracle plays the first K episodes of each trial before the steps of the agent; only the agent
    is evaluated then
--last_steps K: of earlier episodes the agent remembers the last K steps of the trial alone, and all of the present one;
    a score that stays does not show a longer memory of earlier episodes; only the agent is evaluated then, and each
    start of an episode costs it K steps more
--test_set NAME: play the test set of this name, such as v0, in place of the evaluation trials (memenvs test-set ID),
    with its settings but for what the run observes; test_set_NAME.json is written, which the report shows
--itinerary LETTERS: trials that lead to other homes and back, such as AAAAAABBBBBBAAA, with the run's other settings;
    itinerary_LETTERS.json is written, which the report shows
--env_kwargs/--eval_kwargs JSON: changes to the run's eval_kwargs, with --name

Other environments than the preset's: --name procthor --env_kwargs.world procthor --env_kwargs.split all
--env_kwargs.rooms null.
"""

DEMONSTRATION_FILES = "demonstrations_"
LAST_STEPS_FILES = "last_steps_"
OWN_EVALUATION = "evaluation"
"""Name of the evaluation with the run's own settings."""
MOST_METRICS = 5
"""Metrics of predictions that are printed; there may be a hundred, by kind of question."""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Evaluate a run, in other environments if the arguments change its `eval_kwargs`."""
    config = read_config(arguments.folder)
    if not config.kind.acts:
        for option in ("steps", "checkpoint", "demonstrations", "last_steps", "test_set", "itinerary"):
            if getattr(arguments, option) != (0 if option == "demonstrations" else None):
                raise ValueError(f"--{option} is for agents that act; {arguments.folder} learns to predict")
    changed = parse_settings(arguments.settings)
    eval_kwargs = merge_settings(config.eval_kwargs, changed) if changed else None
    if arguments.test_set is not None and (arguments.steps or arguments.trials or arguments.demonstrations):
        raise ValueError("--test_set has its own trials; leave out --steps, --trials, --demonstrations")
    if arguments.itinerary is not None and (arguments.steps or arguments.test_set or arguments.demonstrations):
        raise ValueError("--itinerary has trials of its own; leave out --steps, --test_set, --demonstrations")
    own_itinerary = {**config.env_kwargs, **(eval_kwargs or config.eval_kwargs)}.get("itinerary")
    if arguments.steps and own_itinerary is not None:
        raise ValueError(f"--steps must be left out with the run's itinerary {own_itinerary!r}: its trials are whole")
    options = {"eval_steps": arguments.steps, "eval_trials": arguments.trials, "eval_kwargs": eval_kwargs}
    changes = {key: value for key, value in options.items() if value is not None}
    own_name = f"{DEMONSTRATION_FILES}{arguments.demonstrations}" if arguments.demonstrations else OWN_EVALUATION
    if arguments.last_steps is not None:
        own_name = f"{LAST_STEPS_FILES}{arguments.last_steps}"
    if arguments.test_set is not None:
        own_name = f"{TEST_SET_FILES}{arguments.test_set}"
    if arguments.itinerary is not None:
        own_name = f"{ITINERARY_FILES}{arguments.itinerary}"
    name = arguments.name or own_name
    if name == OWN_EVALUATION != own_name:
        raise ValueError(f"{OWN_EVALUATION}.json is for the run's own trials; leave out --name, or choose another")
    if name != own_name and name.startswith((DEMONSTRATION_FILES, LAST_STEPS_FILES, TEST_SET_FILES, ITINERARY_FILES)):
        raise ValueError(f"{name}.json is the file of another evaluation; choose another --name")
    if arguments.test_set is not None:
        from memenvs.agents.experiments.evaluate import replaced_settings
        from memenvs.agents.experiments.trial_evaluator import free_settings

        trials = find_test_set(config.env, arguments.test_set)
        free = free_settings(trials)
        for setting in changed:
            if setting not in free:
                raise ValueError(f"--eval_kwargs.{setting}: test set {arguments.test_set} of {config.env} sets it")
    if arguments.checkpoint is not None and not (arguments.folder / arguments.checkpoint).is_file():
        raise FileNotFoundError(f"no checkpoint at {arguments.folder / arguments.checkpoint}")
    if eval_kwargs is not None:
        config.make_experiment().check_eval_kwargs(replace(config, eval_kwargs=eval_kwargs))
    if name == own_name:
        _check_own_settings(name, config, changes)
    if arguments.itinerary is not None:
        changes["eval_kwargs"] = {**(eval_kwargs or config.eval_kwargs), "itinerary": arguments.itinerary}
        config.make_experiment().check_eval_kwargs(replace(config, eval_kwargs=changes["eval_kwargs"]))

    from memenvs.agents.experiments.directory import RunDirectory, best_checkpoint

    best = best_checkpoint(arguments.folder).name
    if name == own_name and arguments.checkpoint not in (None, best):
        raise ValueError(f"{name}.json is for {best}, got --checkpoint {arguments.checkpoint}; choose a --name")
    if config.kind.acts:
        own = ("checkpoint", "demonstrations", "last_steps", "test_set")
        changes |= {name: getattr(arguments, name) for name in own}
    if arguments.test_set is not None:
        replaced = replaced_settings(config, trials).items()
        if replaced:
            texts = ", ".join(f"{setting}={ours!r} by {its!r}" for setting, (ours, its) in replaced)
            print(f"test set {arguments.test_set} replaces settings of the run: {texts}", file=sys.stderr)
    with RunDirectory(arguments.folder) as run:
        experiment = config.make_experiment()
        result = experiment.evaluate(run, name, seed=arguments.seed, quiet=arguments.json, **changes)
    if not arguments.json:
        if arguments.test_set is not None:
            print(f"test set {arguments.test_set}: {result['agent']['test_set']['hash']}")
        print_curves(result, config.score)
        is_shown = arguments.name is None and arguments.last_steps is None
        step = f"; next: memenvs report {arguments.folder}" if is_shown else ""
        print(f"written: {arguments.folder / name}.json{step}")
    return result


def _check_own_settings(name: str, config: RunConfig, changes: dict[str, Any]) -> None:
    """Raise a ValueError if an evaluation changes what the report says of it."""
    differs = difference(config, replace(config, **changes))
    if differs is not None:
        raise ValueError(f"{name}.json is for the run's own settings: {differs}; choose a --name")


def print_curves(evaluation: dict[str, Any], score: str) -> None:
    """Print scores of each policy, early, later and last, or the first metrics of predictions."""
    for name, data in evaluation.items():
        if "episodes" in data:  # of predictions
            metrics = sorted(data["metrics"], key=lambda metric: metric != score)
            for metric in metrics[:MOST_METRICS]:
                value = data["metrics"][metric]
                print(f"{name:10} {metric}: {value['mean']:.4f} +- {value['stderr']:.4f}")
            if len(metrics) > MOST_METRICS:
                print(f"{name:10} and {len(metrics) - MOST_METRICS} more in the file and the report")
            continue
        demonstrated = data["demonstrations"].get(score, [])
        if demonstrated:
            print(f"{'oracle':10} {score}: {_early_and_later(demonstrated, 'demonstration')}")
        curve = data["metrics"].get(score, {"mean": []})["mean"]
        if curve and "itinerary" in data:
            for text in score_texts(data, score):
                print(f"{name:10} {score}: {text}")
            continue
        print(f"{name:10} {score}: {_early_and_later(curve, 'episode')}")


def _early_and_later(curve: list[float], of: str) -> str:
    """Format the first value of a curve, the mean of the others and the last; the report draws all."""
    if not curve:
        return "no episode has ended in all trials within these steps"
    parts = [f"{curve[0]:.3g} in {of} 1"]
    if len(curve) > 1:
        parts.append(f"{sum(curve[1:]) / len(curve[1:]):.3g} in {of}s 2 to {len(curve)}")
    if len(curve) > 2:
        parts.append(f"{curve[-1]:.3g} in {of} {len(curve)}")
    return ", ".join(parts)
