"""ReLIC in trials of 32,768 steps: success by episode to the end of the context."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, grid, play_trials

TASK, METHOD = "homes", "4096"
SHIPPED = "extobjnav-small"
#: Evaluation in long trials -> the one in short trials, and the agent in table and figure.
AGENTS = {
    "shipped": ("shipped_start", "trained with 512 steps"),
    "evaluation": ("start", "trained with 4,096 steps"),
}
#: Steps of long and short trials, and their numbers. An episode has at most 64 steps.
LONG, SHORT = {"eval_steps": 32_768, "eval_trials": 8}, {"eval_steps": 1024, "eval_trials": 256}
#: The last episode that is taken from short trials, since long ones are too few: the last that every one of them has.
START = 15
#: First and last episode of each part of a trial.
PARTS = ((1, 1), (2, 4), (5, START), (START + 1, 64), (65, 256), (257, 512))

_PRESET = find_preset(SHIPPED)
_TRAINING = {
    "env_kwargs.trial_steps": 4096,
    "ppo.n_steps": 4096,
    # as many steps in a rollout and in a batch of a partial update as with 512, and as many optimiser steps
    "n_envs": 8,
    "ppo.n_updates": 16,
    "ppo.batch_size": 8,
    "total_steps": 2_621_440,  # an hour of a core
}


def play(trials: dict[str, int], played: Played) -> dict[str, Any]:
    """Success and SPL by episode."""
    return play_trials(played, "success", "spl", **trials)


def play_shipped(trials: dict[str, int], played: Played) -> dict[str, Any]:
    """The same of the agent of the package, in the same trials."""
    from memenvs.agents.presets.pretrained import load_pretrained  # torch takes seconds

    policy = load_pretrained(SHIPPED, seed=1, device=played.config.device)
    return play_trials(played, "success", "spl", policy=policy, **trials)


def means_of(rows: Rows, evaluation: str, metric: str) -> np.ndarray | None:
    """Mean by episode, the first from short trials, float64, (E,); None without a run."""
    short = rows.means(TASK, METHOD, metric, AGENTS[evaluation][0])
    long = rows.means(TASK, METHOD, metric, evaluation)
    return np.concatenate([short[0, :START], long[0, START:]]) if len(short) and len(long) else None


def parts_of(means: np.ndarray) -> np.ndarray:
    """Mean over the episodes of each part of a trial, float64, (P,) from (E,)."""
    return np.array([means[first - 1 : last].mean() for first, last in PARTS])


def make_tables(rows: Rows) -> list[Table]:
    """Success and SPL by part of a trial."""
    lines = []
    for evaluation, (_, name) in AGENTS.items():
        success, spl = (means_of(rows, evaluation, metric) for metric in ("success", "spl"))
        if success is not None and spl is not None:
            lines.append([name, "success, %", *(f"{100 * mean:.1f}" for mean in parts_of(success))])
            lines.append([name, "SPL", *(f"{mean:.3f}" for mean in parts_of(spl))])
    names = [f"episode {first}" if first == last else f"{first} to {last}" for first, last in PARTS]
    return [Table("", ["agent", "score", *names], lines)] if lines else []


def draw(rows: Rows) -> Figure | None:
    """Success by episode, means of neighbouring episodes, on a logarithmic axis."""
    figure = Figure(figsize=(8, 4.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    for k, (evaluation, (_, name)) in enumerate(AGENTS.items()):
        means = means_of(rows, evaluation, "success")
        if means is None:
            return None
        edges = np.unique(np.geomspace(1, len(means) + 1, 17).round().astype(int))
        parts = list(pairwise(edges))
        centres = [np.sqrt(first * (last - 1)) for first, last in parts]
        values = [100 * means[first - 1 : last - 1].mean() for first, last in parts]
        axes.plot(centres, values, color=COLOURS[k], marker="o", linewidth=2.5, label=name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("episode of the trial", fontsize=16)
    axes.set_ylabel("success, %", fontsize=16)
    axes.set_ylim(0, 100)
    axes.tick_params(labelsize=14)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=16, loc="lower right")
    return figure


STUDY = Study(
    title="Success to the end of a context of 32,768 steps",
    seeds=(0,),
    configs=grid({TASK: _PRESET}, {METHOD: _TRAINING}),
    evaluations={
        "evaluation": partial(play, LONG),
        "start": partial(play, SHORT),
        "shipped": partial(play_shipped, LONG),
        "shipped_start": partial(play_shipped, SHORT),
    },
    tables=make_tables,
    figures={"long_context": draw},
)
