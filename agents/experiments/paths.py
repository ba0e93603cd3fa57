"""Paths of agents, random and oracle in single episodes: maps, and a metric by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.metric_labels import metric_label
from memenvs.agents.experiments.play import (
    OraclePolicy,
    Policy,
    RandomPolicy,
    check_map,
    play_trials,
    trial_options,
)
from memenvs.agents.experiments.report import Report, figure_png, image_png, step_figure
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.checks import check_int, choices_for
from memenvs.files import write_file
from memenvs.json_records import format_json
from memenvs.progress import Progress, no_progress, part_of, progress_bar
from memenvs.task import metric_values

POLICIES = ("agent", "random", "oracle")
MAPS = 4
"""Episodes that are drawn."""


@dataclass(frozen=True, eq=False)
class EpisodePath:
    """The first episode of a trial, T steps long.

    Attributes:
        seed: Seed of its environment.
        trial: Number of the trial.
        layout: Number of the layout.
        poses: float, (T + 1, 3); `info["pose"]` from the start on.
        values: float64, (T + 1,); a metric from the start on.
    """

    seed: int
    trial: int
    layout: int
    poses: np.ndarray
    values: np.ndarray

    @property
    def episode(self) -> tuple[float, ...]:
        """Seed, trial, layout and start pose, equal for two paths through the same episode."""
        return (self.seed, self.trial, self.layout, *self.poses[0].tolist())


def play_paths(
    policy: Policy,
    env: TrialVecEnv,
    count: int,
    metric: str,
    *,
    layouts: Sequence[int] | None = None,
    deterministic: bool = False,
    progress: Progress = no_progress,
) -> list[EpisodePath]:
    """Play the first episode of trials, each with an empty memory, as `TrialEvaluator` does.

    The episodes do not depend on the policy.

    Args:
        policy: The policy.
        env: N environments.
        count: Episodes, played N at a time; >= 1.
        metric: Key of a number in `info`, or "return", the sum of rewards so far.
        layouts: Layout of each episode, repeated from the start; None for those of the environment's own trials.
        deterministic: Take the most likely actions instead of drawn ones.
        progress: Called after each step.

    Raises:
        ValueError: `count` is below 1, or there is no such metric; the message lists all.
    """
    check_int("episodes", count)
    paths: list[EpisodePath] = []
    while len(paths) < count:
        env.set_options(trial_options(len(paths), env.num_envs, layouts))

        def report(share: float, first: int = len(paths)) -> None:
            progress(min(1.0, (first + env.num_envs * share) / count))

        paths += _play_batch(policy, env, metric, deterministic, report)
    return paths[:count]


def _play_batch(
    policy: Policy, env: TrialVecEnv, metric: str, deterministic: bool, progress: Progress
) -> list[EpisodePath]:
    """Play one episode in every environment, with the reset options that are set."""
    observation = env.reset()
    task = env.env.task
    first = list(env.reset_infos)
    metrics = sorted({"return", *metric_values(first[0], task.option_names)})
    if metric not in metrics:
        raise ValueError(f"unknown metric {metric!r}; {choices_for(metric, metrics)}")
    returns = np.zeros(env.num_envs)
    running = np.ones(env.num_envs, bool)
    poses: list[list[np.ndarray]] = [[info["pose"]] for info in first]
    values = [[0.0 if metric == "return" else float(info[metric])] for info in first]
    for number, step in enumerate(play_trials(policy, env, observation, deterministic=deterministic), 1):
        progress(number / env.env.max_episode_steps)
        returns += step.rewards
        info = task.info()
        for i in np.flatnonzero(running).tolist():
            # where an episode ended, `task.info` is already that of the next one
            ended = step.dones[i]
            poses[i].append(step.infos[i]["pose"] if ended else info["pose"][i].copy())
            if metric == "return":
                values[i].append(float(returns[i]))
            else:
                values[i].append(float(step.infos[i][metric] if ended else info[metric][i]))
        running &= ~step.dones
        if not running.any():
            break
    return [
        EpisodePath(info["seed"], info["trial_id"], info["layout_id"], np.stack(path), np.array(line))
        for info, path, line in zip(first, poses, values, strict=True)
    ]


def draw_path(env: TrialVecEnv, path: EpisodePath) -> np.ndarray:
    """Draw a path on the task's map.

    Args:
        env: One environment with the settings that the path was played in; is reset.
        path: The path.

    Returns:
        uint8, (H, W, 3).
    """
    env.seed(path.seed)
    env.set_options({"trial": path.trial, "layout": path.layout})
    env.reset()
    return env.env.task.draw_map(0, path.poses)


def curve_by_step(paths: Sequence[EpisodePath], steps: int) -> dict[str, list[float | None]]:
    """Mean and standard error over episodes after 0, 1, ... steps.

    Args:
        paths: The episodes. One that is over keeps its last value.
        steps: Step of the last entry; at least the length of the longest episode.

    Returns:
        "mean" and "stderr", `steps` + 1 entries each; the standard error of a single episode is None.
    """
    table = np.array([np.pad(path.values, (0, steps + 1 - len(path.values)), "edge") for path in paths])
    if len(paths) == 1:
        return {"mean": table[0].tolist(), "stderr": [None] * (steps + 1)}
    return {"mean": table.mean(0).tolist(), "stderr": (table.std(0, ddof=1) / np.sqrt(len(paths))).tolist()}


def compare_paths(
    runs: Sequence[RunDirectory],
    folder: Path,
    *,
    episodes: int = 20,
    seed: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Play evaluation episodes of runs; write maps, `paths.html`, `paths.json` and `paths.png`.

    Maps are called `path_1_agent.png` and so on.

    Args:
        runs: Folders, one or more of the same task, with checkpoints. Episodes, metric (`score`), random and oracle are
            those of the first. The agent of a single run is called "agent", those of several by their folders.
        folder: Folder to write to.
        episodes: Number of episodes, the same for each policy; >= 1.
        seed: Seed of the evaluation environments and of the actions drawn.
        quiet: Show no progress bar.

    Returns:
        The content of `paths.json`:

        - `metric`: Name of the metric.
        - `episodes`: Seed, trial and layout of each episode.
        - `policies`: For each policy `mean` and `stderr` of the metric by step, from the start on, and lists over
          episodes: `lengths` and `last` values.
        - `files`: Paths of all files.

    Raises:
        FileNotFoundError: A run has no checkpoint.
        ValueError: A number is out of range. The environment is none of this project. Folders of runs have the same
            name. A run is evaluated in other episodes than the first.

    Source:
        Scene Memory Transformer (Fang et al., 2019), figure 4 (classes found by step) and figures 6 and 8 to
        10 (paths).
    """
    check_int("episodes", episodes)
    maps = min(MAPS, episodes)
    names = _agent_names(runs)
    metric = runs[0].config.score
    copies = min(runs[0].config.eval_envs, episodes)  # as in `evaluate`: their number decides which episodes come
    players = [
        (label, policy, run)
        for policy in POLICIES
        for label, run in (zip(names, runs, strict=True) if policy == "agent" else [(policy, runs[0])])
    ]
    paths = {}
    with progress_bar("playing", quiet=quiet) as progress:
        for i, (label, policy, run) in enumerate(players):
            part = part_of(progress, i, len(players))
            paths[label] = _play_policy(run, policy, episodes, metric, seed, copies, part)
    _check_same_episodes(paths, {label: run for label, _, run in players if len(runs) > 1}, seed)
    longest = max(len(path.values) for played in paths.values() for path in played) - 1
    first = next(iter(paths.values()))
    result: dict[str, Any] = {
        "metric": metric,
        "episodes": [{"seed": path.seed, "trial": path.trial, "layout": path.layout} for path in first],
        "policies": {
            name: {
                **curve_by_step(played, longest),
                "lengths": [len(path.values) - 1 for path in played],
                "last": [float(path.values[-1]) for path in played],
            }
            for name, played in paths.items()
        },
    }
    pictures = [f"path_{number}_{name}.png" for number in range(1, maps + 1) for name in paths]
    result["files"] = [str(folder / name) for name in ("paths.html", "paths.json", "paths.png", *pictures)]
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "paths.json", format_json(result).encode())
    _write_page(runs[0], folder, paths, result, maps, seed)
    return result


