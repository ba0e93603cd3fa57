"""The Scene Memory Transformer's tables: seven ways to remember, three tasks, in 46 homes that no agent has seen.

Trains the first stage of each task and seed, then every method on its frozen encoder, and plays each in the test homes, 10 episodes in each, beside a
random policy and the oracle that knows the map; with MEMENVS_DATA also in the 14 ProcTHOR houses, in which nothing has been learned. The first stage,
which sees the present only too and learns its encoder along, is a row of its own; on a laptop it has four times as many updates as methods have, at
the article's sizes half as many. Prints a table for each task and world: means over seeds, episodes and homes with 95 % bootstrap intervals over
homes, and how far methods are ahead of each other in the same homes. Each episode's return is held to what its metrics say (`PAYS`). A stopped
command goes on where it was. Minutes of one core for a laptop run, beside others: first stage 7 to 9, reactive 2, lstm 3, sm-pooling 3, frmqn 6 to 7,
smt 11 to 12, smt-factorized 18, smt-causal 7 to 8.

    python examples/scene_memory.py [--tasks coverage] [--methods reactive smt smt-ppo] [--seeds 0 1 2] [--size laptop] [--jobs 2]
        [--out runs/scene_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.algorithms.dqn import EpisodeDQN
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, evaluation_env, make_evaluator, trained_policy
from memenvs.agents.experiments.play import OraclePolicy, RandomPolicy
from memenvs.agents.experiments.report import Report, add_table
from memenvs.agents.experiments.study_results import has_results, read_result, write_result
from memenvs.agents.experiments.sweep import SweepRun, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.presets import find_preset, run_names
from memenvs.agents.presets.smt import METHODS

#: Task -> metrics of its table.
COLUMNS = {
    "roaming": ("return", "distance", "collisions"),
    "coverage": ("return", "cells", "collisions"),
    "search": ("return", "classes", "ratio"),
}
#: Task -> what its return is made of.
PAYS = {
    "roaming": {"forwards_ok": 1, "collisions": -1},
    "coverage": {"cells": 5, "collisions": -1},
    "search": {"classes": 100, "cells": 1, "collisions": -1},
}
SIZES = ("laptop", "paper-like")
EVALUATION_SEED = 1
"""All agents play the same episodes."""
RESAMPLES = 10_000
#: The first stage: what its run is called in presets and folders, and its row.
FIRST, FIRST_ROW = "encoder", "first stage"
#: Methods that have a row in the tables of some tasks only, if they are asked for: `smt` with PPO.
MORE_METHODS = ("smt-ppo",)
#: What all methods are compared with, home by home.
BASES = ("random", "reactive")


@dataclass(frozen=True)
class Evaluation:
    """How a trained agent is played in the test homes.

    Attributes:
        name: Name of the evaluation of its run.
        memory: Settings of its memory that are changed after training.
        env: Settings of the environment that are changed.
        trials: Episodes, as many in each home; None for those of the preset.
        steps: Of an episode; None for those that it was trained in.
    """

    name: str = "homes"
    memory: dict[str, Any] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)
    trials: int | None = None
    steps: int | None = None

    def changed(self, config: RunConfig) -> RunConfig:
        """A run's settings with those of this evaluation; of a smoke test, as few trials."""
        trials = config.eval_trials if self.trials is None else min(self.trials, config.eval_trials)
        steps = config.eval_steps if self.steps is None else self.steps
        longer = {} if self.steps is None else {"max_episode_steps": steps}
        return replace(
            config, eval_kwargs={**config.eval_kwargs, **self.env, **longer}, eval_trials=trials, eval_steps=steps
        )


#: Where agents are played -> how; the second needs MEMENVS_DATA.
WORLDS = {
    "46 test homes of the SUNCG style": Evaluation(),
    "14 ProcTHOR houses": Evaluation("procthor", env={"world": "procthor", "split": "all"}, trials=140),
}


