"""`memenvs train`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memenvs.agents.cli.evaluate import OWN_EVALUATION, print_curves
from memenvs.agents.experiments.config import RunConfig, check_new, difference, read_config, with_overrides
from memenvs.agents.presets import find_preset
from memenvs.cli.common import json_or_text
from memenvs.cli.parser import Parser
from memenvs.registry import check_registered

ARGUMENTS = """
preset NAME: its name; `presets` lists all
--out OUT_FOLDER: folder of the run (default: runs/PRESET-SEED)
--resume: resume the run in that folder; all other arguments must be those that began it, but for more --total_steps,
    which also extends a finished run
--no-evaluate: only train

Any setting of the preset can be changed by its dotted name, the value as JSON: --seed 3  --ppo.n_epochs 2
--policy.memory_kwargs.layers 4  --env_kwargs.size 8. See `presets NAME`. Another memory, such as --policy.memory lstm,
begins with its own default settings. Training ends with the first whole rollout that reaches total_steps, which counts
environment steps of all copies together where a preset learns with ppo or dqn, batches with supervised, updates with
imitation.
"""


def add_arguments(command: Parser) -> None:
    """Take every other option as a setting of the preset."""
    command.takes_settings = True


def run(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Train a preset with some settings changed, evaluate it and write its report.

    Returns:
        The result; None in all processes but the first.
    """
    preset = find_preset(arguments.preset)
    settings = [(name, json_or_text(text)) for name, text in arguments.settings]
    config = with_overrides(preset, _with_own_strategy(preset, settings))
    folder = arguments.out or Path("runs") / f"{arguments.preset}-{config.seed}"
    check_registered(config.env)
    if not arguments.resume:
        check_new(folder, ", or resume it with --resume")
    else:
        begun = read_config(folder)
        if config.total_steps > begun.total_steps:  # train it longer
            begun = replace(begun, total_steps=config.total_steps)
        differs = difference(begun, config)
        if differs is not None:
            raise ValueError(
                f"{folder} holds another run: {differs}; --resume goes with the command that began it, or with more "
                "--total_steps"
            )

    from memenvs.agents.algorithms.distributed import launched_processes
    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.progress import count_weights
    from memenvs.agents.experiments.run_report import write_report
    from memenvs.agents.experiments.train import check_config, train_run

    processes = launched_processes(config.device)
    if not arguments.resume:
        with processes.fail_together():
            check_config(config, processes)  # before there is a folder
    with RunDirectory(folder, None if arguments.resume else config, processes) as run:
        if arguments.resume and processes.is_first and not run.has_checkpoint:
            print(f"{folder} has no checkpoint yet: training starts from the beginning", file=sys.stderr)
        run.extend(config.total_steps)
        model = train_run(run, quiet=arguments.json)
        processes.close()
        if not processes.is_first:
            return None
        network = model.policy if config.kind.acts else model.model
        result: dict[str, Any] = {"run": str(folder), "steps": model.num_timesteps, "weights": count_weights(network)}
        if not arguments.no_evaluate:
            try:
                result["evaluation"] = config.make_experiment().evaluate(run, OWN_EVALUATION, quiet=arguments.json)
            except KeyboardInterrupt:
                print(run.how_to_resume(), file=sys.stderr)
                raise
            result["report"] = str(write_report([run], folder))
    if not arguments.json:
        print_curves(result.get("evaluation", {}), config.score)
        print(f"run: {folder}" + (f"\nreport: {result['report']}" if "report" in result else ""))
    return result


def _with_own_strategy(preset: RunConfig, settings: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Leave out the preset's strategy if a memory is chosen that evicts nothing."""
    changes = {name.replace("-", "_"): value for name, value in settings}
    memory = changes.get("policy.memory")
    is_swapped = memory not in (None, preset.policy.get("memory"))
    if is_swapped and "strategy" in preset.policy and "policy.strategy" not in changes:
        from memenvs.agents.papers.sat.config import TOKEN_MEMORIES  # not above: it imports torch

        if memory not in TOKEN_MEMORIES:
            return [("policy.strategy", None), *settings]
    return settings
