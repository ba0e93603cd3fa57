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
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.studies.study_results import has_results, metric_means, read_result, write_result
from memenvs.retention import STRATEGY_NAMES

EVALUATIONS = ("evaluation", "curve", "memory")
DRAWN = ("fifo", "mvfo")
"""Strategies whose memory is drawn."""
CURVE_STRIDE = 2
"""Rollouts between two points of a learning curve."""
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
        run.config.make_experiment().evaluate(run, quiet=quiet)


def learning_curve(run: RunDirectory) -> dict[str, Any]:
    """Success, hours and, with an allocator, share and Q of each strategy along a training.

    Every second rollout is kept, and the last one; values have three decimals, as many as figures show.
    """
    metrics = run.metrics()
    success = metrics["rollout/success_rate"]
    shown = slice((len(success) - 1) % CURVE_STRIDE, None, CURVE_STRIDE)
    curve: dict[str, Any] = {"steps": [step for step, _ in success[shown]]}
    for name, points in {"success_rate": success, **_allocator_metrics(metrics)}.items():
        curve[name] = [round(value, 3) for _, value in points[shown]]
    curve["hours"] = [round(seconds / 3600, 4) for _, seconds in metrics["time/time_elapsed"][shown]]
    return curve


def _allocator_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of an allocator, by their names without the section."""
    return {name.partition("/")[2]: metrics[name] for name in metrics if name.startswith("allocator/")}


@torch.no_grad()
def memory_contents(run: RunDirectory) -> dict[str, Any]:
    """Steps that the memory of a run holds at each step of an episode, with each of `DRAWN`.

    Returns:
        For each strategy and each step of the episode its place, and the first and the last step at which memory holds
        it, [place, first, last]. A step that memory has dropped never comes back. Empty for a memory without
        strategies.
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
        spans: list[list[int]] = []
        is_done = False
        start = torch.ones(1, dtype=torch.bool, device=policy.device)
        while not is_done:
            now = len(spans)
            spans.append([int(observation["place"][0]), now, now])
            tensors, _ = policy.obs_to_tensor(observation)  # images channels first
            output = policy.act(tensors, state, start, start)
            state, start = output.state, torch.zeros_like(start)
            for step in state["step_index"][0].tolist():
                if step >= 0:
                    assert spans[step][2] >= now - 1, "memory has a step again that it had dropped"
                    spans[step][2] = now
            observation, _, dones, _ = env.step(policy.environment_actions(output.actions))
            is_done = bool(dones[0])
        contents[strategy] = spans
        env.close()
    return contents


def add_task(report: Report, task: str, runs: Runs) -> None:
    """Add the table of a task, its learning curves, and what its memories hold."""
    rows = []
    for method, folders in runs.items():
        curves = [read_result(folder, "curve") for folder in folders]
        chosen = [_chosen(curve) for curve in curves]
        success = metric_means(folders, "success")[:, 0]
        seeds = " / ".join(f"{100 * each:.1f}" for each in success)
        minutes = 60 * np.mean([curve["hours"][-1] for curve in curves])
        steps = f"{curves[0]['steps'][-1]:,}"
        rows.append([method, len(folders), format_percent(success), seeds, " / ".join(chosen), steps, f"{minutes:.1f}"])
    header = ["method", "seeds", "success %", "by seed", "strategy at the end", "steps", "minutes"]
    add_table(report, task, header, rows)
    by_method = {method: [read_result(each, "curve") for each in of_method] for method, of_method in runs.items()}
    report.picture(f"{task}_success", figure_png(success_figure(by_method)), "success of the last 100 episodes")
    for method in [name for name, curves in by_method.items() if "share_mvfo" in curves[0]]:
        figure = strategy_figure(by_method[method])
        report.picture(f"{task}_strategies_{method}", figure_png(figure), f"{method}: strategies chosen, and their Q")
    with_memory = next((each for of_method in runs.values() for each in of_method if read_result(each, "memory")), None)
    if with_memory is not None:
        figure = memory_figure(read_result(with_memory, "memory"))
        report.picture(f"{task}_memory", figure_png(figure), "steps in memory along an episode")


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
    axes.set_xlim(left=0)
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
    figure = Figure(figsize=(4.5 * len(contents), 4), dpi=120, layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(contents)))
    for axes, (strategy, spans) in zip(panels, contents.items(), strict=True):
        axes.imshow(memory_image(spans), origin="lower", interpolation="none")
        axes.set_title(strategy.upper())
        axes.set_xlabel("step of the episode")
        axes.set_ylabel("step in memory")
    for place in sorted({place for spans in contents.values() for place, _, _ in spans}):
        panels[-1].fill_between([], [], color=f"C{place}", label=f"place {place}")
    panels[-1].legend(frameon=False, loc="upper left")
    return figure


def memory_image(spans: Sequence[Sequence[int]]) -> np.ndarray:
    """Draw the steps that memory holds along an episode, in the colours of their places.

    Args:
        spans: [place, first, last] of each of T steps; see `memory_contents`.

    Returns:
        float64, (T, T, 3), 0 to 1; a row is a step in memory, a column the memory at a step. White is empty.
    """
    image = np.ones((len(spans), len(spans), 3))
    for step, (place, first, last) in enumerate(spans):
        image[step, first : last + 1] = to_rgb(f"C{place}")
    return image


def _chosen(curve: Mapping[str, Any]) -> str:
    """Name of the strategy with the largest Q at the end of a run; "-" without an allocator."""
    values = {name.partition("_")[2]: q[-1] for name, q in curve.items() if name.startswith("q_")}
    return max(values, key=values.__getitem__).upper() if values else "-"
