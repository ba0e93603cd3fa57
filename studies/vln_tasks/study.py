"""R2R on the real graphs, dialogues (CVDN), and R2R from rewards, on two cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_mean, format_percent, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, play_trials

_BASE = find_preset("vln-laptop")
#: R2R's graphs, with features made from the lists of objects of their houses in place of photographs.
REAL_GRAPHS = replace(
    _BASE,
    env_kwargs={"world": "mp3d", "split": "train", "features": "synthetic", "feature_size": 64, "max_tokens": 80},
    policy={"size": "laptop", "network": {"text_positions": 80}},
    eval_trials=2349,
    score="spl",
)
#: Whole dialogues in procedural houses, in their published form.
DIALOGUES = replace(
    _BASE,
    env="memenvs/VLN-CVDN-v0",
    env_kwargs={"world": "procedural", "split": "train", "supervision": "mixed", "max_tokens": 300, "legs": 1},
    policy={"size": "laptop", "network": {"text_positions": 300}},
    eval_steps=40,
    eval_trials=902,
    score="gp",
)
#: A GRU that gets the text as a bag of words, and no teacher. The reward of an action says whether it was right, so
#: little of what comes later is credited to it.
REWARDS = replace(
    _BASE,
    total_steps=1_000_000,
    checkpoint_rollouts=10,
    learner=PPOConfig(
        learning_rate=1e-3,
        final_learning_rate=1e-4,
        n_steps=32,
        n_updates=1,
        batch_size=8,
        gamma=0.3,
        gae_lambda=0.5,
        normalize_advantage=True,
        clip_range_vf=None,
        vf_coef=0.5,
        max_grad_norm=1.0,
    ),
    policy={"memory": "gru", "memory_kwargs": {"hidden_dim": 128}, "features_extractor_class": "OptionsEncoder"},
    score="spl",
)
CONFIGS = {"r2r": {"mtvm": REAL_GRAPHS}, "cvdn": {"mtvm": DIALOGUES}, "rewards": {"gru": REWARDS}}
#: Task -> its name in the table.
TASKS = {"r2r": "R2R, real graphs", "cvdn": "CVDN, procedural houses", "rewards": "R2R, procedural houses"}
AGENTS = {
    "mtvm": "MTVM, from a teacher",
    "gru": "GRU, from rewards",
    "memoryless": "scripted reader (`memoryless`)",
    "random": "random actions",
    "oracle": "shortest path",
}
#: Column -> metric; goal progress (GP) and navigation error (NE) are in metres, the others shares.
COLUMNS = {
    "success %": "sr",
    "passes the goal %": "osr",
    "SPL %": "spl",
    "nDTW %": "ndtw",
    "NE, m": "ne",
    "GP, m": "gp",
}
METRES = ("ne", "gp")


def evaluate(played: Played) -> dict[str, Any] | None:
    """Scores in unseen houses; of the reader in dialogues alone: `vln_memory` has it in R2R."""
    return None if played.method == "memoryless" and played.task != "cvdn" else play_trials(played)


def scores_of(rows: Rows, task: str, method: str, metric: str) -> np.ndarray:
    """Scores, float64, (seeds,); (0,) without a run or such a metric."""
    results = [result["agent"]["metrics"] for result in rows.results(task, method)]
    return np.array([metrics[metric]["mean"][0] for metrics in results if metric in metrics], np.float64)


def make_tables(rows: Rows) -> list[Table]:
    """One line for each agent of a task."""
    lines = []
    for task, title in TASKS.items():
        for method, name in AGENTS.items():
            scores = {metric: scores_of(rows, task, method, metric) for metric in COLUMNS.values()}
            form = {metric: format_mean if metric in METRES else format_percent for metric in scores}
            if any(map(len, scores.values())):
                lines.append([title, name, *(form[metric](s) if len(s) else "-" for metric, s in scores.items())])
    return [Table("", ["task", "agent", *COLUMNS], lines)] if lines else []


def draw(rows: Rows) -> Figure | None:
    """Success of each agent in each task; None where a trained agent has no run."""
    figure = Figure(figsize=(8, 3.2), dpi=100, layout="constrained")
    for axes, (task, title) in zip(figure.subplots(1, len(TASKS), sharey=True), TASKS.items(), strict=True):
        (trained,) = CONFIGS[task]
        if not len(scores_of(rows, task, trained, "sr")):
            return None
        methods = [method for method in AGENTS if len(scores_of(rows, task, method, "sr"))]
        for at, method in enumerate(methods):
            scores = 100 * scores_of(rows, task, method, "sr")
            axes.bar(at, mean_and_margin(scores)[0], color=COLOURS[0] if method == trained else "0.75")
            axes.plot([at] * len(scores), scores, ".", color="0.2")
        axes.set_title(title)
        axes.set_xticks(range(len(methods)), [AGENTS[method].split(",")[0].split(" (")[0] for method in methods])
        axes.tick_params("x", rotation=30)
        axes.set_ylim(0, 100)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supylabel("success, %")
    return figure


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    changes: dict[str, Any] = {"n_envs": 2, "eval_trials": 4}
    if isinstance(config.learner, PPOConfig):
        return changed(config, {**changes, "total_steps": 2 * config.learner.n_steps})
    return changed(config, {**changes, "total_steps": 2, "policy.network.dim": 16})


STUDY = Study(
    title="R2R and CVDN: agents for two cores in three tasks",
    configs=CONFIGS,
    evaluations={"evaluation": evaluate},
    scripted=("memoryless", "random", "oracle"),
    tables=make_tables,
    figures={"vln_tasks": draw},
    smoke=shorten,
)
