"""Worlds that change: agents that learn in one place, with moves, or from itineraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.itinerary import MEANINGS
from memenvs.agents.experiments.statistics import format_mean, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, play_trials
from memenvs.itineraries import visits

#: Six episodes in a place, six in another, three in the first again: for training and for evaluation.
ITINERARY = "AAAAAABBBBBBAAA"
EPISODES = len(ITINERARY)
#: Kind of trials -> settings. An agent learns from one kind and is evaluated in each.
TRIALS: dict[str, dict[str, Any]] = {
    "fixed": {"trial_episodes": EPISODES, "itinerary": None, "moves": 0.0},
    "moves": {"trial_episodes": EPISODES, "itinerary": None, "moves": 0.3},
    "itinerary": {"trial_episodes": None, "itinerary": ITINERARY, "moves": 0.0},
}
#: Memories of the figure and of the page.
DRAWN = ("relic", "gated-deltanet", "trxl")
STEPS = 25 + 20  # of an episode of the Darkroom, with its gap
#: Method -> memory and its settings in the Darkroom.
MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "relic": ("relic", {}),
    "memo": ("memo", {}),
    "gated-deltanet": ("gated-deltanet", {}),
    "trxl": ("trxl", {}),
    "lstm": ("lstm", {}),
    "window of 16": ("window", {"steps": 16}),
}
#: The learning rate that `studies/matrix` has chosen for each of them in Darkroom-Gap.
LEARNING_RATE = 3e-3
#: Task -> score, its factor, and name in tables.
SCORES = {"darkroom": ("return", 1, "Darkroom-Gap: return"), "homes": ("success", 100, "ExtObjNav: success, %")}


def darkroom(kind: str, memory: str, settings: dict[str, Any]) -> RunConfig:
    """Settings of a run: `demo-gap` with trials of fifteen episodes."""
    demo = find_preset("demo-gap")
    config = changed(
        demo,
        {
            "policy.memory": memory,
            "policy.memory_kwargs": settings,
            "policy.size": 100_000,
            "ppo.n_steps": EPISODES * STEPS,
            "ppo.n_updates": EPISODES,
            "ppo.learning_rate": LEARNING_RATE,
            "ppo.final_learning_rate": LEARNING_RATE / 10,
        },
    )
    return replace(
        config,
        device="cpu",
        env_kwargs={**demo.env_kwargs, "max_episode_steps": STEPS, "gap": 20, **TRIALS[kind]},
        total_steps=8_000 * STEPS,
        eval_steps=EPISODES * STEPS,
        eval_trials=256,
    )


def homes(kind: str) -> RunConfig:
    """Settings of the shipped agent, or of one that learns from itineraries."""
    config = find_preset("extobjnav-small")
    return config if kind == "fixed" else replace(config, env_kwargs={**config.env_kwargs, **TRIALS[kind]})


def play_in(kind: str) -> Callable[[Played], dict[str, Any]]:
    """Evaluation: 256 trials of a kind."""

    def evaluation(played: Played) -> dict[str, Any]:
        config = played.config
        steps = EPISODES * config.env_kwargs["max_episode_steps"]
        trials = {"eval_kwargs": {**config.eval_kwargs, **TRIALS[kind]}, "eval_steps": steps, "eval_trials": 256}
        return play_trials(played, config.score, **trials)

    return evaluation


def runs(rows: Rows) -> list[tuple[str, str, str]]:
    """Task, method and kind of the trials of training, of all that have rows."""
    return [
        (task, method, kind)
        for task in SCORES
        for method in MEMORIES
        for kind in TRIALS
        if rows.of(f"{task}-{kind}", method)
    ]


def episodes_of(rows: Rows, played: str, task: str, method: str, kind: str) -> np.ndarray:
    """Score by episode in trials of the kind `played`, (seeds, 15)."""
    metric, factor, _ = SCORES[task]
    return factor * rows.means(f"{task}-{kind}", method, metric, played)


def lost(rows: Rows, name: str, task: str, method: str, kind: str) -> np.ndarray:
    """Interference, recovery or retention in the itinerary, one per seed."""
    metric, factor, _ = SCORES[task]
    results = rows.results(f"{task}-{kind}", method, "itinerary")
    return factor * np.array([result["agent"]["itinerary"]["metrics"][metric][name]["mean"] for result in results])


def make_tables(rows: Rows) -> list[Table]:
    """Scores by what was learned from, and costs of a change; memories of the figure first."""
    own = [[run for run in runs(rows) if run[0] == task] for task in SCORES]
    others = [run for run in own[0] if run[1] not in DRAWN]
    parts = [[run for run in own[0] if run[1] in DRAWN], own[1], others]
    return [Table("", header_of(part[0][0]), [line_of(rows, *run) for run in part]) for part in parts if part]


def header_of(task: str) -> list[str]:
    """Names of the columns."""
    return [SCORES[task][2], "learned from", "fixed, 13-15", "moves, 2-15", "B after A", "A after B", *MEANINGS]


def line_of(rows: Rows, *run: str) -> list[str]:
    """Cells of a task, method and kind of trials."""
    fixed, moves, itinerary = (episodes_of(rows, played, *run) for played in TRIALS)
    scores = [fixed[:, -3:], moves[:, 1:], itinerary[:, 6:12], itinerary[:, 12:]]
    means = [format_mean(score.mean(1)) for score in scores]
    return [*run[1:], *means, *(format_mean(lost(rows, name, *run)) for name in MEANINGS)]


def draw(rows: Rows) -> Figure | None:
    """Score by episode of the itinerary; dotted: with a memory that is emptied at each change."""
    drawn = [run for run in runs(rows) if run[1] in DRAWN]
    if not drawn:
        return None
    panels = list(dict.fromkeys((task, method) for task, method, _ in drawn))
    figure = Figure(figsize=(3.4 * len(panels), 3.4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for number, kind in enumerate(TRIALS):
            if (*panel, kind) in drawn:
                draw_lines(axes, rows, *panel, kind, f"C{number}")
        for visit in visits(ITINERARY)[1:]:
            axes.axvline(visit.episodes[0] + 0.5, color="0.8", zorder=0)
        axes.set(title=f"{SCORES[panel[0]][2]}, {panel[1]}", xlabel="episode: A 1-6, B 7-12, A 13-15")
        axes.set_ylim(0, 27 if panel[0] == "darkroom" else 100)
        axes.set_xticks(range(1, EPISODES + 1, 2))
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, frameon=False, fontsize="small", title="learned from", loc="outside right upper")
    return figure


def draw_lines(axes: Axes, rows: Rows, task: str, method: str, kind: str, color: str) -> None:
    """Mean over seeds with its 95 % interval; dotted: the mean of a memory that is emptied."""
    metric, factor, _ = SCORES[task]
    episodes = np.arange(1, EPISODES + 1)
    mean, margin = mean_and_margin(episodes_of(rows, "itinerary", task, method, kind))
    axes.plot(episodes, mean, color=color, label=kind)
    axes.fill_between(episodes, mean - margin, mean + margin, color=color, alpha=0.15, linewidth=0)
    results = rows.results(f"{task}-{kind}", method, "itinerary")
    fresh = [result["agent"]["itinerary"]["metrics"][metric]["fresh"]["mean"] for result in results]
    axes.plot(episodes, factor * np.mean(fresh, axis=0), ":", color=color)


STUDY = Study(
    title="Worlds that change",
    configs={
        **{
            f"darkroom-{kind}": {method: darkroom(kind, *memory) for method, memory in MEMORIES.items()}
            for kind in TRIALS
        },
        **{f"homes-{kind}": {"relic": homes(kind)} for kind in ("fixed", "itinerary")},
    },
    evaluations={kind: play_in(kind) for kind in TRIALS},
    tables=make_tables,
    figures={"changing_worlds": draw},
)
