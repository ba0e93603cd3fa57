"""Memory of homes over episodes: ReLIC and its baselines in ExtObjNav."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.evaluate import BASELINE_TRIALS
from memenvs.agents.experiments.report import in_context_figure
from memenvs.agents.experiments.statistics import format_percent, format_runs, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, play_milestone, play_trials

#: The last episode that every trial of 1,024 steps has.
LAST = 15
#: Steps of training after which a run is kept and played later, and those that the second table compares.
MILESTONES = (1_507_328, 3_014_656, 4_521_984)
HALF = MILESTONES[1]
DEMONSTRATIONS = (1, 2, 4, 8, 16)
#: Line of the main table -> method and evaluation.
LINES = {
    "ReLIC (`relic`)": ("relic", "evaluation"),
    "ReLIC, one update a rollout (`k1`)": ("k1", "evaluation"),
    "no attention to earlier episodes (`no-iea`)": ("no-iea", "evaluation"),
    "memory emptied after each episode (`transformer-se`)": ("transformer-se", "evaluation"),
    "ReLIC, one goal a trial": ("relic", "fixed_goal"),
    "ReLIC, trials of 4,096 steps: episode 67": ("relic", "long"),
    "ReLIC in ProcTHOR houses": ("relic", "procthor"),
}
CURVES = {
    "ReLIC": "relic",
    "ReLIC, one update a rollout": "k1",
    "no attention to earlier episodes": "no-iea",
    "memory emptied each episode": "transformer-se",
}

_BASE = replace(find_preset("extobjnav-small"), eval_trials=2048)
_TRIAL, _CHUNK = _BASE.learner.n_steps, 128
#: Memories that carry their state from rollout to rollout, each a chunk of a trial. A run resumes between trials.
_CARRIED = {
    "env_kwargs.trial_steps": _TRIAL,
    "eval_kwargs.trial_steps": None,
    "ppo.n_updates": 1,
    "ppo.n_steps": _CHUNK,
    "ppo.reset_each_rollout": False,
    "checkpoint_rollouts": _BASE.checkpoint_rollouts * _TRIAL // _CHUNK,
}
_NO_IEA = {"policy.memory_kwargs.inter_episode": False}
#: As many optimiser steps as with four updates a rollout.
_AS_MANY = {"ppo.n_updates": 1, "ppo.n_epochs": 16}
_WHOLE: dict[str, dict[str, Any]] = {
    "relic": {},
    "k1": {"ppo.n_updates": 1},
    "no-iea": _NO_IEA,
    "transformer-se": {
        **_NO_IEA,
        "env_kwargs.trial_episodes": 1,
        "eval_kwargs.trial_episodes": None,
        "ppo.full_update": False,
        "ppo.shuffle_episodes": False,
    },
}
_HALF: dict[str, dict[str, Any]] = {
    "relic": {},
    "trxl": {
        **_CARRIED,
        "policy.memory": "trxl",
        "policy.memory_kwargs": {
            "layers": 2,
            "heads": 4,
            "dim": 64,
            "mlp_dim": 256,
            "memory_length": _CHUNK,
            "dropout": 0.0,
        },
    },
    "k1-epochs-slow": {**_AS_MANY, "ppo.learning_rate": 5e-4, "ppo.final_learning_rate": 5e-5},
    "k1-epochs": _AS_MANY,
    "rl2": {
        **_CARRIED,
        "policy.memory": "lstm",
        "policy.memory_kwargs": {"hidden_dim": 128, "layers": 2},
        "ppo.credit_across_episodes": True,
    },
}


def play(played: Played, **changes: Any) -> dict[str, Any]:
    """Success and SPL by episode.

    Each seed has trials of its own, so that errors over seeds contain them.
    """
    if played.run is None:
        changes["eval_trials"] = BASELINE_TRIALS
    return play_trials(played, "success", "spl", seed=1 + played.config.seed, **changes)


def play_relic(played: Played, **changes: Any) -> dict[str, Any] | None:
    """Success and SPL of ReLIC in other trials, 256 of them; none of other methods."""
    if (played.task, played.method) != ("whole", "relic"):
        return None
    eval_kwargs = {**played.config.eval_kwargs, **changes.pop("eval_kwargs", {})}
    return play(played, eval_kwargs=eval_kwargs, **{"eval_trials": 256, **changes})


def play_procthor(played: Played) -> dict[str, Any] | None:
    """Success and SPL of ReLIC in real houses, where there are any."""
    if not os.environ.get("MEMENVS_DATA"):
        return None
    real = {"split": "all", "trial_steps": None, "world": "procthor", "rooms": None}
    return play_relic(played, eval_kwargs=real)


def play_earlier(steps: int) -> Callable[[Played], dict[str, Any] | None]:
    """Evaluation of the run as it was after some steps of training."""
    return lambda played: play_milestone(played, steps, "success", "spl", seed=1 + played.config.seed, eval_trials=256)


def play_demonstrated(count: int) -> Callable[[Played], dict[str, Any] | None]:
    """Evaluation of ReLIC in the episode after demonstrations of the oracle."""
    return lambda played: play_relic(played, demonstrations=count, eval_trials=512, eval_steps=64)


def make_tables(rows: Rows) -> list[Table]:
    """First and last episodes, half-trained runs, milestones, long trials, demonstrations."""
    tables = [
        _gain_table("First and 15th episode in homes that were not trained", rows, "whole", LINES),
        _half_table(rows),
        _gain_table(
            "ReLIC earlier in training",
            rows,
            "whole",
            {f"after {steps:,} steps": ("relic", f"checkpoint_{steps}") for steps in MILESTONES},
        ),
    ]
    if len(rows.means("whole", "relic", "success", "long")):
        tables += [_long_table(rows), _demonstration_table(rows)]
    return [table for table in tables if table.lines]


def _gain_table(title: str, rows: Rows, task: str, lines: dict[str, tuple[str, str]]) -> Table:
    """Success and SPL in the first and the last episode, of methods and their evaluations."""
    cells = []
    for name, (method, evaluation) in lines.items():
        last = None if evaluation == "long" else LAST
        success, spl = (rows.means(task, method, metric, evaluation)[..., :last] for metric in ("success", "spl"))
        if len(success):
            first, end = success[:, 0], success[:, -1]
            percents = map(format_percent, (first, end, end - first))
            cells.append([name, len(success), *percents, _thousandths(spl[:, 0]), _thousandths(spl[:, -1])])
    header = ["agent", "seeds", "success in episode 1, %", "in episode 15, %", "gain, points", "SPL in 1", "in 15"]
    return Table(title, header, cells)


def _half_table(rows: Rows) -> Table:
    """Success after half of the steps, and how far each method is behind ReLIC."""
    lines = []
    evaluation = f"checkpoint_{HALF}"
    relic = rows.means("half", "relic", "success", evaluation)
    for method in _HALF:
        success = rows.means("half", method, "success", evaluation)
        if len(success):
            first, last = success[:, 0], success[:, LAST - 1]
            behind = "-"
            if method != "relic" and len(relic) == len(success):
                behind = format_percent(relic[:, LAST - 1] - last)
            by_seed = " / ".join(f"{100 * share:.1f}" for share in last)
            lines.append([f"`{method}`", format_percent(first), format_percent(last), by_seed, behind])
    header = ["agent", "success in episode 1, %", "in episode 15, %", "by seed, %", "behind ReLIC, points"]
    return Table(f"After half of the steps ({HALF:,})", header, lines)


def _long_table(rows: Rows) -> Table:
    """Success in trials eight times as long as those of training, part by part."""
    lines = []
    for low, high in ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64)):
        success, spl = (
            rows.means("whole", "relic", metric, "long")[:, low - 1 : high] for metric in ("success", "spl")
        )
        if success.size:
            episodes = str(low) if low == high else f"{low} to {high}"
            lines.append([episodes, format_percent(success.mean(1)), _thousandths(spl.mean(1))])
    return Table("ReLIC in trials of 4,096 steps", ["episodes", "success, %", "SPL"], lines)


def _demonstration_table(rows: Rows) -> Table:
    """Success after demonstrations of the oracle, and after as many episodes of the agent's own."""
    own, long = (rows.means("whole", "relic", "success", name) for name in ("evaluation", "long"))
    lines = []
    for count in DEMONSTRATIONS:
        demonstrated = rows.means("whole", "relic", "success", f"demonstrations_{count}")
        played = own if count < own.shape[1] else long
        if len(demonstrated) and count < played.shape[1]:
            lines.append([count, format_percent(demonstrated[:, 0]), format_percent(played[:, count])])
    header = ["N", "success after N demonstrations, %", "after N episodes of its own, %"]
    return Table("The next episode after demonstrations of the oracle", header, lines)


