"""Videos of trained agents: a whole trial, with goal, episode and step above the frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import algorithm_of, count_layouts, evaluation_env, trained_policy
from memenvs.agents.experiments.play import play_trials, trial_options
from memenvs.agents.experiments.registry import learners
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.cli.caption import add_caption, episode_title
from memenvs.cli.record import Video, max_frames, write_video
from memenvs.progress import Progress, progress_bar
from memenvs.registry import find_environment
from memenvs.resets import below_limit


class Screen:
    """The frame of the present step, with a line of text above it.

    Attributes:
        frame: uint8, (H, W, 3).
        text: The line.
    """

    def __init__(self) -> None:
        self.frame = np.zeros((1, 1, 3), np.uint8)
        self.text = ""

    def render(self) -> np.ndarray:
        """Return the frame below its text, uint8, (H, W, 3)."""
        return add_caption(self.frame, self.text)


def load_model(file: Path, env: str, settings: dict[str, Any], seed: int = 1) -> tuple[ActingPolicy, RunConfig]:
    """Load a model that was saved in Python, and make the settings of a run that plays it.

    Args:
        file: File that `save` of a learner has written.
        env: Id that it plays.
        settings: Settings of the environment.
        seed: Seed of the actions drawn.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not whole, or of a learner that does not act; or there is no such id.
    """
    name = Checkpoint.read(file).config["algorithm"]
    id = find_environment(env).id
    for config in (
        RunConfig(env=id, env_kwargs=settings, learner=kind.config_type()) for kind in learners() if kind.acts
    ):
        if algorithm_of(config).__name__ == name:
            policy = algorithm_of(config).load(file).policy
            policy.generator.manual_seed(below_limit(seed))
            return policy, config
    raise ValueError(f"{file}: algorithm must be of this package, got {name!r}")


def record_run(run: RunDirectory, path: Path, *, checkpoint: str | None = None, seed: int = 1, **options: Any) -> Any:
    """Record a run's agent over the first trial of its evaluation.

    Args:
        run: The folder.
        path: File to write, .gif or .mp4.
        checkpoint: Name of a checkpoint in the folder; None for the one that is evaluated.
        seed: Seed of the evaluation environment and of the actions drawn.
        **options: As `record_policy`, which says what is returned.

    Raises:
        FileNotFoundError: The run has no checkpoint.
        ValueError: The environment has no such layout or draws no frames, or the checkpoint is not of this run.
    """
    return record_policy(trained_policy(run, seed, checkpoint), run.config, path, seed=seed, **options)


def record_policy(
    policy: ActingPolicy,
    config: RunConfig,
    path: Path,
    *,
    steps: int | None = None,
    layout: int | None = None,
    seed: int = 1,
    frames: int | None = None,
    fps: float = 10.0,
    quiet: bool = False,
) -> dict[str, Any]:
    """Record a policy over the first trial of an evaluation.

    The frame after the last step of an episode is that of the step before, as the environment has begun the next one.

    Args:
        policy: The policy.
        config: Settings of the evaluation.
        path: File to write, .gif or .mp4.
        steps: Steps after which the video ends if the trial goes on; None for `eval_steps`.
        layout: Layout of the trial; None for that of the evaluation.
        seed: Seed of the evaluation environment.
        frames: Most frames, >= 2, evenly spaced; None for the default of the format (`memenvs record`).
        fps: Frames a second.
        quiet: Show no progress bars.

    Returns:
        `episodes` (return and length of each that has ended), `frames` and `file`.

    Raises:
        ValueError: The environment has no such layout or draws no frames, or the policy does not fit.
    """
    config = replace(config, eval_kwargs={**config.eval_kwargs, "render_mode": "rgb_array"})
    try:
        env = evaluation_env(config, 1, seed)
    except AssertionError as error:
        if "render_mode" not in str(error):  # Gymnasium's, where an environment has no such mode, names it
            raise
        raise ValueError(f"{config.env} must have render_mode 'rgb_array' to be recorded ({error})") from error
    try:
        policy.check_env(env)
        layouts = count_layouts(env)
        if layout is not None and layouts is None:
            raise ValueError(f"layout must be None for {config.env}, which has no layouts, got {layout}")
        if layouts is not None:
            if layout is not None and not 0 <= layout < layouts:
                raise ValueError(f"layout must be from 0 to {layouts - 1}, got {layout}")
            if layout is None and config.eval_all_layouts:
                layout = 0
            env.set_options(trial_options(0, 1, None if layout is None else [layout]))
        screen = Screen()
        video = Video(screen.render, max_frames(path, frames))
        most = config.eval_steps if steps is None else steps
        with progress_bar("playing the agent", quiet=quiet) as progress:
            episodes = _play(policy, env, most, screen, video, config.kind, progress)
    finally:
        env.close()
    return {"episodes": episodes, "frames": write_video(video.frames(), path, fps, quiet=quiet), "file": str(path)}


def _play(
    policy: Any, env: VecEnv, steps: int, screen: Screen, video: Video, kind: Any, progress: Progress
) -> list[dict[str, float]]:
    """Play a trial and capture each step; return the return and length of each episode that ends."""
    episodes: list[dict[str, float]] = []
    observation = env.reset()
    title = episode_heading(env, 1)
    _show(env, screen, f"{title}step 0")
    video.capture()
    total, length = 0.0, 0
    for number, step in enumerate(play_trials(policy, env, observation, deterministic=kind.deterministic), 1):
        total += float(step.rewards[0])
        length += 1
        progress(number / steps)
        if not step.dones[0]:
            _show(env, screen, f"{title}step {length}")
            video.capture()
        else:
            episodes.append({"return": total, "length": length})
            screen.text = f"{title}ended after {length} steps, return {total:.3g}"
            video.capture()
            if env.unwrapped.reset_infos[0].get("trial_start", True) or number >= steps:
                break
            title = episode_heading(env, len(episodes) + 1)
            total, length = 0.0, 0
            _show(env, screen, f"{title}step 0")
            video.capture()
        if number >= steps:
            break
    return episodes


def _show(env: VecEnv, screen: Screen, text: str) -> None:
    """Put the present frame of an environment and a text on the screen."""
    (frame,) = env.unwrapped.get_images()
    if frame is None:
        raise ValueError("render_mode 'rgb_array' must give frames, got none")
    screen.frame = np.asarray(frame)
    screen.text = text


def episode_heading(env: VecEnv, episode: int) -> str:
    """Name the goal of the episode that has just begun, if there is one, and its number."""
    names = env.env.task.goal_names if isinstance(env, TrialVecEnv) else {}
    return episode_title(env.unwrapped.reset_infos[0].get("goal"), names, episode)
