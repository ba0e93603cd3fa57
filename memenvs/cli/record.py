"""`memenvs record`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.cli.common import as_user_error, begin, check_output, choose_action, environment_spec, make_env, print_json
from memenvs.core import TrialEnv
from memenvs.files import atomic_replace

#: Most pictures of a .gif unless told otherwise, its greatest width (pixels) and its colours: 500 steps in a home are some 5 MB.
GIF_FRAMES, GIF_WIDTH, GIF_COLOURS = 300, 512, 128


def run(arguments: argparse.Namespace) -> None:
    """Plays, and writes what `render` shows as a film."""
    row = environment_spec(arguments.id)
    path = check_output("--out", arguments.out, ".gif", ".mp4")
    if path.suffix.lower() == ".mp4":
        with as_user_error("--out", ImportError):
            _imageio()
    env = make_env(arguments, render_mode="rgb_array")
    most = GIF_FRAMES if arguments.frames is None and path.suffix.lower() == ".gif" else arguments.frames
    film = Film(env, most)
    num_episodes = play(env, arguments.policy, arguments.episodes, arguments.steps, arguments.seed, film)
    frames = film.frames()
    env.close()
    with as_user_error("--out", OSError), atomic_replace(path) as temporary:
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
    print(f"wrote {path}: {len(frames)} frames of {num_episodes} episode{'s' * (num_episodes > 1)}")


class Film:
    """Pictures of what `render` shows, evenly spread over the moments at which `see` was called, the first and the last among them.

    Args:
        env: In the single form, with pictures.
        most: Pictures to keep, >= 2: where there would be more, only those of every second, fourth, ... moment. None for all.
    """

    def __init__(self, env: TrialEnv, most: int | None = None) -> None:
        self._env, self._most = env, most
        self._frames: list[np.ndarray] = []
        self._every, self._moments = 1, 0

    def see(self) -> None:
        """Draws this moment, unless it is one that is left out."""
        if self._moments % self._every == 0:
            if len(self._frames) == self._most:
                self._frames, self._every = self._frames[::2], 2 * self._every
            if self._moments % self._every == 0:
                self._frames.append(self._picture())
        self._moments += 1

    def frames(self) -> list[np.ndarray]:
        """The pictures, uint8 (H, W, 3) each; to be asked for at the last moment."""
        if (self._moments - 1) % self._every == 0:
            return self._frames
        kept = self._frames[:-1] if len(self._frames) == self._most else self._frames
        return [*kept, self._picture()]

    def _picture(self) -> np.ndarray:
        picture = self._env.render()
        assert picture is not None, "render_mode is rgb_array"
        return picture


def play(env: TrialEnv, policy: str, episodes: int, steps: int | None, seed: int, film: Film) -> int:
    """Plays, with every moment on the film; returns the number of episodes begun. Ends early after so many `steps`, if there is a limit."""
    rng = np.random.default_rng(seed)
    num_steps = 0
    for k in range(episodes):
        begin(env, seed if k == 0 else None)
        film.see()
        is_over = False
        while not is_over:
            if steps is not None and num_steps >= steps:
                return k + 1
            _, _, terminated, truncated, _ = env.step(choose_action(env, policy, rng))
            film.see()
            num_steps += 1
            is_over = terminated or truncated
    return episodes


def _write_gif(frames: list[np.ndarray], path: Path, fps: float) -> None:
    """One palette for the whole film, so that what stays the same from one picture to the next need not be written again."""
    from PIL import Image

    height, width = frames[0].shape[:2]
    if width > GIF_WIDTH:
        size = GIF_WIDTH, max(1, round(height * GIF_WIDTH / width))
        frames = [np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS)) for frame in frames]
    sample = np.concatenate(frames[:: max(1, len(frames) // 16)])
    # an octree keeps colours that few pixels have, such as a marked goal; a median cut does not
    palette = Image.fromarray(sample).quantize(GIF_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
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
