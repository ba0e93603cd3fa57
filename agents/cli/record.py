"""`memenvs record` of a trained agent."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import read_config
from memenvs.cli.common import parse_settings
from memenvs.cli.record import check_video


def record_agent(arguments: argparse.Namespace, target: Path) -> dict[str, Any]:
    """Record a video of a run's agent, or of a model that was saved in Python, over a trial."""
    is_model = target.is_file()
    settings = parse_settings(arguments.settings)
    if is_model:
        from memenvs.agents.algorithms.checkpoint import Checkpoint

        Checkpoint.read(target)  # refuses other files before an option that is missing
        if arguments.env is None:
            raise ValueError(f"{target}: the file of a model needs --env ID, as in --env Darkroom-v0")
        if arguments.checkpoint is not None:
            raise ValueError(f"--checkpoint must be left out with the file of a model, got {arguments.checkpoint}")
    else:
        config = read_config(target)
        if arguments.env:
            raise ValueError(f"--env goes with the file of a model, got {arguments.env} and the run {target}")
        if not config.kind.acts:
            raise ValueError(f"run must be of an agent that acts, got one that learns to predict in {target}")
        if settings:
            raise ValueError(f"--env_kwargs goes with an id or the file of a model, got the run {target}")
    default = target.with_suffix(".gif") if is_model else target / "video.gif"
    path = check_video(arguments.out or default)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.video import load_model, record_policy, record_run

    seed = 1 if arguments.seed is None else arguments.seed
    video = {name: getattr(arguments, name) for name in ("steps", "layout", "frames", "fps")}
    if is_model:
        policy, config = load_model(target, arguments.env, settings, seed)
        result = record_policy(policy, config, path, seed=seed, quiet=arguments.json, **video)
    else:
        with RunDirectory(target) as run:
            result = record_run(run, path, checkpoint=arguments.checkpoint, seed=seed, quiet=arguments.json, **video)
    if not arguments.json:
        for number, episode in enumerate(result["episodes"], 1):
            print(f"episode {number}: return {episode['return']:.3g} in {episode['length']} steps")
        print(f"wrote {path}: {result['frames']} frames")
    return result
