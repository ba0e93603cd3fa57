"""Study "Does your task need memory?": published and repaired tasks; score against the gap.

A run is a folder in OUT; a stopped one resumes. When it ends, its row is appended to ROWS. Nothing is trained twice.

    python studies/needs_memory/study.py [--tasks ...] [--seeds 0 1 2] [--out runs/needs_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory, versions
from memenvs.agents.experiments.evaluate import evaluate_rule, evaluate_run
from memenvs.agents.experiments.statistics import mean_and_margin
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.study_results import settings_hash
from memenvs.registry import find_environment

FIGURE = Path(__file__).parents[2] / "docs" / "images" / "needs_memory.png"
#: Steps that a run learns from in VisualMatch, and episodes in the Darkroom: 25 x 64 trials of 5, 25 steps each.
VISUAL_MATCH_STEPS, DARKROOM_EPISODES, TRIAL, EPISODE = 1_024_000, 8_000, 5, 25
_READER = {"dim": 64, "layers": 2, "heads": 2, "mlp_dim": 256}
_SAT = {"dim": 64, "layers": 1, "heads": 2, "mlp_dim": 64}
#: Memory of the figure -> memory and its settings: in the Darkroom, and in VisualMatch as in `sat-visual-match`.
DARKROOM_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "window of 16": ("t-fifo", {**_READER, "capacity": 16, "time_index": "age"}),
    "window of 64": ("t-fifo", {**_READER, "capacity": 64, "time_index": "age"}),
    "lstm": ("lstm", {"hidden_dim": 64}),
    "ct-lt": ("ct-lt", find_preset("demo:ct-lt").policy["memory_kwargs"]),
    "trxl": ("trxl", {**_READER, "memory_length": 128, "dropout": 0.0}),
    "relic": ("relic", {**find_preset("demo").policy["memory_kwargs"], "max_episode_steps": 256}),
}
VISUAL_MATCH_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "window of 16": ("sat-fifo", {**_SAT, "capacity": 16, "strategy": "fifo"}),
    "FIFO of 40": ("sat-fifo", {**_SAT, "capacity": 40, "strategy": "fifo"}),
    "MVFO of 40": ("sat-fifo", {**_SAT, "capacity": 40, "strategy": "mvfo"}),
    "lstm": ("lstm", {"hidden_dim": 64}),
    "relic": ("relic", {**_SAT, "max_episode_steps": 101}),
}


class Task(NamedTuple):
    """A task of the study: id, memories compared, gap of the Darkroom (None for VisualMatch)."""

    env: str
    memories: tuple[str, ...]
    gap: int | None = None


_FIVE = tuple(name for name in DARKROOM_MEMORIES if name != "window of 64")
_FOUR = ("window of 16", "window of 64", "lstm", "relic")
TASKS = {
    "darkroom-gap-0": Task("memenvs/Darkroom-v0", (*_FIVE, "window of 64"), 0),
    "darkroom-gap-20": Task("memenvs/Darkroom-Gap-v0", _FIVE, 20),
    "visual-match": Task("memenvs/VisualMatch-v0", tuple(VISUAL_MATCH_MEMORIES)),
    "visual-match-led": Task("memenvs/VisualMatch-Led-v0", tuple(VISUAL_MATCH_MEMORIES)),
    **{f"darkroom-gap-{gap}": Task("memenvs/Darkroom-Gap-v0", _FOUR, gap) for gap in (8, 32, 128)},
}
#: Title of a table and panel -> its columns, each a task, and the factor of the score.
TABLES = {
    "Darkroom 5 x 5: return in episode 10": ({"published": "darkroom-gap-0", "gap of 20": "darkroom-gap-20"}, 1),
    "VisualMatch: success, %": ({"published": "visual-match", "led": "visual-match-led"}, 100),
    "Darkroom 5 x 5: return in episode 10 by gap": (
        {str(gap): f"darkroom-gap-{gap}" for gap in (0, 8, 20, 32, 128)},
        1,
    ),
}


def make_config(task: Task, memory: str, seed: int, smoke: bool = False) -> RunConfig:
    """Settings of a run: the preset with task and memory; a single rollout if `smoke`."""
    name, settings = (VISUAL_MATCH_MEMORIES if task.gap is None else DARKROOM_MEMORIES)[memory]
    if task.gap is None:
        config = replace(find_preset("sat-visual-match:fifo"), env=task.env, total_steps=VISUAL_MATCH_STEPS)
    else:
        steps = EPISODE + task.gap
        config = replace(find_preset("demo"), env=task.env, total_steps=DARKROOM_EPISODES * steps)
        changes = {"max_episode_steps": steps, "gap": task.gap}
        config = replace(config, env_kwargs={**config.env_kwargs, **changes}, eval_steps=2 * TRIAL * steps)
        config = replace(config, learner=replace(config.learner, n_steps=TRIAL * steps))
    config = replace(config, seed=seed, policy={**config.policy, "memory": name, "memory_kwargs": settings})
    return replace(config, n_envs=4, total_steps=1, eval_trials=4) if smoke else config


def measure(config: RunConfig, scripted: str | None, folder: Path) -> dict[str, Any]:
    """Train or resume a run and evaluate it, or play a scripted policy. Returns its results."""
    start, steps, is_whole = time.process_time(), 0, True
    if scripted is None:
        with RunDirectory.open_or_create(folder, config) as run:
            steps, is_whole = config.total_steps, not run.has_checkpoint
            train_run(run, quiet=True)
            results = evaluate_run(run, quiet=True)
    else:
        results = evaluate_rule(config, scripted, quiet=True)
    seconds = round(time.process_time() - start, 1) if is_whole else None  # a run that was resumed began earlier
    scores = results.curve(config.score).mean.round(4).tolist()
    return {"steps": steps, "cpu_seconds": seconds, "trials": len(results.layouts), "scores": scores}


def run_missing(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Play scripted policies (seed None), then train, seed by seed; append missing rows."""
    done = {(row["task"], row["memory"], row["seed"]) for row in rows}
    for seed, name in itertools.product((None, *options.seeds), options.tasks):
        task = TASKS[name]
        scripted = (*find_environment(task.env).policies, "oracle")
        for memory in scripted if seed is None else task.memories:
            if (name, memory, seed) in done:
                continue
            config = make_config(task, task.memories[0] if seed is None else memory, seed or 0, options.smoke)
            row = {"task": name, "memory": memory, "seed": seed, "env": config.env, "settings": config.env_kwargs}
            row |= {"evaluation": config.eval_kwargs, "hash": settings_hash(config), "score": config.score}
            folder = options.out / f"{name}-{memory.replace(' ', '-')}-{seed}"
            row |= measure(config, memory if seed is None else None, folder) | {"versions": versions()}
            with options.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(name, memory, seed, row["scores"][-1], row["cpu_seconds"], flush=True)


