"""Figures of attention on the map of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# colours of discs; none of the maps has them
_EARLIER = "#d61fb8"
_OWN = "#1f6fff"


def attention_figure(
    map_image: np.ndarray,
    pixels: np.ndarray,
    episodes: np.ndarray,
    panels: Sequence[tuple[str, np.ndarray]],
    columns: int,
    title: str,
) -> Figure:
    """Draw attention on the map, in one or more panels.

    Args:
        map_image: uint8, (H, W, 3); the map.
        pixels: float, (T, 2); column and row of each step on it.
        episodes: int64, (T,); the episode of each step.
        panels: Title, and attention to the first S steps, float, (S,), S <= T.
        columns: Number of panels side by side.
        title: Title of the figure.

    Returns:
        A figure with one disc per pixel that has steps, whose area is the attention to these. Attention to earlier
        episodes and to the episode of the last of the S steps has different colours.
    """
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.9 * rows), dpi=110, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (heading, mass) in zip(grid.flat, panels, strict=False):
        axes.imshow(map_image)
        axes.set_xlim(-0.5, map_image.shape[1] - 0.5)
        axes.set_ylim(map_image.shape[0] - 0.5, -0.5)
        axes.set_title(heading, fontsize=8)
        is_own = episodes[: len(mass)] == episodes[len(mass) - 1]
        for chosen, colour in ((~is_own, _EARLIER), (is_own, _OWN)):
            centres, index = np.unique(pixels[: len(mass)][chosen].round(), axis=0, return_inverse=True)
            share = np.bincount(index.ravel(), mass[chosen], len(centres))
            axes.scatter(*centres.T, s=900 * share, c=colour, alpha=0.7, linewidths=0)
    figure.suptitle(title, fontsize=8)
    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, alpha=0.7, label=label)
        for colour, label in ((_EARLIER, "attention to steps of earlier episodes"), (_OWN, "to steps of this episode"))
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def goals_figure(
    map_image: np.ndarray, pixels: np.ndarray, episodes: np.ndarray, goals: Mapping[str, np.ndarray]
) -> Figure:
    """Draw the attention of the head that depends on the goal most, one panel per goal.

    Each goal is shown in the observation after the trial, in place of the real one.

    Args:
        map_image: As in `attention_figure`.
        pixels: As there.
        episodes: As there.
        goals: Name of a goal -> float, (layers, heads, T); attention to the steps of the trial with this goal shown.
    """
    weights = np.stack(list(goals.values()))  # (goals, layers, heads, T)
    # total variation distance to the mean over goals, (layers, heads)
    change = 0.5 * np.abs(weights - weights.mean(0)).sum(-1).mean(0)
    layer, head = np.unravel_index(change.argmax(), change.shape)
    panels = [(f"goal {name}", attention[layer, head]) for name, attention in goals.items()]
    title = (
        f"attention after step {len(episodes)} for each goal shown,\n"
        f"of the head that depends on the goal most: layer {layer}, head {head};\n"
        f"{change[layer, head]:.1%} of its attention moves with the goal; the map is that of the last episode"
    )
    return attention_figure(map_image, pixels, episodes, panels, min(5, len(panels)), title)