def _agent_names(runs: Sequence[RunDirectory]) -> list[str]:
    """Names of the agents of runs; a ValueError if two have the same."""
    names = ["agent"] if len(runs) == 1 else [run.path.resolve().name for run in runs]
    if len({*names, *POLICIES[1:]}) < len(names) + len(POLICIES[1:]):
        raise ValueError(f"folders of runs must have different names, and none that of a policy, got {names}")
    return names


def _check_same_episodes(
    paths: Mapping[str, Sequence[EpisodePath]], runs: Mapping[str, RunDirectory], seed: int
) -> None:
    """Raise a ValueError unless all paths are through the same episodes.

    The numbers of an episode do not suffice: with other settings, the same layout is another home. So the maps of the
    first episode are compared too, where there are several runs.
    """
    first = next(iter(paths))
    maps = {label: _draw_start(run, paths[first][0], seed) for label, run in runs.items()}
    for label, played in paths.items():
        same = [path.episode for path in played] == [path.episode for path in paths[first]]
        if not same or (maps and not np.array_equal(maps[label], maps[first])):
            raise ValueError(f"{label} is evaluated in other episodes than {first}, with which it cannot be compared")


def _draw_start(run: RunDirectory, path: EpisodePath, seed: int) -> np.ndarray:
    """Draw the map of an episode as it begins in the evaluation environment of a run."""
    env = _evaluation_env(run, 1, seed)
    try:
        return draw_path(env, replace(path, poses=path.poses[:1]))
    finally:
        env.close()


