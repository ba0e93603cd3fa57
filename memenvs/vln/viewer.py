"""Draw episodes: graph, annotated path, the agent's path, instruction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from memenvs.vln.graph import Graph

#: Side of a map, pixels.
SIDE = 512
#: Height of the text under a map, pixels.
TEXT_HEIGHT = 128
_MARGIN = 24  # pixels; around the graph
_FONT_SIZES = (12, 11, 10, 9, 8)  # pixels; 8 can just be read
_SUPERSAMPLE = 2  # drawn larger by this factor, then reduced
# Colours, sRGB.
_PAPER = (250, 249, 246)
_INK = (52, 52, 58)
_EDGE = (205, 204, 200)
_NODE = (150, 150, 155)
_REFERENCE = (66, 133, 214)  # the annotated path
_START = (34, 160, 84)
_GOAL = (214, 48, 49)
_AGENT = (240, 150, 20)  # the agent's path


def map_pixels(graph: Graph, points: np.ndarray) -> np.ndarray:
    """Column and row, float64 (T, 2), of positions, (T, >= 2), m, on a map of `draw_map`."""
    low, high = graph.position[:, :2].min(0), graph.position[:, :2].max(0)
    scale = (SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-6)
    middle = (np.asarray(points, np.float64)[:, :2] - (low + high) / 2) * (scale, -scale)
    return middle + SIDE / 2


def draw_map(graph: Graph, reference: Sequence[int], goals: Sequence[int], path: np.ndarray) -> np.ndarray:
    """Draw a graph from above: edges, annotated path (blue, wide), agent's path (orange).

    +x is right, +y is up.

    Args:
        graph: The house.
        reference: Nodes of the annotated path; its first one gets a green ring.
        goals: Nodes with a red ring.
        path: float, (T, >= 2); positions step by step, m; the last one gets a disc.

    Returns:
        uint8, (512, 512, 3).
    """
    image = Image.new("RGB", (SIDE * _SUPERSAMPLE, SIDE * _SUPERSAMPLE), _PAPER)
    draw = ImageDraw.Draw(image)
    node_pixels = [(x, y) for x, y in (map_pixels(graph, graph.position) * _SUPERSAMPLE).tolist()]
    path_pixels = [(x, y) for x, y in (map_pixels(graph, path) * _SUPERSAMPLE).tolist()]

    def ring(centre: tuple[float, float], radius: float, colour: tuple[int, int, int], *, filled: bool = False) -> None:
        r = radius * _SUPERSAMPLE
        box = (centre[0] - r, centre[1] - r, centre[0] + r, centre[1] + r)
        draw.ellipse(box, fill=colour if filled else None, outline=colour, width=2 * _SUPERSAMPLE)

    for u, v in graph.edges.tolist():
        draw.line([node_pixels[u], node_pixels[v]], _EDGE, _SUPERSAMPLE)
    for node in node_pixels:
        ring(node, 1.5, _NODE, filled=True)
    draw.line([node_pixels[k] for k in reference], _REFERENCE, 6 * _SUPERSAMPLE, joint="curve")
    draw.line(path_pixels, _AGENT, 3 * _SUPERSAMPLE, joint="curve")
    ring(node_pixels[reference[0]], 6, _START)
    for goal in goals:
        ring(node_pixels[goal], 8, _GOAL)
    ring(path_pixels[-1], 4, _AGENT, filled=True)
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def draw_text(text: str) -> np.ndarray:
    """Draw a text, smaller if it is longer, cut if there is no room; uint8, (128, 512, 3)."""
    image = Image.new("RGB", (SIDE, TEXT_HEIGHT), _PAPER)
    for size in _FONT_SIZES:
        font, max_lines = ImageFont.load_default(size), (TEXT_HEIGHT - 8) // (size + 2)
        lines = _wrapped(text, font)
        if len(lines) <= max_lines:
            break
    else:
        lines = [*lines[: max_lines - 1], lines[max_lines - 1] + " ..."]
    ImageDraw.Draw(image).multiline_text((8, 4), "\n".join(lines), _INK, font, spacing=2)
    return np.asarray(image)


def _wrapped(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> list[str]:
    """Wrap a text into lines as wide as a map, with room for an ellipsis."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > SIDE - 24:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
