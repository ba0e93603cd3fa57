"""`python -m memenvs.agents train` and `evaluate`."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memenvs.agents.experiments.config import RunConfig, difference, read_config, with_overrides
from memenvs.agents.presets import find_preset

if TYPE_CHECKING:
    from memenvs.agents.experiments.directory import RunDirectory

OWN = "evaluation"
"""Name of the evaluation that belongs to a run."""


def train(options: argparse.Namespace, rest: list[str]) -> dict[str, Any] | None:
    """Trains a preset with the settings in `rest` changed; evaluates it and writes its report. None in all processes but the first."""
    config = with_overrides(find_preset(options.preset), _pairs(rest))
    folder = options.out or Path("runs") / f"{options.preset}-{config.seed}"
    if options.resume:
        differs = difference(read_config(folder), config)
        if differs is not None:
            raise ValueError(f"{folder} holds another run: {differs}; --resume goes with the command that began it")

    from memenvs.agents.algorithms.distributed import launched
    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.report import write_report
    from memenvs.agents.experiments.supervised_runs import evaluate_supervised
    from memenvs.agents.experiments.train import check_config, evaluate_and_compare, train_run

    processes = launched(config.device)
    if not options.resume:
        with processes.fail_together():
            check_config(config, processes)  # before there is a folder
    with RunDirectory(folder, None if options.resume else config, processes) as run:
        model = train_run(run, quiet=options.json)
        processes.close()
        if not processes.is_first:
            return None
        result: dict[str, Any] = {"run": str(folder), "steps": model.num_timesteps}
        if not options.no_evaluate:
            predicts = config.supervised is not None
            result["evaluation"] = (
                evaluate_supervised(run) if predicts else evaluate_and_compare(run, quiet=options.json)
            )
            result["report"] = str(write_report([run], folder))
    if not options.json:
        _print_curves(result.get("evaluation", {}), config.score)
        print(f"run: {folder}" + (f"\nreport: {result['report']}" if "report" in result else ""))
    return result


def evaluate(options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    """Evaluates a run, elsewhere if `rest` says so."""
    config = read_config(options.folder)
    if config.supervised is not None:
        for option in ("steps", "checkpoint", "demonstrations"):
            if getattr(options, option):
                raise ValueError(f"--{option} is for agents that act; {options.folder} learns to predict")
    changed = with_overrides(config, _pairs(rest, "eval_kwargs.")).eval_kwargs if rest else None
    name = options.name or (f"demonstrations_{options.demonstrations}" if options.demonstrations else OWN)
    if name == OWN:
        _check_own(config, options, changed)

    from memenvs.agents.experiments.directory import RunDirectory, best_checkpoint

    if name == OWN and options.checkpoint not in (None, played := best_checkpoint(options.folder).name):
        raise ValueError(f"{OWN}.json is for {played}, got --checkpoint {options.checkpoint}; choose a --name")
    with RunDirectory(options.folder) as run:
        result = (_evaluate_agent if config.supervised is None else _evaluate_predictions)(run, options, name, changed)
    if not options.json:
        _print_curves(result, config.score)
        print(f"written: {options.folder / name}.json")
    return result


def _check_own(config: RunConfig, options: argparse.Namespace, eval_kwargs: dict[str, Any] | None) -> None:
    """The evaluation that the report shows, beside the run's settings, is of these settings."""
    given = {"eval_steps": options.steps, "eval_trials": options.trials, "eval_kwargs": eval_kwargs}
    differs = difference(config, replace(config, **{key: value for key, value in given.items() if value is not None}))
    if differs is not None:
        raise ValueError(
            f"{OWN}.json is for the run's own settings, which the report shows beside it: {differs}; choose a --name"
        )


def _evaluate_agent(
    run: RunDirectory, options: argparse.Namespace, name: str, eval_kwargs: dict[str, Any] | None
) -> dict[str, Any]:
    from memenvs.agents.experiments.train import evaluate_and_compare, evaluate_demonstrated, trained_policy

    given = {"eval_steps": options.steps, "eval_trials": options.trials, "eval_kwargs": eval_kwargs}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    policy = trained_policy(run, options.seed, options.checkpoint)
    if options.demonstrations == 0:
        return evaluate_and_compare(run, options.seed, name, policy=policy, quiet=options.json, **changes)
    return evaluate_demonstrated(
        run, options.demonstrations, name, options.seed, policy=policy, quiet=options.json, **changes
    )


def _evaluate_predictions(
    run: RunDirectory, options: argparse.Namespace, name: str, eval_kwargs: dict[str, Any] | None
) -> dict[str, Any]:
    from memenvs.agents.experiments.supervised_runs import evaluate_supervised, trained_model

    model = trained_model(run, eval_kwargs)
    return evaluate_supervised(run, model, name=name, seed=options.seed, episodes=options.trials)


def _pairs(rest: list[str], prefix: str = "") -> list[tuple[str, Any]]:
    """("name", value) of `--name value`; a value that is not JSON is text.

    Raises:
        ValueError: Something else is there, or a name does not begin with the prefix.
    """
    pairs = []
    for i in range(0, len(rest), 2):
        if not rest[i].startswith(f"--{prefix}") or i + 1 == len(rest):
            raise ValueError(f"settings must come as --{prefix}name value, got {' '.join(rest[i:])!r}")
        try:
            value = json.loads(rest[i + 1])
        except json.JSONDecodeError:
            value = rest[i + 1]
        pairs.append((rest[i][2:], value))
    return pairs


def _print_curves(evaluation: dict[str, Any], score: str) -> None:
    for name, data in evaluation.items():
        if "episodes" in data:  # of predictions
            for metric, value in data["metrics"].items():
                print(f"{name:8} {metric}: {value['mean']:.4f} +- {value['stderr']:.4f}")
            continue
        curve = data["metrics"].get(score, {"mean": []})["mean"]
        shown = data["demonstrations"].get(score, [])
        if shown:
            print(f"{'oracle':8} {score} by demonstration: " + " ".join(f"{value:.3g}" for value in shown))
        none = "none that all trials have ended within these steps"
        print(f"{name:8} {score} by episode: " + (" ".join(f"{value:.3g}" for value in curve) or none))
