"""R2R in procedural houses: MTVM with more or less memory, in paths of one to three legs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_mean, format_percent, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.mtvm import LEG_TOKENS
from memenvs.agents.study import Played, Rows, Study, Table, changed, compact

from .repeats import KINDS, LEGS, METRICS, score_by_repeats

TASKS = ("1", "2", "3")
"""Legs of the path."""
READER = "memoryless"
#: Method -> changes of the preset.
METHODS: dict[str, dict[str, Any]] = {
    "all": {},
    "last3": {"policy.network.bank": 3},
    "observations": {"policy.network.history": "observation"},
    "last3-observations": {"policy.network.bank": 3, "policy.network.history": "observation"},
    "recurrent": {"policy.network.history": "state"},
    "none": {"policy.network.bank": 0},
    "no-language": {"policy.network.language": False},
    # as strong, compared with imitation, as in the paper's study (6 and 2 over 0.2)
    "consistency": {"imitation.text_consistency": 30.0, "imitation.cross_consistency": 10.0},
}
#: Method -> agent, in the order of the tables.
AGENTS = {
    "all": "all actions (MTVM)",
    "last3": "last 3 actions",
    "observations": "all views",
    "last3-observations": "last 3 views",
    "recurrent": "one recurrent state",
    "none": "no memory",
    "no-language": "all actions, does not read",
    "consistency": "all actions, with the consistency loss",
    READER: "nothing: a scripted reader (`memoryless`)",
}
SCORES = {"success": "sr", "SDTW": "sdtw"}
REPEATS = {"few": "1 to 3 repeated actions", "many": "4 or more"}


def configs(task: str) -> dict[str, RunConfig]:
    """Settings of each agent; several legs begin with the weights of one leg less."""
    legs, base = int(task), find_preset("vln-laptop")
    if legs > 1:
        updates = base.total_steps // 2
        longer = {"env_kwargs.legs": legs, "env_kwargs.max_tokens": LEG_TOKENS * legs, "eval_steps": 15 * legs}
        base = changed(base, {**longer, "total_steps": updates, "imitation.imitation_updates": updates})
    own = {}
    for method, changes in METHODS.items():
        if method != "recurrent" or legs == 1:
            source = f"{method}-{legs - 1}-{{seed}}" if legs > 1 else None
            own[method] = replace(changed(base, changes), encoder_from=source)
    return own


def evaluate(played: Played) -> dict[str, Any]:
    """Scores in unseen houses; with three legs also by repeated actions ("again")."""
    results = played.play()
    scores: dict[str, Any] = {"agent": compact(results.to_json())}
    if played.run is not None and int(played.task) == LEGS:
        scores["again"] = score_by_repeats(played.run, results)
    return scores


def scores_of(rows: Rows, task: str, method: str, metric: str) -> np.ndarray:
    """Scores in %, float64, (seeds,)."""
    means = rows.means(task, method, metric)
    return 100 * (means[:, 0] if len(means) else means)


def make_tables(rows: Rows) -> list[Table]:
    """Success and SDTW by legs; then scores in three legs by the number of repeated actions."""
    columns = [(label, metric, task) for label, metric in SCORES.items() for task in TASKS]
    lines = []
    for method, name in AGENTS.items():
        scores = [scores_of(rows, task, method, metric) for _, metric, task in columns]
        if any(map(len, scores)):
            lines.append([name, *(format_mean(sample) if len(sample) else "-" for sample in scores)])
    header = ["remembers", *(f"{label} %, {task} leg{'s' * (task != '1')}" for label, _, task in columns)]
    main = Table("Unseen houses", header, lines)
    pairs = [(kind, metric) for kind in KINDS for metric in METRICS]
    lines = []
    for method, name in AGENTS.items():
        results = [result["again"] for result in rows.results(str(LEGS), method) if "again" in result]
        if results:
            cells = [np.array([result[kind][metric] for result in results]) for kind, metric in pairs]
            lines.append([name, *map(format_percent, cells)])
    header = ["remembers", *(f"{metric.upper()} %, {REPEATS[kind]}" for kind, metric in pairs)]
    repeats = Table("Three legs, by the number of repeated actions", header, lines)
    return [table for table in (main, repeats) if table.lines]


def draw(rows: Rows) -> Figure | None:
    """Success by legs of the path, for each memory; None where a run is missing."""
    figure = Figure(figsize=(8, 5.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    legs = list(map(int, TASKS))
    for k, (method, name) in enumerate(AGENTS.items()):
        scores = [scores_of(rows, task, method, "sr") for task in TASKS]
        if method in ("recurrent", "consistency"):
            continue
        if not all(map(len, scores)):
            return None
        mean, margin = zip(*map(mean_and_margin, scores), strict=True)
        if method == READER:
            axes.plot(legs, mean, color="0.33", linestyle="-.", linewidth=2.5, label="scripted reader, no memory")
            continue
        style = ":" if method in ("none", "no-language") else "-"
        line = {"color": COLOURS[k], "linestyle": style, "linewidth": 2.5}
        axes.errorbar(legs, mean, margin, label=name, marker="osD^vPX*"[k], markersize=9, capsize=4, **line)
    axes.set(xticks=legs, ylim=(0, 100))
    axes.set_xlabel("legs of the path", fontsize=16)
    axes.set_ylabel("success, %", fontsize=16)
    axes.tick_params(labelsize=14)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=14)
    return figure


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    return changed(config, {"n_envs": 2, "total_steps": 2, "eval_trials": 4, "policy.network.dim": 16})


STUDY = Study(
    title="MTVM: how many actions must be remembered?",
    configs={task: configs(task) for task in TASKS},
    evaluations={"evaluation": evaluate},
    scripted=(READER,),
    tables=make_tables,
    figures={"vln_memory": draw},
    smoke=shorten,
    run_name="{method}-{task}-{seed}",
)