def _thousandths(sample: np.ndarray) -> str:
    return format_runs(sample, ".3f", ".3f")


def draw(rows: Rows) -> Figure | None:
    """Success by episode of the trial."""
    curves = {}
    for name, method in CURVES.items():
        success = rows.means("whole", method, "success")
        if not len(success):
            return None
        mean, margin = mean_and_margin(100 * success[:, :LAST])
        curves[name] = {"mean": mean.tolist(), "margin": margin.tolist()}
    return in_context_figure(curves, "success, %")


def shorten(config: RunConfig) -> RunConfig:
    """A few short trials in four homes; chunks stay whole parts of a trial."""
    steps = config.learner.n_steps // 8
    small = {"n_envs": 4, "eval_envs": 4, "total_steps": 512, "eval_steps": 130, "eval_trials": 4}
    env_kwargs = {key: 64 if key == "trial_steps" else value for key, value in config.env_kwargs.items()}
    return replace(config, env_kwargs=env_kwargs, learner=replace(config.learner, n_steps=steps), **small)


STUDY = Study(
    title="What an agent remembers of a home",
    configs={
        "whole": {method: changed(_BASE, changes) for method, changes in _WHOLE.items()},
        "half": {method: changed(_BASE, changes) for method, changes in _HALF.items()},
    },
    scripted=("random", "oracle"),
    evaluations={
        "evaluation": play,
        **{f"checkpoint_{steps}": play_earlier(steps) for steps in MILESTONES},
        **{f"demonstrations_{count}": play_demonstrated(count) for count in DEMONSTRATIONS},
        "fixed_goal": lambda played: play_relic(played, eval_kwargs={"fixed_goal_per_trial": True}),
        "long": lambda played: play_relic(played, eval_steps=8 * _TRIAL),
        "procthor": play_procthor,
    },
    tables=make_tables,
    figures={"ext_objnav": draw},
    smoke=shorten,
)
