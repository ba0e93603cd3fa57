"""Images for people: a map of the home with the robot's path, and the view of the robot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memenvs.houses.house import House
from memenvs.houses.rendering.topdown import Marker, draw_topdown

#: Side of the view, and of the square that the map beside it is fitted into; pixels.
VIEW_SIDE = 384
#: Colour of goals on maps, sRGB.
GOAL_COLOUR = (236, 170, 20)
_HEADING_COLOUR = (30, 30, 34)
_BACKGROUND = 250
_MARGIN = 0.3  # m; empty rim around the home


@dataclass(frozen=True, eq=False)
class MapOverlay:
    """Additions to a map of a home and a path.

    Attributes:
        squares: float, (K, 3); squares to tint: x and y of the centre and the side, m.
        crosses: float, (K, 2); points to cross, m.
        markers: Points of interest.
    """

    squares: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    crosses: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    markers: tuple[Marker, ...] = ()


def goal_overlay(goals: np.ndarray) -> MapOverlay:
    """A disc at each goal; `goals` is float, (G, 2), m."""
    return MapOverlay(markers=tuple(Marker((goal[0], goal[1]), GOAL_COLOUR, radius=0.18) for goal in goals.tolist()))


def draw_house_map(house: House, path: np.ndarray, overlay: MapOverlay, *, pixels_per_metre: float) -> np.ndarray:
    """Draw a home from above with a robot's path and its last heading.

    Args:
        house: The home with its objects.
        path: float, (T, 3); x, y (m) and heading (rad) step by step; T >= 1.
        overlay: Goals and the like.
        pixels_per_metre: Scale.

    Returns:
        uint8, (H, W, 3).
    """
    x, y, heading = path[-1].tolist()
    ahead = Marker((x + 0.35 * np.cos(heading), y + 0.35 * np.sin(heading)), _HEADING_COLOUR, radius=0.07)
    return draw_topdown(
        house,
        pixels_per_metre=pixels_per_metre,
        paths=[path],
        markers=[*overlay.markers, ahead],
        squares=overlay.squares,
        crosses=overlay.crosses,
        margin=_MARGIN,
        has_labels=False,
    )


def house_map_pixels(house: House, points: np.ndarray, *, pixels_per_metre: float) -> np.ndarray:
    """Convert points to columns and rows of the image of `draw_house_map`.

    Args:
        house: The home.
        points: float, (Q, 2) or more columns; x and y, m.
        pixels_per_metre: Scale of the image.

    Returns:
        float, (Q, 2); column and row.
    """
    low, high = house.bounds
    x, y = np.asarray(points, np.float64)[:, :2].T
    return np.stack([x - low[0] + _MARGIN, high[1] + _MARGIN - y], 1) * pixels_per_metre


def draw_view_and_map(view: np.ndarray, house: House, path: np.ndarray, overlay: MapOverlay) -> np.ndarray:
    """Put a view and, to its right, the map of `draw_house_map` into one image.

    Args:
        view: uint8, (384, 384, 3).
        house: As in `draw_house_map`.
        path: As in `draw_house_map`.
        overlay: As in `draw_house_map`.

    Returns:
        uint8, (384, 768, 3).
    """
    low, high = house.bounds
    scale = VIEW_SIDE / (float(np.max(high - low)) + 2 * _MARGIN)
    house_map = draw_house_map(house, path, overlay, pixels_per_metre=scale)
    house_map = house_map[:VIEW_SIDE, :VIEW_SIDE]  # rounding may have added a pixel
    image = np.full((VIEW_SIDE, 2 * VIEW_SIDE, 3), _BACKGROUND, np.uint8)
    image[:, :VIEW_SIDE] = view
    top = (VIEW_SIDE - house_map.shape[0]) // 2
    left = VIEW_SIDE + (VIEW_SIDE - house_map.shape[1]) // 2
    image[top : top + house_map.shape[0], left : left + house_map.shape[1]] = house_map
    return image
