"""Does your task need memory? Published and repaired tasks, and scores against the gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.statistics import mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES
from memenvs.agents.study import Rows, Study, Table, changed, play_trials

#: Steps that a run learns from in VisualMatch, and episodes in the Darkroom: 25 x 64 trials of 5, 25 steps each.
VISUAL_MATCH_STEPS, DARKROOM_EPISODES, TRIAL, EPISODE = 1_024_000, 8_000, 5, 25
_READER = {"dim": 64, "layers": 2, "heads": 2, "mlp_dim": 256}
_SAT = {"dim": 64, "layers": 1, "heads": 2, "mlp_dim": 64}
#: Memory of the figure -> memory and its settings: in the Darkroom, and in VisualMatch as in `sat-visual-match`.
DARKROOM_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "window of 16": ("t-fifo", {**_READER, "capacity": 16, "time_index": "age"}),
    "lstm": ("lstm", {"hidden_dim": 64}),
    "ct-lt": ("ct-lt", {**_READER, "layers": 1, **COMPRESSIVE_QUEUES}),
    "trxl": ("trxl", {**_READER, "memory_length": 128, "dropout": 0.0}),
    "relic": ("relic", {**find_preset("demo").policy["memory_kwargs"], "max_episode_steps": 256}),
    "window of 64": ("t-fifo", {**_READER, "capacity": 64, "time_index": "age"}),
}
VISUAL_MATCH_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "window of 16": ("sat-fifo", {**_SAT, "capacity": 16, "strategy": "fifo"}),
    "FIFO of 40": ("sat-fifo", {**_SAT, "capacity": 40, "strategy": "fifo"}),
    "MVFO of 40": ("sat-fifo", {**_SAT, "capacity": 40, "strategy": "mvfo"}),
    "lstm": ("lstm", {"hidden_dim": 64}),
    "relic": ("relic", {**_SAT, "max_episode_steps": 101}),
}
#: Gap -> memories that are compared with it.
GAPS: dict[int, tuple[str, ...]] = {
    0: tuple(DARKROOM_MEMORIES),
    20: tuple(name for name in DARKROOM_MEMORIES if name != "window of 64"),
    **dict.fromkeys((8, 32, 128), ("window of 16", "window of 64", "lstm", "relic")),
}
#: Title of a table and panel -> its columns, each a task, and the factor of the score.
TABLES = {
    "Darkroom 5 x 5: return in episode 10": ({"published": "darkroom-gap-0", "gap of 20": "darkroom-gap-20"}, 1),
    "VisualMatch: success, %": ({"published": "visual-match", "led": "visual-match-led"}, 100),
    "Darkroom 5 x 5: return in episode 10 by gap": ({str(gap): f"darkroom-gap-{gap}" for gap in sorted(GAPS)}, 1),
}


def darkroom(gap: int) -> RunConfig:
    """The Darkroom of `demo` with a gap; the number of episodes is the same with any gap."""
    steps, config = EPISODE + gap, find_preset("demo")
    return replace(
        config,
        env="memenvs/Darkroom-Gap-v0" if gap else "memenvs/Darkroom-v0",
        env_kwargs={**config.env_kwargs, "max_episode_steps": steps, "gap": gap},
        total_steps=DARKROOM_EPISODES * steps,
        eval_steps=2 * TRIAL * steps,
        learner=replace(config.learner, n_steps=TRIAL * steps),
    )


def visual_match(env: str) -> RunConfig:
    """VisualMatch of `sat-visual-match`, without an allocator."""
    config = changed(find_preset("sat-visual-match"), {"ppo.allocator": None})
    return replace(config, env=env, total_steps=VISUAL_MATCH_STEPS)


def with_memories(config: RunConfig, memories: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, RunConfig]:
    """Settings of a task with each memory."""
    return {
        name: changed(config, {"policy.memory": memory, "policy.memory_kwargs": settings})
        for name, (memory, settings) in memories.items()
    }


def scores_of(rows: Rows, task: str, method: str) -> np.ndarray:
    """Scores in the last episode, one per seed."""
    metric = next(iter(STUDY.configs[task].values())).score
    scores = rows.means(task, method, metric)
    return scores[:, -1] if len(scores) else scores


def format_scores(scores: np.ndarray) -> str:
    """Mean and 95 % interval (Student's t) of 3 or more seeds, else each value; "-" for none."""
    if len(scores) > 2:
        return "{:.1f} ± {:.1f}".format(*mean_and_margin(scores))
    return " / ".join(f"{score:.1f}" for score in scores) or "-"


def make_tables(rows: Rows) -> list[Table]:
    """A table for each panel of the figure, and the cost of the runs."""
    tables = []
    for title, (columns, factor) in TABLES.items():
        lines = []
        for name in methods_of(rows):
            scores = [factor * scores_of(rows, task, name) for task in columns.values()]
            if any(map(len, scores)):
                lines.append([label_of(name), *map(format_scores, scores)])
        if lines:
            tables.append(Table("", [title, *columns], lines))
    costs: list[list[Any]] = []
    for task in STUDY.configs:
        runs = [row for row in rows if row["task"] == task and row["seed"] is not None]
        steps, seconds = (sum(row[key] or 0 for row in runs) for key in ("steps", "cpu_seconds"))
        costs.append([task, len(runs), f"{steps:,}", f"{seconds:,.0f}"])
    return [*tables, Table("", ["task", "runs", "steps", "CPU seconds"], costs)]


def methods_of(rows: Rows) -> list[str]:
    """All methods: those that learn, then scripted policies."""
    learned = (name for configs in STUDY.configs.values() for name in configs)
    return list(dict.fromkeys([*learned, *(row["method"] for row in rows)]))


def label_of(method: str) -> str:
    """Name of a method in tables and figures."""
    return f"{method} (scripted)" if method in STUDY.scripted else method


def draw(rows: Rows) -> Figure | None:
    """Bars are means, dots seeds, lines 95 % intervals.

    A panel shows the methods that have scores in at least half of its columns.
    """
    figure = Figure(figsize=(13, 4), layout="constrained")
    for axes, (title, (columns, factor)) in zip(figure.subplots(1, 3), TABLES.items(), strict=True):
        labels: list[str] = []
        for name in methods_of(rows):
            scores = [factor * scores_of(rows, task, name) for task in columns.values()]
            if name in ("memoryless", "oracle"):
                if len(scores[0]) == 0:
                    return None
                axes.axhline(scores[0][0], color="0.4", linestyle="--" if name == "memoryless" else ":", label=name)
            elif name not in ("ideal", "window4") and 2 * sum(len(sample) > 0 for sample in scores) > len(scores):
                for column, sample in enumerate(scores):
                    draw_bar(axes, len(labels), column, sample, list(columns))
                labels.append(label_of(name).replace(" ", "\n", 1))
        axes.tick_params(axis="x", labelsize="small")
        axes.set_title(title, fontsize="medium")
        axes.set(xticks=range(len(labels)), xticklabels=labels, ylim=(0, None))
        axes.legend(frameon=False, ncols=4, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return figure


def draw_bar(axes: Axes, group: int, column: int, scores: np.ndarray, columns: list[str]) -> None:
    """Draw the bar of a memory (its group) in a column, of scores by seed."""
    if len(scores) > 0:
        at, (mean, margin) = group + 0.8 * (column + 0.5) / len(columns) - 0.4, mean_and_margin(scores)
        label = None if columns[column] in axes.get_legend_handles_labels()[1] else columns[column]
        axes.bar(at, mean, 0.76 / len(columns), color=str(0.8 - 0.55 * column / (len(columns) - 1)), label=label)
        axes.errorbar(at, mean, margin if len(scores) > 2 else None, color="C3", capsize=3, linewidth=1)
        axes.plot(np.full(len(scores), at), scores, ".", color="C3", markersize=4)


def _gap_configs(gap: int) -> dict[str, RunConfig]:
    return with_memories(darkroom(gap), {name: DARKROOM_MEMORIES[name] for name in GAPS[gap]})


STUDY = Study(
    title="Does your task need memory?",
    configs={
        "darkroom-gap-0": _gap_configs(0),
        "darkroom-gap-20": _gap_configs(20),
        "visual-match": with_memories(visual_match("memenvs/VisualMatch-v0"), VISUAL_MATCH_MEMORIES),
        "visual-match-led": with_memories(visual_match("memenvs/VisualMatch-Led-v0"), VISUAL_MATCH_MEMORIES),
        **{f"darkroom-gap-{gap}": _gap_configs(gap) for gap in (8, 32, 128)},
    },
    scripted=("memoryless", "window4", "window16", "notebook", "ideal", "oracle"),
    evaluations={"evaluation": lambda played: play_trials(played, played.config.score)},
    tables=make_tables,
    figures={"needs_memory": draw},
)
