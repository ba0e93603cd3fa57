"""Result files in the format of R2R and CVDN: a trajectory for each instruction of a split."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.play import Policy, play_trials, trial_options
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.files import write_file
from memenvs.progress import progress_bar
from memenvs.vln.env import GraphNavigation
from memenvs.vln.results import TASKS

#: Environment -> name of its task in result files.
ENVIRONMENTS = {"memenvs/VLN-R2R-v0": "r2r", "memenvs/VLN-CVDN-v0": "ndh"}

Trajectory = list[tuple[str, float, float]]
"""(viewpoint, heading, elevation) of each step, radians."""


def check_trajectories(config: RunConfig) -> str:
    """Return the task, "r2r" or "ndh", of a run whose trajectories can be scored.

    Raises:
        ValueError: Its environment has no result files, or is not on the real graphs.
    """
    if config.env not in ENVIRONMENTS:
        raise ValueError(f"env must be one of {list(ENVIRONMENTS)}, got {config.env!r}")
    settings = {**config.env_kwargs, **config.eval_kwargs}
    world = settings.get("world", "procedural")
    if world != "mp3d":
        raise ValueError(f"world must be 'mp3d', whose instructions result files are about, got {world!r}")
    if settings.get("legs") not in (None, 1):
        raise ValueError(f"legs must be 1 or None, as in the instructions of result files, got {settings['legs']}")
    return ENVIRONMENTS[config.env]


def play_trajectories(
    policy: Policy, env: TrialVecEnv, *, deterministic: bool = False, quiet: bool = True
) -> list[tuple[str, Trajectory]]:
    """Play every episode of a split once, in the same trials as `TrialEvaluator`.

    Args:
        policy: Policy that acts.
        env: N copies of R2R or CVDN.
        deterministic: Whether the policy takes its most likely actions; otherwise it draws them.
        quiet: Whether to show no progress bar.

    Returns:
        Id of the instruction and trajectory, in the order of the split.
    """
    task = _task(env)
    layouts = range(task.num_layouts)
    played: list[tuple[str, Trajectory]] = []
    with progress_bar("playing the agent", quiet=quiet) as progress:
        for first in range(0, len(layouts), env.num_envs):
            env.set_options(trial_options(first, env.num_envs, layouts))
            played += _play_batch(policy, env, deterministic)[: len(layouts) - first]
            progress(len(played) / len(layouts))
    return played


def _play_batch(policy: Policy, env: TrialVecEnv, deterministic: bool) -> list[tuple[str, Trajectory]]:
    """Play one episode in every environment, with the reset options that are set."""
    task = _task(env)
    observation = env.reset()
    ids = [str(info["instr_id"]) for info in env.reset_infos]
    trajectories = [task.trajectory(i) for i in range(len(ids))]
    running = np.ones(env.num_envs, bool)
    for step in play_trials(policy, env, observation, deterministic=deterministic):
        for i in np.flatnonzero(running & ~step.dones).tolist():
            trajectories[i] = task.trajectory(i)
        for i in np.flatnonzero(running & step.dones).tolist():  # the task already knows the next episode only
            info = step.infos[i]
            last = (str(info["viewpoint"]), float(info["heading"]), float(info["elevation"]))
            trajectories[i] += [last] * (last[0] != trajectories[i][-1][0])
        running &= ~step.dones
        if not running.any():
            break
    return list(zip(ids, trajectories, strict=True))


def _task(env: TrialVecEnv) -> GraphNavigation:
    """Return the task of an environment."""
    assert isinstance(env.env.task, GraphNavigation)
    return env.env.task


def write_trajectories(
    run: RunDirectory,
    path: Path | None = None,
    *,
    split: str | None = None,
    seed: int = 1,
    policy: Policy | None = None,
    quiet: bool = False,
) -> Path:
    """Play a run's agent in every instruction of a split and write the result file.

    Args:
        run: Folder of the run.
        path: Path of the file; None for `trajectories_SPLIT.json` in the folder.
        split: Split, such as "val_unseen"; None for that of the run's evaluation.
        seed: Seed of the evaluation environments and of the actions drawn.
        policy: Policy that acts; None for the run's best checkpoint, or its latest.
        quiet: Whether to show no progress bar.

    Returns:
        The path of the file: a JSON list of {"instr_id": ID, "trajectory": [[viewpoint, heading, elevation], ...]}; for
        CVDN "inst_idx" replaces "instr_id".

    Raises:
        FileNotFoundError: The run has no checkpoint yet, or the data are missing.
        ValueError: The run is of another environment or world, the split is unknown, or the environment's vocabulary or
            features are not those of training.
    """
    key, _ = TASKS[task := check_trajectories(run.config)]
    config = run.config
    if split is not None:
        config = replace(config, eval_kwargs={**config.eval_kwargs, "split": split})
    env = evaluation_env(config, min(config.eval_envs, config.eval_trials), seed)  # copies as in the evaluation
    assert isinstance(env, TrialVecEnv)
    try:
        policy = trained_policy(run, seed) if policy is None else policy
        if isinstance(policy, ActingPolicy):
            policy.check_env(env)
        played = play_trajectories(policy, env, deterministic=config.kind.deterministic, quiet=quiet)
        split = _task(env).config.split
    finally:
        env.close()
    entries: list[dict[str, Any]] = [
        {key: int(id) if task == "ndh" else id, "trajectory": [list(step) for step in trajectory]}
        for id, trajectory in played
    ]
    path = run.path / f"trajectories_{split}.json" if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(entries).encode())
    return path
