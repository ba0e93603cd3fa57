"""The robot's view in an early and in a late episode of a trial, side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
from PIL import Image

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.evaluate import evaluation_env
from memenvs.agents.experiments.play import play_trials
from memenvs.agents.experiments.video import episode_heading
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.cli.caption import add_caption
from memenvs.houses.rendering.viewer import VIEW_SIDE

#: White columns between two views.
_GAP = 8
#: Lossy compression, 0 to 100: a trial takes some hundred kilobytes.
_QUALITY = 50


def first_person_frames(
    policy: ActingPolicy, config: RunConfig, *, seed: int = 1, episodes: Sequence[int] = (1, 10)
) -> list[np.ndarray]:
    """Play a trial of ExtObjNav and put the robot's view in some of its episodes side by side.

    Goal, episode and step are written above each view. An episode that has ended keeps its last view, with how it ended
    above it. The views are drawn for people: they are square, and larger than the images that the policy observes.

    Args:
        policy: The policy.
        config: Settings of its run.
        seed: Seed of the evaluation environment.
        episodes: Numbers of the episodes, from 1, ascending.

    Returns:
        A frame for each step of the longest of these episodes, uint8, (H, W, 3).
    """
    env = evaluation_env(replace(config, eval_kwargs={**config.eval_kwargs, "render_mode": "rgb_array"}), 1, seed)

    def view(text: str) -> np.ndarray:
        (frame,) = env.unwrapped.get_images()
        return add_caption(np.asarray(frame)[:, :VIEW_SIDE], text)

    columns: list[list[np.ndarray]] = []
    try:
        policy.check_env(env)
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
    finally:
        env.close()
    ends = [column[-1] for column in columns]
    gap = np.full((len(ends[0]), _GAP, 3), 255, np.uint8)
    frames = []
    for row in zip_longest(*columns):
        pictures = [end if picture is None else picture for picture, end in zip(row, ends, strict=True)]
        frames.append(np.concatenate([part for picture in pictures for part in (picture, gap)][:-1], 1))
    return frames


def animated_webp(frames: Sequence[np.ndarray], *, width: int = 480, milliseconds: int = 250) -> bytes:
    """Encode frames as an animated WebP that is repeated without end.

    Args:
        frames: uint8, (H, W, 3) each; at least one.
        width: Width of the animation, pixels.
        milliseconds: Time of each frame but the last one, which stays for two seconds.

    Returns:
        Content of the file.
    """
    images = [Image.fromarray(frame) for frame in frames]
    size = width, round(images[0].height * width / images[0].width)
    images = [image.resize(size, Image.Resampling.LANCZOS) for image in images]
    durations = [milliseconds] * (len(images) - 1) + [2000]  # the end is worth a glance
    buffer = io.BytesIO()
    settings: dict[str, Any] = {"duration": durations, "loop": 0, "quality": _QUALITY, "method": 6}
    images[0].save(buffer, "webp", save_all=True, append_images=images[1:], **settings)
    return buffer.getvalue()
