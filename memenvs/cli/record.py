"""`memenvs record`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.cli.common import blame, check_output, choose_action, find_row, make_env, print_json
from memenvs.core import TrialEnv
from memenvs.files import whole_file


def run(arguments: argparse.Namespace) -> None:
    """Plays, and writes what `render` shows as a film."""
    row = find_row(arguments.id)
    path = check_output("--out", arguments.out, ".gif", ".mp4")
    if path.suffix.lower() == ".mp4":
        with blame("--out", ImportError):
            _imageio()
    env = make_env(arguments, render_mode="rgb_array")
    frames, num_episodes = film(env, arguments.policy, arguments.episodes, arguments.steps, arguments.seed)
    env.close()
    with blame("--out", OSError), whole_file(path) as temporary:
        write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
        write(frames, temporary, arguments.fps)
    if arguments.json:
        print_json(
            {
                "id": row.id,
                "policy": arguments.policy,
                "episodes": num_episodes,
                "frames": len(frames),
                "file": str(path),
            }
        )
        return
    print(f"wrote {path}: {len(frames)} frames of {num_episodes} episodes")


def film(env: TrialEnv, policy: str, episodes: int, steps: int | None, seed: int) -> tuple[list[np.ndarray], int]:
    """Pictures, uint8 (H, W, 3) each, and the number of episodes that they show, the last one perhaps in part."""
    rng = np.random.default_rng(seed)
    frames: list[np.ndarray] = []
    num_steps = 0
    for k in range(episodes):
        env.reset(seed=seed if k == 0 else None)
        frames.append(_picture(env))
        is_over = False
        while not is_over:
            if steps is not None and num_steps >= steps:
                return frames, k + 1
            _, _, terminated, truncated, _ = env.step(choose_action(env, policy, rng))
            frames.append(_picture(env))
            num_steps += 1
            is_over = terminated or truncated
    return frames, episodes


def _picture(env: TrialEnv) -> np.ndarray:
    picture = env.render()
    assert picture is not None, "render_mode is rgb_array"
    return picture


def _write_gif(frames: list[np.ndarray], path: Path, fps: float) -> None:
    from PIL import Image

    images = [Image.fromarray(frame).quantize(256, dither=Image.Dither.NONE) for frame in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / fps), loop=0)


def _write_mp4(frames: list[np.ndarray], path: Path, fps: float) -> None:
    height, width = (length - length % 2 for length in frames[0].shape[:2])  # the format wants even sizes
    with _imageio().get_writer(path, fps=fps, macro_block_size=2) as writer:
        for frame in frames:
            writer.append_data(frame[:height, :width])


def _imageio() -> Any:
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401  (the writer of mp4 needs it)
    except ImportError as error:
        raise ImportError(f"writing .mp4 needs {error.name}; install it with: pip install 'memenvs[video]'") from error
    return imageio
