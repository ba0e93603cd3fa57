"""`memenvs record`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.cli.caption import FULL_WIDTH, add_caption, episode_title
from memenvs.cli.common import (
    UserError,
    as_user_error,
    check_output,
    find_target,
    make_env,
    refuse_options,
    reset_env,
    share_of_episode,
)
from memenvs.cli.policies import make_policy
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy, play_episode
from memenvs.files import atomic_replace
from memenvs.progress import Progress, no_progress, progress_bar

ARGUMENTS = """
target TARGET: id that a policy plays, as of `memenvs rollout`; folder of a run, whose agent plays a trial of its
    evaluation, with goal, episode and step in each frame; or file of a model, from model.save(FILE)
--env_kwargs JSON: settings of the environment of an id or a model
--policy NAME: who plays an id, as of `memenvs rollout` (default: random)
--env ID: id that a model plays; needed with a file
--checkpoint FILE: file in the folder (default: the one that is evaluated)
--layout K: number of the layout of an agent's trial (default: that of the evaluation)
--episodes N: episodes of a policy (default: 1)
--steps N: stop after this many steps (default: no limit; of an agent, those of the evaluation)
--seed K: seed of environment and policy (default: 0), or of an agent's evaluation (default: 1)
--frames FRAMES: most frames to keep, 2 or more; longer videos keep every second, fourth, ... step (default: 300 in a
    .gif, no limit in an .mp4)
--fps FPS=10.0: frames a second, 0.1 to 50
--out OUT_FILE: video to write: .gif (512 pixels wide at most, 128 colours) or .mp4; needed with an id (default:
    video.gif in the folder of a run, gru.gif beside a file gru.zip)
"""

#: Default limit on the frames of a .gif. With it, 500 steps in a home take about 5 MB.
GIF_FRAMES = 300
#: Width of a .gif, at most, in pixels.
GIF_WIDTH = FULL_WIDTH
#: Colours of a .gif.
GIF_COLOURS = 128


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play episodes, and write the frames of `render` as a video."""
    target = find_target(arguments.target)
    if isinstance(target, Path):
        refuse_options(arguments, ("policy", "episodes"), "goes with an id and not with a run or a model")
        document: dict[str, Any] = import_module("memenvs.agents.cli.record").record_agent(arguments, target)
        return document
    refuse_options(arguments, ("env", "checkpoint", "layout"), "goes with a run or a model and not with an id")
    if arguments.out is None:
        raise UserError("argument --out: is needed with an id")
    path = check_video(arguments.out)
    env = make_env(target, arguments, render_mode="rgb_array")
    name, seed = arguments.policy or "random", arguments.seed or 0
    policy = make_policy(name, env, target, np.random.default_rng(seed))
    limit = max_frames(path, arguments.frames)
    with progress_bar("playing", quiet=arguments.json) as progress, as_user_error("TARGET", NotImplementedError):
        num_episodes, frames = record_episodes(
            env, policy, arguments.episodes or 1, arguments.steps, seed, limit, progress
        )
    env.close()
    num_frames = write_video(frames, path, arguments.fps, quiet=arguments.json)
    seconds = round(len(frames) / arguments.fps, 2)
    if not arguments.json:
        print(f"wrote {path}: {num_frames} frames, {seconds} s, of {num_episodes} episode{'s' * (num_episodes > 1)}")
    document = {"id": target.id, "policy": name, "episodes": num_episodes}
    return {**document, "frames": num_frames, "seconds": seconds, "file": str(path)}


def check_video(path: Path) -> Path:
    """Check the path of a video before anything is played.

    Raises:
        UserError: It cannot be written, or its format needs a package that is not installed.
    """
    if check_output("--out", str(path), ".gif", ".mp4").suffix.lower() == ".mp4":
        with as_user_error("--out", ImportError):
            _import_imageio()
    return path


def max_frames(path: Path, frames: int | None) -> int | None:
    """Most frames of a video: `frames`, or the default of its format; None for no limit."""
    return GIF_FRAMES if frames is None and path.suffix.lower() == ".gif" else frames


def write_video(frames: list[np.ndarray], path: Path, fps: float, *, quiet: bool = False) -> int:
    """Write a video and return the number of frames that it holds.

    Args:
        frames: Images of the same size, uint8, (H, W, 3).
        path: File to write, .gif or .mp4.
        fps: Frames a second.
        quiet: Show no progress bar.
    """
    is_gif = path.suffix.lower() == ".gif"
    write = _write_gif if is_gif else _write_mp4
    with (
        as_user_error("--out", OSError),
        atomic_replace(path) as temporary,
        progress_bar("writing", quiet=quiet) as progress,
    ):
        write(frames, temporary, fps, progress)
    if not is_gif:
        return len(frames)
    from PIL import Image

    with Image.open(path) as video:  # which leaves out frames that equal the one before
        return int(getattr(video, "n_frames", 1))