def _evaluation_env(run: RunDirectory, copies: int, seed: int) -> TrialVecEnv:
    """`evaluation_env` of a run, one of this project."""
    env = evaluation_env(run.config, copies, seed)
    if not isinstance(env, TrialVecEnv):
        env.close()
        raise ValueError(f"env must be a task of memenvs to have its paths drawn, got {run.config.env!r}")
    check_map(env, "draw_map")
    return env


def _play_policy(
    run: RunDirectory, name: str, episodes: int, metric: str, seed: int, copies: int, progress: Progress
) -> list[EpisodePath]:
    """Play one policy in `copies` of the evaluation environment of a run."""
    config = run.config
    env = _evaluation_env(run, copies, seed)
    try:
        player: Policy = RandomPolicy(env.action_space, seed) if name == "random" else OraclePolicy(env)
        if name == "agent":
            player = agent = trained_policy(run, seed)
            agent.check_env(env)
        layouts = range(env.env.task.num_layouts) if config.eval_all_layouts else None
        deterministic = config.kind.deterministic
        return play_paths(
            player, env, episodes, metric, layouts=layouts, deterministic=deterministic, progress=progress
        )
    finally:
        env.close()


def _write_page(
    run: RunDirectory,
    folder: Path,
    paths: Mapping[str, Sequence[EpisodePath]],
    result: Mapping[str, Any],
    maps: int,
    seed: int,
) -> None:
    """Write the figure by step and the maps, as files and on one page."""
    metric = result["metric"]
    curves = result["policies"]
    report = Report(f"{run.path.name}: {run.config.env}, step by step", folder)
    label = metric_label(metric)
    report.heading(f"{label[:1].upper()}{label[1:]} by step")
    report.text(
        f"Mean over {len(result['episodes'])} evaluation episodes and standard error; "
        "an episode that is over keeps its last value."
    )
    report.picture("paths", figure_png(step_figure(curves, label)))
    rows = []
    for name, curve in curves.items():
        stderr = "-" if curve["stderr"][-1] is None else curve["stderr"][-1]
        rows.append([name, curve["mean"][-1], stderr, float(np.mean(curve["lengths"]))])
    report.table(["policy", f"{label} at the end", "standard error", "steps"], rows)
    report.heading("Paths")
    env = _evaluation_env(run, 1, seed)
    try:
        for number in range(maps):
            for name, played in paths.items():
                path = played[number]
                score = f"{metric} {path.values[-1]:.4g} after {len(path.values) - 1} steps"
                caption = f"episode {number + 1}, {name}: {score}"
                picture = image_png(draw_path(env, path))
                report.picture(f"path_{number + 1}_{name}", picture, caption, columns=len(paths))
    finally:
        env.close()
    report.write(folder / "paths.html")
