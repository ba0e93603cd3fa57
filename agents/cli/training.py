"""`memenvs-agents train` and `evaluate`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import (
    TEST_SET_FILES,
    RunConfig,
    check_new,
    difference,
    read_config,
    with_overrides,
)
from memenvs.agents.presets import find_preset, folder_name
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli.common import json_or_text, merge_settings, parse_settings
from memenvs.registry import check_registered

OWN_EVALUATION = "evaluation"
"""Name of the evaluation with the run's own settings."""
MOST_METRICS = 5
"""Metrics of predictions that are printed; there may be a hundred, by kind of question."""


def train(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any] | None:
    """Train a preset with the settings in `extra_arguments`, evaluate it and write its report.

    Returns:
        The result; None in all processes but the first.
    """
    preset, settings = find_preset(options.preset), _parse_settings(extra_arguments)
    config = with_overrides(preset, _with_own_memory_kwargs(preset, settings))
    folder = options.out or Path("runs") / folder_name(options.preset, config.seed)
    check_registered(config.env)
    if not options.resume:
        check_new(folder)
    else:
        found = read_config(folder)
        if config.total_steps > found.total_steps:  # train it longer
            found = replace(found, total_steps=config.total_steps)
        differs = difference(found, config)
        if differs is not None:
            raise ValueError(
                f"{folder} holds another run: {differs}; --resume goes with the command that began it, or with more "
                "--total_steps"
            )

    from memenvs.agents.algorithms.distributed import launched_processes
    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.run_report import write_report
    from memenvs.agents.experiments.train import check_config, train_run

    processes = launched_processes(config.device)
    if not options.resume:
        with processes.fail_together():
            check_config(config, processes)  # before there is a folder
    with RunDirectory(folder, None if options.resume else config, processes) as run:
        if options.resume and processes.is_first and not run.has_checkpoint:
            print(f"{folder} has no checkpoint yet: training starts from the beginning", file=sys.stderr)
        run.extend(config.total_steps)
        model = train_run(run, quiet=options.json)
        processes.close()
        if not processes.is_first:
            return None
        result: dict[str, Any] = {"run": str(folder), "steps": model.num_timesteps}
        if not options.no_evaluate:
            try:
                result["evaluation"] = config.make_experiment().evaluate(run, OWN_EVALUATION, quiet=options.json)
            except KeyboardInterrupt:
                print(run.how_to_resume(), file=sys.stderr)
                raise
            result["report"] = str(write_report([run], folder))
    if not options.json:
        _print_curves(result.get("evaluation", {}), config.score)
        print(f"run: {folder}" + (f"\nreport: {result['report']}" if "report" in result else ""))
    return result