def format_scores(scores: np.ndarray) -> str:
    """Mean and 95 % interval (Student's t) of 3 or more seeds, else each value; "-" for none."""
    if len(scores) > 2:
        return "{:.1f} ± {:.1f}".format(*mean_and_margin(scores))
    return " / ".join(f"{score:.1f}" for score in scores) or "-"


def show(rows: list[dict[str, Any]], file: Path) -> None:
    """Print the tables and draw the figure: bars are means, dots seeds, lines 95 % intervals."""
    found: dict[tuple[str, str], list[float]] = {}  # scores in the last episode, by seed
    for row in sorted(rows, key=lambda row: (row["seed"] is None, row["seed"])):
        found.setdefault((row["task"], row["memory"]), []).append(row["scores"][-1])
    trained = dict.fromkeys(name for task in TASKS.values() for name in task.memories)
    figure = Figure(figsize=(13, 4), layout="constrained")
    for axes, (title, (columns, factor)) in zip(figure.subplots(1, 3), TABLES.items(), strict=True):
        print(f"\n| {title} |", " | ".join(columns), "|\n" + "|---" * (len(columns) + 1) + "|")
        names: list[str] = []
        for name in dict.fromkeys([*trained, *(memory for _, memory in found)]):
            scores = [factor * np.array(found.get((task, name), [])) for task in columns.values()]
            label = name if name in trained else f"{name} (scripted)"
            if any(map(len, scores)):
                print(f"| {label} |", " | ".join(map(format_scores, scores)), "|")
            if name in ("memoryless", "oracle"):
                axes.axhline(scores[0][0], color="0.4", linestyle="--" if name == "memoryless" else ":", label=name)
            elif name not in ("ideal", "window4") and 2 * sum(map(bool, map(len, scores))) > len(scores):
                for column, of_seeds in enumerate(scores):
                    draw_bar(axes, len(names), column, of_seeds, list(columns))
                names.append(label.replace(" ", "\n", 1))
        axes.tick_params(axis="x", labelsize="small")
        axes.set(title=title, xticks=range(len(names)), xticklabels=names, ylim=(0, None))
        axes.legend(frameon=False, ncols=4, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.savefig(file, dpi=110, metadata={"Software": None})
    print("\n| task | runs | steps | CPU seconds |\n|---|---|---|---|")
    for name in TASKS:
        runs = [row for row in rows if row["task"] == name and row["steps"]]
        steps, seconds = (sum(row[key] or 0 for row in runs) for key in ("steps", "cpu_seconds"))
        print(f"| {name} | {len(runs)} | {steps:,} | {seconds:,.0f} |")


def draw_bar(axes: Axes, group: int, column: int, scores: np.ndarray, columns: list[str]) -> None:
    """Draw the bar of a memory (its group) in a column, of scores by seed."""
    if len(scores) > 0:
        at, (mean, margin) = group + 0.8 * (column + 0.5) / len(columns) - 0.4, mean_and_margin(scores)
        label = None if columns[column] in axes.get_legend_handles_labels()[1] else columns[column]
        axes.bar(at, mean, 0.76 / len(columns), color=str(0.8 - 0.55 * column / (len(columns) - 1)), label=label)
        axes.errorbar(at, mean, margin if len(scores) > 2 else None, color="C3", capsize=3, linewidth=1)
        axes.plot(np.full(len(scores), at), scores, ".", color="C3", markersize=4)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS), help="(default all)")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2], help="(default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/needs_memory"), help="folder of the runs")
    parser.add_argument("--rows", type=Path, default=Path(__file__).with_name("rows.jsonl"), help="file of the rows")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="file of the figure")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--show", action="store_true", help="train nothing: print the tables and draw the figure")
    mode.add_argument("--smoke", action="store_true", help="a rollout of some runs, to see that everything works")
    options = parser.parse_args()
    if options.smoke:
        options.out, options.seeds = Path(tempfile.mkdtemp()), [0]
        options.rows, options.tasks = options.out / "rows.jsonl", ["darkroom-gap-20", "visual-match-led"]
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()] if options.rows.exists() else []
    if options.show and not rows:
        parser.error(f"argument --rows: must have rows to show, got none in {options.rows}")
    show(rows, options.figure) if options.show else run_missing(options, rows)


if __name__ == "__main__":
    main()
