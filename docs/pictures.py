"""Make the animated pictures of the README: an agent's, then oracles'; four minutes.

Each picture has a seed, so the same versions of the packages write the same bytes. Prints the size of each.

    python docs/pictures.py [NAME ...] [--out docs/images] [--table]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

import memenvs  # noqa: F401  (registers the ids)
from memenvs.cli.caption import add_caption
from memenvs.cli.record import Video
from memenvs.files import atomic_replace
from memenvs.houses.rendering.viewer import VIEW_SIDE
from memenvs.registry import find_environment

#: Lossy compression, 0 to 100: fine lines of maps stay sharp, and all pictures take less than 3 MB.
QUALITY = 60
COLUMNS = 3
#: The first picture: what the agent of the package sees, and the seed of its trial, which was chosen.
AGENT_PICTURE, AGENT, AGENT_SEED = "agent", "extobjnav-small-pictures", 57
AGENT_QUALITY = 50


@dataclass(frozen=True)
class Picture:
    """An animated picture of one environment.

    Attributes:
        name: Id without its namespace; the file is `NAME.webp`.
        frames: Most frames.
        fps: Frames a second.
        width: Of the picture, in pixels.
        episodes: Episodes of the trial.
        steps: Steps after which it stops; None for whole episodes.
        skip: Steps that are left out at the beginning.
        seed: Of the trial.
        settings: Of the environment.
    """

    name: str
    frames: int = 80
    fps: float = 10.0
    width: int = 480
    episodes: int = 1
    steps: int | None = None
    skip: int = 0
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)


PICTURES = {
    picture.name: picture
    for picture in (
        Picture("ExtObjNav-v0", episodes=3, seed=6, settings={"split": "validation"}),
        Picture("Search-v0", steps=240, seed=7, settings={"split": "test"}),
        Picture("Coverage-v0", steps=240, seed=4, settings={"split": "test"}),
        Picture("Roaming-v0", steps=120, seed=2, settings={"split": "test"}),
        Picture("FourBoxes-v0", episodes=3, settings={"max_episode_steps": 16}),
        Picture("RoomBallet-LVFO-v0", frames=110, skip=480),
        Picture("FFHQWorld-v0", frames=73, seed=9),
        Picture("EpisodicQA-v0", fps=4, seed=1, settings={"lengths": 5, "frames_per_step": 2, "answer_mode": "tokens"}),
        Picture("Ballet3D-v0", frames=64),
        Picture("VisualMatch-v0", frames=64),
        Picture("TwoRooms-v0", frames=64),
        Picture("ColorRecall-v0", frames=64),
        Picture("VLN-R2R-v0", fps=1.5, seed=2, settings={"split": "val_unseen"}),
        Picture("VLN-CVDN-v0", fps=1.5, seed=4, settings={"split": "val_unseen"}),
        Picture("Darkroom-v0", episodes=4, settings={"max_episode_steps": 16}),
    )
}

ALL = (AGENT_PICTURE, *PICTURES)


def play(picture: Picture) -> list[np.ndarray]:
    """Let the oracle play, and return frames evenly spaced in time, uint8 (H, W, 3) each."""
    env = gym.make(find_environment(picture.name).id, render_mode="rgb_array", **picture.settings).unwrapped
    video = Video(env.render, picture.frames)
    steps = 0
    for episode in range(picture.episodes):
        env.reset(seed=picture.seed if episode == 0 else None)
        over = False
        while True:
            if steps >= picture.skip:
                video.capture()
            if over or steps == picture.steps:
                break
            _, _, terminated, truncated, _ = env.step(env.oracle_action())
            over = terminated or truncated
            steps += 1
        if steps == picture.steps:
            break
    frames = video.frames()
    env.close()
    return frames


def make_picture(picture: Picture, folder: Path) -> Path:
    """Write the frames of an episode as an animated WebP that never ends."""
    path = folder / f"{picture.name}.webp"
    frames = [resized(frame, picture.width) for frame in play(picture)]
    write_animation(frames, path, round(1000 / picture.fps), 1500, QUALITY)
    return path


def write_animation(images: Sequence[Image.Image], path: Path, duration: int, last: int, quality: int) -> None:
    """Write an animated WebP.

    Args:
        images: The frames.
        path: The file.
        duration: Time of a frame, ms.
        last: Time of the last one, ms; the end is worth a glance.
        quality: Of the lossy compression, 0 to 100.
    """
    durations = [duration] * (len(images) - 1) + [last]
    settings: dict[str, Any] = {"duration": durations, "loop": 0, "quality": quality, "method": 6}
    with atomic_replace(path) as temporary:
        images[0].save(temporary, "webp", save_all=True, append_images=images[1:], **settings)


def make_agent_picture(folder: Path) -> Path:
    """Write what the agent of the package sees in the first and in the tenth episode of a trial."""
    frames = agent_views()
    path = folder / f"{AGENT_PICTURE}.webp"
    write_animation([resized(frame, 480) for frame in frames[::2] + frames[-1:]], path, 250, 2000, AGENT_QUALITY)
    return path


def agent_views(episodes: Sequence[int] = (1, 10)) -> list[np.ndarray]:
    """Play a trial of the agent and put the robot's view in some of its episodes side by side.

    Goal, episode and step are written above each view. An episode that has ended keeps its last view, with how it ended
    above it.

    Args:
        episodes: Numbers of the episodes, from 1, ascending.

    Returns:
        A frame for each step of the longest of these episodes, uint8, (H, W, 3).
    """
    from memenvs.agents.experiments.evaluate import evaluation_env
    from memenvs.agents.experiments.play import play_trials
    from memenvs.agents.experiments.video import episode_heading
    from memenvs.agents.presets.pretrained import load_pretrained, pretrained_config

    policy, config = load_pretrained(AGENT, device="cpu"), pretrained_config(AGENT)
    config = replace(config, eval_kwargs={**config.eval_kwargs, "render_mode": "rgb_array"})
    env = evaluation_env(config, 1, AGENT_SEED)

    def view(text: str) -> np.ndarray:
        (frame,) = env.unwrapped.get_images()
        return add_caption(np.asarray(frame)[:, :VIEW_SIDE], text)

    columns: list[list[np.ndarray]] = []
    observation = env.reset()
    number, length = 1, 0
    title = episode_heading(env, 1)
    views = [view(f"{title}step 0")]
    for step in play_trials(policy, env, observation, deterministic=config.kind.deterministic):
        length += 1
        if step.dones[0]:
            end = "found in" if step.infos[0]["success"] else "not found in"
            if number in episodes:
                bar = add_caption(np.zeros((VIEW_SIDE, VIEW_SIDE, 3), np.uint8), f"{title}{end} {length} steps")
                last = views[-1].copy()  # the environment has begun the next episode
                last[:-VIEW_SIDE] = bar[:-VIEW_SIDE]
                columns.append([*views, last])
            number, length, views = number + 1, 0, []
            if number > max(episodes):
                break
        if number in episodes:
            title = episode_heading(env, number)
            views.append(view(f"{title}step {length}"))
    env.close()
    ends = [column[-1] for column in columns]
    gap = np.full((len(ends[0]), 8, 3), 255, np.uint8)  # white columns between two views
    frames = []
    for row in zip_longest(*columns):
        pictures = [end if picture is None else picture for picture, end in zip(row, ends, strict=True)]
        frames.append(np.concatenate([part for picture in pictures for part in (picture, gap)][:-1], 1))
    return frames


def resized(frame: np.ndarray, width: int) -> Image.Image:
    """The frame at a width in pixels."""
    image = Image.fromarray(frame)
    return image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)


def markdown_table(folder: str) -> str:
    """Format the pictures as the table of the README, with ids and what must be remembered."""
    cells = []
    for name in PICTURES:
        spec = find_environment(name)
        cells.append((f"![{name}]({folder}/{name}.webp)", f"`{spec.id}`: {spec.remembers}"))
    cells += [("", "")] * (-len(cells) % COLUMNS)
    lines = ["|" + " |" * COLUMNS, "|" + "---|" * COLUMNS]
    for first in range(0, len(cells), COLUMNS):
        for row in zip(*cells[first : first + COLUMNS], strict=True):
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def main() -> int:
    """Make the pictures that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)} (default all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("images"), help="folder of the pictures")
    parser.add_argument("--table", action="store_true", help="print the table of the README and make nothing")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        parser.error(f"unknown {unknown[0]!r}; choose from {', '.join(ALL)}")
    if options.table:
        print(markdown_table("docs/images"))
        return 0
    total = 0
    for name in options.names or ALL:
        path = make_agent_picture(options.out) if name == AGENT_PICTURE else make_picture(PICTURES[name], options.out)
        total += path.stat().st_size
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB", flush=True)
    print(f"together {total / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