def evaluate(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Evaluate a run, in other environments if the options change its `eval_kwargs`."""
    config = read_config(options.folder)
    if not config.kind.acts:
        for option in ("steps", "checkpoint", "demonstrations", "test_set"):
            if getattr(options, option):
                raise ValueError(f"--{option} is for agents that act; {options.folder} learns to predict")
    changed = parse_settings(options.env_kwargs)
    eval_kwargs = merge_settings(config.eval_kwargs, changed) if changed else None
    if options.test_set is not None and (options.steps or options.trials or options.demonstrations):
        raise ValueError("--test_set has its own trials; leave out --steps, --trials, --demonstrations")
    given = {"eval_steps": options.steps, "eval_trials": options.trials, "eval_kwargs": eval_kwargs}
    changes = {key: value for key, value in given.items() if value is not None}
    shown = f"demonstrations_{options.demonstrations}" if options.demonstrations else OWN_EVALUATION
    if options.test_set is not None:
        shown = f"{TEST_SET_FILES}{options.test_set}"
    name = options.name or shown
    if name == OWN_EVALUATION != shown:
        raise ValueError(
            f"{OWN_EVALUATION}.json has no demonstrations and no test set; leave out --name, or choose another"
        )
    if options.test_set is not None:
        from memenvs.agents.experiments.evaluate import replaced_settings
        from memenvs.agents.experiments.trial_evaluator import free_settings

        free = free_settings(find_test_set(config.env, options.test_set))
        for setting in changed:
            if setting not in free:
                raise ValueError(f"--eval_kwargs.{setting}: test set {options.test_set} of {config.env} sets it")
    if options.checkpoint is not None and not (options.folder / options.checkpoint).is_file():
        raise FileNotFoundError(f"no checkpoint at {options.folder / options.checkpoint}")
    if eval_kwargs is not None:
        config.make_experiment().check_eval_kwargs(replace(config, eval_kwargs=eval_kwargs))
    if name == shown:
        _check_own_settings(name, config, changes)

    from memenvs.agents.experiments.directory import RunDirectory, best_checkpoint

    best = best_checkpoint(options.folder).name
    if name == shown and options.checkpoint not in (None, best):
        raise ValueError(f"{name}.json is for {best}, got --checkpoint {options.checkpoint}; choose a --name")
    if config.kind.acts:
        changes |= {name: getattr(options, name) for name in ("checkpoint", "demonstrations", "test_set")}
    if options.test_set is not None:
        replaced = replaced_settings(config, options.test_set).items()
        if replaced:
            texts = ", ".join(f"{setting}={ours!r} by {its!r}" for setting, (ours, its) in replaced)
            print(f"test set {options.test_set} replaces settings of the run: {texts}", file=sys.stderr)
    with RunDirectory(options.folder) as run:
        experiment = config.make_experiment()
        result = experiment.evaluate(run, name, seed=options.seed, quiet=options.json, **changes)
    if not options.json:
        if options.test_set is not None:
            print(f"test set {options.test_set}: {result['agent']['test_set']['hash']}")
        _print_curves(result, config.score)
        print(f"written: {options.folder / name}.json")
    return result


def _check_own_settings(name: str, config: RunConfig, changes: dict[str, Any]) -> None:
    """Raise a ValueError if an evaluation changes settings that the report shows beside it."""
    differs = difference(config, replace(config, **changes))
    if differs is not None:
        raise ValueError(
            f"{name}.json is for the run's own settings, which the report shows beside it: {differs}; choose a --name"
        )


def _parse_settings(extra_arguments: list[str]) -> list[tuple[str, Any]]:
    """("name", value) of each `--name value` or `--name=value`; a value that is not JSON is text.

    Raises:
        ValueError: The arguments have another form.
    """
    pairs = []
    waiting = list(extra_arguments)
    while waiting:
        name, separator, text = waiting[0].partition("=")
        if not name.startswith("--") or (not separator and len(waiting) == 1):
            raise ValueError(f"settings must come as --name value, got {' '.join(waiting)!r}")
        if not separator:
            text = waiting[1]
        waiting = waiting[1 if separator else 2 :]
        pairs.append((name[2:], json_or_text(text)))
    return pairs


def _with_own_memory_kwargs(preset: RunConfig, settings: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Leave out the preset's settings of its memory if another memory is chosen, whose settings have other names."""
    names = [name.replace("-", "_") for name, _ in settings]
    memory = next((value for name, value in settings if name == "policy.memory"), None)
    is_swapped = memory is not None and memory != preset.policy.get("memory")
    if not is_swapped or not preset.policy.get("memory_kwargs") or "policy.memory_kwargs" in names:
        return settings
    return [("policy.memory_kwargs", {}), *settings]


def _print_curves(evaluation: dict[str, Any], score: str) -> None:
    """Print the score of each policy, early and later in a trial, or the first metrics of predictions."""
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
        print(f"{name:10} {score}: {_early_and_later(curve, 'episode')}")


def _early_and_later(curve: list[float], of: str) -> str:
    """Format the first value of a curve and the mean of the others; the report draws all."""
    if not curve:
        return "no episode has ended in all trials within these steps"
    later = sum(curve[1:]) / len(curve[1:]) if len(curve) > 1 else 0.0
    return f"{curve[0]:.3g} in {of} 1" + (f", {later:.3g} in {of}s 2 to {len(curve)}" if len(curve) > 1 else "")