class Video:
    """Frames of an environment, evenly spaced in time, with the first and the last one.

    Args:
        draw: Draws the present frame, uint8, (H, W, 3), such as `env.render`.
        max_frames: Most frames to keep, >= 2. Longer videos keep every second, fourth, ... step. None for no limit.
    """

    def __init__(self, draw: Callable[[], Any], max_frames: int | None = None) -> None:
        self._draw = draw
        self._max_frames = max_frames
        self._frames: list[np.ndarray] = []
        self._stride = 1
        self._num_steps = 0

    def capture(self) -> None:
        """Render the present step, unless the stride skips it."""
        if self._num_steps % self._stride == 0:
            if len(self._frames) == self._max_frames:  # full: drop every second frame
                self._frames = self._frames[::2]
                self._stride *= 2
            if self._num_steps % self._stride == 0:
                self._frames.append(self._draw())
        self._num_steps += 1

    def frames(self) -> list[np.ndarray]:
        """Return the frames, uint8 (H, W, 3) each.

        Call this at the last step, which is added if it was skipped.
        """
        if (self._num_steps - 1) % self._stride == 0:
            return self._frames
        before = self._frames[:-1] if len(self._frames) == self._max_frames else self._frames
        return [*before, self._draw()]


def record_episodes(
    env: gym.Env,
    policy: EnvPolicy,
    episodes: int,
    steps: int | None,
    seed: int,
    max_frames: int | None,
    progress: Progress = no_progress,
) -> tuple[int, list[np.ndarray]]:
    """Play episodes and draw the steps.

    Args:
        env: The environment.
        policy: Chooses the actions.
        episodes: Number of episodes.
        steps: Number of steps after which to stop; None for no limit.
        seed: Seed of the first reset.
        max_frames: As in `Video`.
        progress: Called after each step.

    Returns:
        Number of episodes begun, and the frames.
    """
    line = ""

    def draw() -> np.ndarray:
        frame: Any = env.render()
        assert frame is not None, "render_mode is rgb_array"
        return add_caption(np.asarray(frame), line)

    video = Video(draw, max_frames)
    goal_names = env.task.goal_names if isinstance(env, TrialEnv) else {}
    num_steps = 0
    for k in range(episodes):
        info = reset_env(env, seed if k == 0 else None)
        title = episode_title(info.get("goal"), goal_names, k + 1)
        total = 0.0
        line = f"{title}step 0   return 0"
        video.capture()
        if num_steps == steps:
            return k + 1, video.frames()
        for length, step in enumerate(play_episode(env, policy), 1):
            total += step.reward
            num_steps += 1
            progress(max((k + share_of_episode(env, length)) / episodes, num_steps / steps if steps else 0.0))
            line = f"{title}step {length}   return {total:.3g}{'   (end)' * step.is_last}"
            video.capture()
            if num_steps == steps and not step.is_last:
                return k + 1, video.frames()
    return episodes, video.frames()


def _write_gif(frames: list[np.ndarray], path: Path, fps: float, progress: Progress = no_progress) -> None:
    """Write a GIF with one palette, so that pixels that do not change between frames need not be stored again.

    A GIF counts in hundredths of a second. Each frame ends at the hundredth nearest to its true end, so that the video
    keeps its length: 15 frames a second are 7, 6, 7, 7, ... hundredths long. A frame that equals the one before it is
    not stored; that one is shown longer.
    """
    from PIL import Image

    height, width = frames[0].shape[:2]
    if width > GIF_WIDTH:
        size = GIF_WIDTH, max(1, round(height * GIF_WIDTH / width))
        frames = [np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS)) for frame in frames]
    sample = np.concatenate(frames[:: max(1, len(frames) // 16)])
    # An octree keeps colours of few pixels, such as a marked goal; a median cut does not.
    palette = Image.fromarray(sample).quantize(GIF_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    ends = np.round(100 * np.arange(1, len(frames) + 1) / fps).astype(int)
    durations = (10 * np.diff(ends, prepend=0)).tolist()  # ms

    def images() -> Iterator[Image.Image]:
        for k, frame in enumerate(frames):
            yield Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
            progress((k + 1) / len(frames))  # Pillow has stored the image when it comes back

    iterator = images()
    next(iterator).save(path, save_all=True, append_images=iterator, duration=durations, loop=0)


def _write_mp4(frames: list[np.ndarray], path: Path, fps: float, progress: Progress = no_progress) -> None:
    height, width = (length - length % 2 for length in frames[0].shape[:2])  # the format needs even sizes
    with _import_imageio().get_writer(path, fps=fps, macro_block_size=2) as writer:
        for k, frame in enumerate(frames):
            writer.append_data(frame[:height, :width])
            progress((k + 1) / len(frames))


def _import_imageio() -> Any:
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401  (the writer of mp4 needs it)
    except ImportError as error:
        raise ImportError(f"writing .mp4 needs {error.name}; install it with: pip install 'memenvs[video]'") from error
    return imageio
