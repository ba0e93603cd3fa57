"""Frames of a video with a line of text above them."""

from __future__ import annotations

from typing import Any

import numpy as np

BAR = 28
"""Height of the bar with the text, pixels; of wider frames more, since a .gif shrinks them to `FULL_WIDTH`."""
MIN_WIDTH = 320
"""Smaller frames are enlarged by a whole number to this width or more, so that the text fits."""
FULL_WIDTH = 512
"""Width that a .gif has at most, pixels."""
WIDE = 480
"""Pixels from which on the text is larger."""


def add_caption(frame: np.ndarray, text: str) -> np.ndarray:
    """Draw a line of text on a bar above a frame; frames of consecutive steps then differ.

    Args:
        frame: uint8, (H, W, 3).
        text: The line.

    Returns:
        uint8, (H + bar, W, 3); H and W of the enlarged frame.
    """
    from PIL import Image, ImageDraw, ImageFont

    scale = -(-MIN_WIDTH // frame.shape[1])
    large = Image.fromarray(frame.repeat(scale, 0).repeat(scale, 1))
    factor = max(1.0, large.width / FULL_WIDTH)
    bar = round(BAR * factor)
    canvas = Image.new("RGB", (large.width, large.height + bar), "black")
    canvas.paste(large, (0, bar))
    font = ImageFont.load_default((16 if large.width >= WIDE else 12) * factor)
    ImageDraw.Draw(canvas).text((8 * factor, bar // 2), text, "white", font, anchor="lm")
    return np.asarray(canvas)


def episode_title(goal: Any, names: Any, episode: int) -> str:
    """Name the goal of an episode, if there is one, and its number.

    Args:
        goal: `info["goal"]`, None without one.
        names: `goal_names` of the task: number of the goal -> name; empty where goals are places.
        episode: Number of the episode, from 1.
    """
    text = ""
    if goal is not None:
        text = f"goal: {names.get(int(goal)) if names else np.asarray(goal).tolist()}   "
    return f"{text}episode {episode}   "