def settings(preset: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed; for seconds only if it is a smoke test."""
    config = replace(find_preset(preset), seed=seed)
    if not smoke:
        return config
    sizes = replace(config.learner, capacity=8, episode_steps=20, batch_size=4, decisions=4, updates_per_collect=2)
    short = {**config.env_kwargs, "max_episode_steps": 20}
    return replace(
        config, n_envs=4, total_steps=4 * 20 * 4, learner=sizes, env_kwargs=short, eval_steps=20, eval_trials=8, validation_trials=4
    )  # fmt: skip


def by_home(results: TrialResults, task: str) -> dict[str, list[float]]:
    """Metric -> mean of the episodes of each home, in the order of homes.

    Later episodes of a trial that ended early do not count; metrics that some episode does not have are left out.

    Raises:
        ValueError: The return of an episode is not what its metrics say.
    """
    first = {name: values[:, 0] for name, values in results.metrics.items() if np.isfinite(values[:, 0]).all()}
    paid = sum(worth * first[name] for name, worth in PAYS[task].items())
    if not np.array_equal(first["return"], paid):
        wrong = int(np.flatnonzero(first["return"] != paid)[0])
        raise ValueError(
            f"return of trial {wrong} must be {paid[wrong]}, by {PAYS[task]}, got {first['return'][wrong]}"
        )
    homes = np.unique(results.layouts)
    return {name: [float(values[results.layouts == home].mean()) for home in homes] for name, values in first.items()}


def train_and_evaluate(run: RunDirectory, quiet: bool, task: str, evaluations: tuple[Evaluation, ...]) -> None:
    """One run, to its end and with its evaluations."""
    train_run(run, quiet=quiet)
    for each in evaluations:
        if not has_results(run.path, each.name):
            changed = each.changed(run.config)
            results = evaluate_run(
                run,
                policy_with(run, each.memory),
                seed=EVALUATION_SEED,
                quiet=quiet,
                eval_kwargs=changed.eval_kwargs,
                eval_trials=changed.eval_trials,
                eval_steps=changed.eval_steps,
            )
            write_result(run.path, each.name, by_home(results, task))


def sweep_run(config: RunConfig, task: str, evaluations: tuple[Evaluation, ...] = ()) -> SweepRun:
    """A run of these settings with these evaluations."""
    work = partial(train_and_evaluate, task=task, evaluations=evaluations)
    return SweepRun(config, work, tuple(each.name for each in evaluations))


def policy_with(run: RunDirectory, memory: dict[str, Any]) -> MemoryPolicy:
    """The trained policy of a run with some settings of its memory changed that need no other weights."""
    if not memory:
        return trained_policy(run, EVALUATION_SEED)
    changed = {"memory_kwargs": {**run.config.policy["memory_kwargs"], **memory}}
    policy = EpisodeDQN.load(run.agent(), device=run.config.device, policy_kwargs=changed).policy
    policy.generator.manual_seed(EVALUATION_SEED)
    return policy


def both_ends(folder: Path, config: RunConfig, task: str, evaluation: Evaluation = Evaluation()) -> dict[str, Path]:
    """The random policy and the oracle in the episodes that agents are evaluated in; name -> folder."""
    folders, config = {name: folder / f"{task}-{name}" for name in ("random", "oracle")}, evaluation.changed(config)
    for name, place in folders.items():
        if not has_results(place, evaluation.name):
            env = evaluation_env(config, min(config.n_envs, config.eval_trials), EVALUATION_SEED)
            policy = RandomPolicy(env.action_space, EVALUATION_SEED) if name == "random" else OraclePolicy(env)
            try:
                found = by_home(make_evaluator(config, env).run(policy), task)
            finally:
                env.close()
            write_result(place, evaluation.name, found)
    return folders


def scores(folders: Sequence[Path], column: str, name: str = Evaluation.name) -> np.ndarray:
    """What the runs of some seeds scored, float64, (seeds, homes)."""
    return np.array([read_result(folder, name)[column] for folder in folders])


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and homes, and lower and upper end of a 95 % bootstrap interval over homes.

    Args:
        values: float64, (seeds, homes).
    """
    homes = values.mean(0)
    rng = np.random.default_rng(0)
    resampled = homes[rng.integers(len(homes), size=(RESAMPLES, len(homes)))].mean(1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(homes.mean()), float(low), float(high)


def shown(values: np.ndarray) -> str:
    """`interval` as text."""
    mean, low, high = interval(values)
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"


def ahead(values: np.ndarray, others: np.ndarray) -> str:
    """How far the first is ahead of the second, in %, with a 95 % bootstrap interval over homes that both are resampled in alike.

    Args:
        values: float64, (seeds, homes).
        others: float64, (seeds, homes); of the agent that it is compared with.
    """
    ours, theirs = values.mean(0), others.mean(0)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
    if not theirs[drawn].mean(1).all():
        return "-"  # who scored nothing cannot be compared with
    gain = 100 * (ours.mean() / theirs.mean() - 1)
    low, high = np.percentile(100 * (ours[drawn].mean(1) / theirs[drawn].mean(1) - 1), [2.5, 97.5])
    return f"{gain:+.1f} % ({low:+.1f} to {high:+.1f})"


def write_results(out: Path, tables: dict[tuple[str, str], dict[str, list[Path]]], size: str) -> Path:
    """One table for each task and world: `report.html`; prints them."""
    report = Report(f"Scene Memory Transformer, {size}", out)
    for (task, world), rows in tables.items():
        evaluation, score = WORLDS[world].name, COLUMNS[task][1]
        scored = {name: scores(folders, score, evaluation) for name, folders in rows.items()}
        header = ["method", *COLUMNS[task], f"{score} by seed", *(f"over {base}" for base in BASES), "smt over it"]
        lines = []
        for name, folders in rows.items():
            others = [(name, base) for base in BASES] + [("smt", name)]
            lines.append(
                [
                    name,
                    *(shown(scores(folders, column, evaluation)) for column in COLUMNS[task]),
                    " / ".join(f"{seed.mean():.3g}" for seed in scored[name]),
                    *(ahead(scored[a], scored[b]) if a != b and {a, b} <= set(scored) else "-" for a, b in others),
                ]
            )
        add_table(report, f"{task.capitalize()}, {world}", header, lines)
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(COLUMNS), choices=list(COLUMNS), help="(default all)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(METHODS),
        choices=[*METHODS, *MORE_METHODS],
        help="(default all but the last)",
    )
    parser.add_argument(
        "--size", choices=SIZES, default="laptop", help="of the presets (default laptop); paper-like needs a GPU"
    )
    options = sweep_options(parser, "runs/scene_memory")
    if options.smoke:
        options.tasks, options.methods = options.tasks[:1], ["reactive", "smt"]

    def folder_of(task: str, stage: str, seed: int) -> Path:
        return options.out / f"{task}-{stage}-{seed}"

    def config_of(task: str, stage: str, seed: int) -> RunConfig:
        config = settings(preset_of(task, stage), seed, options.smoke)
        return config if stage == FIRST else replace(config, encoder_from=str(folder_of(task, FIRST, seed)))

    def preset_of(task: str, stage: str) -> str:
        return f"{task}-{options.size}:{stage}"

    worlds = {name: each for name, each in WORLDS.items() if not each.env or os.environ.get("MEMENVS_DATA")}
    if len(worlds) < len(WORLDS) and not options.show:
        print("MEMENVS_DATA is not set: no table of the ProcTHOR houses")
    # the test homes are enough to be shown
    evaluations = (Evaluation(),) if options.show else tuple(worlds.values())
    sweep = {
        folder_of(task, stage, seed): sweep_run(config_of(task, stage, seed), task, evaluations)
        for stages in ([FIRST], options.methods)
        for task, seed, stage in itertools.product(options.tasks, options.seeds, stages)
        if preset_of(task, stage) in run_names()
    }
    done = run_sweep(parser, options, sweep)
    tables: dict[tuple[str, str], dict[str, list[Path]]] = {}
    for task, world in itertools.product(options.tasks, WORLDS):
        found = {
            FIRST_ROW if stage == FIRST else stage: [
                folder
                for folder in (folder_of(task, stage, seed) for seed in options.seeds)
                if folder in done and has_results(folder, WORLDS[world].name)
            ]
            for stage in (FIRST, *options.methods)
        }
        if any(found.values()):
            ends = both_ends(options.out, config_of(task, FIRST, 0), task, WORLDS[world])
            agents = {method: folders for method, folders in found.items() if folders}
            tables[task, world] = {"random": [ends["random"]], **agents, "oracle": [ends["oracle"]]}
    print(f"report: {write_results(options.out, tables, options.size).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
