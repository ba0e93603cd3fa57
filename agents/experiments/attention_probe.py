"""The probe of a run: attention of a ReLIC memory in one trial, as JSON and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.attention_figures import attention_figure, goals_figure
from memenvs.agents.experiments.attention_recording import Recording, record_attention
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.play import check_map
from memenvs.agents.experiments.report import figure_png
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int
from memenvs.files import write_file
from memenvs.json_records import format_json
from memenvs.progress import progress_bar


def _figures(map_image: np.ndarray, pixels: np.ndarray, recording: Recording) -> dict[str, Figure]:
    """Draw each head, averaged over recorded steps of the last episode; and the head that depends on the goal most.

    For `map_image` and `pixels` see `attention_figure`.
    """
    sinks = recording.sinks
    episodes = recording.episodes
    last = max(recording.weights)
    steps = [t for t in recording.weights if episodes[t] == episodes[last]]
    mean = np.zeros_like(recording.weights[last][..., sinks:])
    for t in steps:
        mean[..., : t + 1] += recording.weights[t][..., sinks:] / len(steps)
    panels = [
        (f"layer {layer}, head {head}: {mean[layer, head].sum():.0%} off the sink", mean[layer, head])
        for layer, head in np.ndindex(mean.shape[:2])
    ]
    title = f"attention in episode {episodes[last] + 1}, recorded steps: {len(steps)}; areas are shares"
    figures = {"attention.png": attention_figure(map_image, pixels, episodes, panels, mean.shape[1], title)}
    if recording.goals:
        goals = {name: weights[..., sinks:-1] for name, weights in recording.goals.items()}
        figures["attention_goals.png"] = goals_figure(map_image, pixels, episodes, goals)
    return figures


def probe_run(
    run: RunDirectory,
    folder: Path,
    *,
    steps: int | None = None,
    count: int = 100,
    layout: int | None = None,
    seed: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Record the attention in one evaluation trial of a run and write it as JSON and figures.

    The files are `attention.json`, `attention.png` and, if observations show a goal, `attention_goals.png`.

    Args:
        run: Folder of a run with a ReLIC memory.
        folder: Folder to write to.
        steps: Steps of the trial; None for the run's `eval_steps`.
        count: Number of steps at which attention is recorded, spread evenly; >= 1.
        layout: Number of the layout; None for a drawn one.
        seed: Seed of the trial and of the actions drawn.
        quiet: Show no progress bar.

    Returns:
        The content of `attention.json`:

        - `steps`: The recorded steps.
        - `episodes`: The episode of each of them.
        - `goals`: Name of the goal shown after the trial -> for each head the mass on the sink, and the step with the
          most attention.
        - `files`: Paths of all files.

    Raises:
        FileNotFoundError: The run has no checkpoint.
        ValueError: It has another memory, a number is out of range, or the task has no map on which to place poses.
    """
    total = run.config.eval_steps if steps is None else steps
    check_int("steps", total)
    check_int("count", count)
    policy = trained_policy(run, seed)
    env = evaluation_env(run.config, 1, seed)
    if not isinstance(env, TrialVecEnv):
        raise ValueError(f"env must be a task of memenvs to be probed, got {run.config.env!r}")
    check_map(env, "draw_map", "map_pixels")
    at = np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int)).tolist()
    try:
        with progress_bar("playing the agent", quiet=quiet) as progress:
            recording = record_attention(policy, env, total, set(at), layout=layout, progress=progress)
        task = env.env.task
        map_image = task.draw_map(0, recording.poses[-1:])
        pixels = task.map_pixels(0, recording.poses)
    finally:
        env.close()
    figures = _figures(map_image, pixels, recording)
    result = {
        "steps": at,
        "episodes": recording.episodes[at].tolist(),
        "goals": {name: _goal_row(weights, recording) for name, weights in recording.goals.items()},
        "files": [str(folder / name) for name in ("attention.json", *figures)],
    }
    write_file(folder / "attention.json", format_json(result, indent=1).encode())
    for name, figure in figures.items():
        write_file(folder / name, figure_png(figure))
    return result


def _goal_row(weights: np.ndarray, recording: Recording) -> list[dict[str, Any]]:
    """Mass on the sink and step with the most attention of each head, when a goal is shown."""
    sinks = recording.sinks
    rows = []
    for layer, head in np.ndindex(weights.shape[:2]):
        row = weights[layer, head]
        past = row[sinks : sinks + len(recording.episodes)]
        rows.append(
            {
                "layer": layer,
                "head": head,
                "sink": float(row[:sinks].sum()),
                "most": int(past.argmax()),
                "most_mass": float(past.max()),
                "most_episode": int(recording.episodes[past.argmax()]),
            }
        )
    return rows
