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
#: Agent in tables and figure -> start of the names of its evaluations.
AGENTS = {"trained with 512 steps": "shipped_", "trained with 4,096 steps": ""}
#: Evaluation -> its trials. Short trials are many, since the first episodes of eight long ones say little.
TRIALS = {
    "short": {"eval_steps": 1024, "eval_trials": 256},
    "evaluation": {"eval_steps": 32_768, "eval_trials": 8},
}
#: First and last episode of each part of a trial; None for all that follow. An episode has at most 64 steps.
PARTS = ((1, 1), (2, 4), (5, 16), (17, 64), (65, 256), (257, 512), (513, None))

_PRESET = find_preset(SHIPPED)
_TRAINING = {
    "env_kwargs.trial_steps": 4096,
    "ppo.n_steps": 4096,
    # as many steps in a rollout and in a batch of a partial update as with 512; a full update is one batch, not four
    "n_envs": 8,
    "ppo.n_updates": 16,
    "ppo.batch_size": 8,
    "total_steps": 2_621_440,  # an hour of a core
}


def play(trials: str, played: Played) -> dict[str, Any]:
    """Success and SPL by episode."""
    return play_trials(played, "success", "spl", **TRIALS[trials])


def play_shipped(trials: str, played: Played) -> dict[str, Any]:
    """The same of the agent of the package, in the same trials."""
    from memenvs.agents.presets.pretrained import load_pretrained  # torch takes seconds

    policy = load_pretrained(SHIPPED, seed=1, device=played.config.device)
    return play_trials(played, "success", "spl", policy=policy, **TRIALS[trials])


def means_of(rows: Rows, agent: str, trials: str, metric: str) -> np.ndarray:
    """Mean by episode, float64, (E,); (0,) without a run."""
    means = rows.means(TASK, METHOD, metric, AGENTS[agent] + trials)
    return means[0] if len(means) else means


def make_tables(rows: Rows) -> list[Table]:
    """Success and SPL by part of a trial, in short and in long trials."""
    tables = []
    for metric, title in (("success", "Success, %"), ("spl", "SPL")):
        lines = []
        for agent in AGENTS:
            for trials, settings in TRIALS.items():
                means = means_of(rows, agent, trials, metric)
                if len(means):
                    parts = [means[first - 1 : last] for first, last in PARTS]
                    size, digits = (100, "{:.1f}") if metric == "success" else (1, "{:.3f}")
                    cells = [digits.format(size * part.mean()) if len(part) else "-" for part in parts]
                    lines.append([agent, settings["eval_trials"], *cells])
        names = [f"{first} to {'the end' if last is None else last}" for first, last in PARTS[1:]]
        tables.append(Table(title, ["agent", "trials", "episode 1", *names], lines))
    return [table for table in tables if table.lines]


def draw(rows: Rows) -> Figure | None:
    """Success by episode, means of neighbouring episodes, on a logarithmic axis."""
    figure = Figure(figsize=(8, 4.8), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    for k, agent in enumerate(AGENTS):
        for trials, style in (("short", ":"), ("evaluation", "-")):
            means = means_of(rows, agent, trials, "success")
            if not len(means):
                return None
            edges = np.unique(np.geomspace(1, len(means) + 1, 9 if trials == "short" else 17).round().astype(int))
            parts = list(pairwise(edges))
            centres = [np.sqrt(first * (last - 1)) for first, last in parts]
            values = [100 * means[first - 1 : last - 1].mean() for first, last in parts]
            label = f"{agent}, {TRIALS[trials]['eval_trials']} trials"
            axes.plot(centres, values, color=COLOURS[k], linestyle=style, marker="o", linewidth=2.5, label=label)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("episode of the trial", fontsize=16)
    axes.set_ylabel("success, %", fontsize=16)
    axes.set_ylim(0, 100)
    axes.tick_params(labelsize=14)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=13)
    return figure


STUDY = Study(
    title="Success to the end of a context of 32,768 steps",
    seeds=(0,),
    configs=grid({TASK: _PRESET}, {METHOD: _TRAINING}),
    evaluations={
        **{trials: partial(play, trials) for trials in TRIALS},
        **{f"shipped_{trials}": partial(play_shipped, trials) for trials in TRIALS},
    },
    tables=make_tables,
    figures={"long_context": draw},
)
