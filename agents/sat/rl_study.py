"""Runs of SAT in reinforcement learning: evaluations, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.experiments.train import train_run
from memenvs.agents.memory.base import STRATEGY
from memenvs.agents.policies.acting import observation_tensors
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.studies.study_results import has_results, metric_means, read_result, write_result
from memenvs.retention import STRATEGY_NAMES

EVALUATIONS = ("evaluation", "curve", "memory")
DRAWN = ("fifo", "mvfo")
"""Strategies whose memory is drawn."""
Runs = Mapping[str, Sequence[Path]]
"""Method -> folders of its runs, one per seed."""


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train a run to its end and write the evaluations that are not there.

    Args:
        run: The folder.
        quiet: Show no progress bar.
    """
    train_run(run, quiet=quiet)
    if not has_results(run.path, "curve"):
        write_result(run.path, "curve", learning_curve(run))
    if not has_results(run.path, "memory"):
        write_result(run.path, "memory", memory_contents(run))
    if not has_results(run.path, "evaluation"):
        run.config.kind.make_experiment().evaluate(run, quiet=quiet)


def learning_curve(run: RunDirectory) -> dict[str, Any]:
    """Success and, with an allocator, share and Q of each strategy along a training."""
    metrics = run.metrics()
    names = ["rollout/success_rate", *(name for name in metrics if name.startswith("allocator/"))]
    curve: dict[str, Any] = {"steps": [step for step, _ in metrics[names[0]]]}
    for name in names:
        curve[name.partition("/")[2]] = [value for _, value in metrics[name]]
    return {**curve, "seconds": metrics["time/time_elapsed"][-1][1]}


@torch.no_grad()
def memory_contents(run: RunDirectory) -> dict[str, Any]:
    """Steps that the memory of a run holds at each step of an episode, with each of `DRAWN`.

    Returns:
        For each strategy the steps in memory at each step, and under "places" the place of each step. Empty for a
        memory without strategies.
    """
    policy = trained_policy(run, seed=1)
    assert isinstance(policy, MemoryPolicy)
    strategies = [name for name in DRAWN if name in policy.memory.strategies]
    contents: dict[str, Any] = {}
    for strategy in strategies:
        env = evaluation_env(run.config, 1, seed=1)
        observation: Any = env.reset()
        state = policy.initial_state(1)
        state[STRATEGY] = torch.full_like(state[STRATEGY], STRATEGY_NAMES.index(strategy))
        places, steps, is_done = [], [], False
        start = torch.ones(1, dtype=torch.bool, device=policy.device)
        while not is_done:
            places.append(int(observation["place"][0]))
            output = policy.act(observation_tensors(observation, policy.device), state, start, start)
            state, start = output.state, torch.zeros_like(start)
            steps.append(sorted(step for step in state["step_index"][0].tolist() if step >= 0))
            observation, _, dones, _ = env.step(policy.environment_actions(output.actions))
            is_done = bool(dones[0])
        contents[strategy] = steps
        contents.setdefault("places", {})[strategy] = places
        env.close()
    return contents


# ---------------------------------------------------------------------- tables and figures


def add_task(report: Report, task: str, runs: Runs) -> None:
    """Add the table of a task, its learning curves, and what its memories hold."""
    rows = []
    for method, folders in runs.items():
        curves = [read_result(folder, "curve") for folder in folders]
        chosen = [_chosen(curve) for curve in curves]
        success = metric_means(folders, "success")[:, 0]
        seeds = " / ".join(f"{100 * each:.1f}" for each in success)
        minutes = np.mean([curve["seconds"] for curve in curves]) / 60
        steps = f"{curves[0]['steps'][-1]:,}"
        rows.append([method, len(folders), format_percent(success), seeds, " / ".join(chosen), steps, f"{minutes:.1f}"])
    header = ["method", "seeds", "success %", "by seed", "strategy at the end", "steps", "minutes"]
    add_table(report, task, header, rows)
    by_method = {method: [read_result(each, "curve") for each in of_method] for method, of_method in runs.items()}
    report.picture(f"{task}_success", figure_png(success_figure(by_method)), "success of the last 100 episodes")
    if "ama" in runs:
        figure = strategy_figure(by_method["ama"])
        report.picture(f"{task}_strategies", figure_png(figure), "choices of the allocator, and Q of each strategy")
        contents = read_result(runs["ama"][0], "memory")
        report.picture(f"{task}_memory", figure_png(memory_figure(contents)), "steps in memory along an episode")


def success_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw success along the training: a thin line per run, a colour per method."""
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for colour, (method, runs) in enumerate(curves.items()):
        for number, curve in enumerate(runs):
            label = method if number == 0 else None
            axes.plot(curve["steps"], curve["success_rate"], f"C{colour}", linewidth=1, label=label)
    axes.axhline(0.5, color="0.6", linestyle=":")
    axes.text(0, 0.51, "a guess", color="0.4", fontsize="small")
    axes.set_ylim(0, 1)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("success rate")
    axes.legend(frameon=False, ncols=2, fontsize="small")
    return figure


def strategy_figure(curves: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw how often each strategy was chosen, and its Q, along the training: a line per run."""
    figure = Figure(figsize=(9, 3.5), dpi=120, layout="constrained")
    kinds = (("share", "share of episodes"), ("q", "Q: return"))
    for axes, (kind, label) in zip(figure.subplots(1, 2), kinds, strict=True):
        names = [name for name in curves[0] if name.startswith(f"{kind}_")]
        for colour, name in enumerate(names):
            for number, curve in enumerate(curves):
                own = name.partition("_")[2].upper() if number == 0 else None
                axes.plot(curve["steps"], curve[name], f"C{colour}", linewidth=1, label=own)
        axes.set_xlabel("environment steps")
        axes.set_ylabel(label)
        axes.legend(frameon=False)
    return figure


def memory_figure(contents: Mapping[str, Any]) -> Figure:
    """Draw the steps in memory along an episode: a panel per strategy, a colour per place."""
    strategies = [name for name in contents if name != "places"]
    figure = Figure(figsize=(4.5 * len(strategies), 4), dpi=120, layout="constrained")
    for axes, strategy in zip(np.atleast_1d(figure.subplots(1, len(strategies))), strategies, strict=True):
        places = contents["places"][strategy]
        image = np.ones((len(places), len(places), 3))
        for now, steps in enumerate(contents[strategy]):
            for step in steps:
                image[step, now] = to_rgb(f"C{places[step]}")
        axes.imshow(image, origin="lower", interpolation="none")
        axes.set_title(strategy.upper())
        axes.set_xlabel("step of the episode")
        axes.set_ylabel("step in memory")
    for place in sorted(set(places)):
        axes.fill_between([], [], color=f"C{place}", label=f"place {place}")
    axes.legend(frameon=False, loc="upper left")
    return figure


def _chosen(curve: Mapping[str, Any]) -> str:
    """Name of the strategy with the largest Q at the end of a run; "-" without an allocator."""
    values = {name.partition("_")[2]: q[-1] for name, q in curve.items() if name.startswith("q_")}
    return max(values, key=values.__getitem__).upper() if values else "-"
