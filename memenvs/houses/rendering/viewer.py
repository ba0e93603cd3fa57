"""What people look at: a map of the home, and the robot's view beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memenvs.houses.house import House
from memenvs.houses.rendering.topdown import Marker, draw_topdown

#: Sides of the view and of the square that the map beside it is fitted into, pixels.
VIEW_SIDE = 384
_BACKGROUND = 250
_MARGIN = 0.3  # m; around the home
#: Colour of goals.
GOAL_COLOUR = (236, 170, 20)
_LOOKS_AT = (30, 30, 34)


@dataclass(frozen=True, eq=False)
class MapOverlay:
    """What else a plan shows.

    Attributes:
        squares: float, (K, 3); squares to tint, x and y of the middle and the side, m.
        crosses: float, (K, 2); points to cross, m.
        markers: Points of interest.
    """

    squares: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    crosses: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    markers: tuple[Marker, ...] = ()


def goal_overlay(goals: np.ndarray) -> MapOverlay:
    """A disc at each goal, float (G, 2), m."""
    return MapOverlay(markers=tuple(Marker((goal[0], goal[1]), GOAL_COLOUR, radius=0.18) for goal in goals.tolist()))


def draw_house_map(house: House, way: np.ndarray, traces: MapOverlay, *, pixels_per_metre: float) -> np.ndarray:
    """A home from above with a way through it, where the robot looks at its end, and what else there is to see.

    Args:
        house: The home with its things.
        way: float, (T, 3); x, y (m) and heading (rad) step by step; T >= 1.
        traces: The goals and the like.
        pixels_per_metre: Scale.

    Returns:
        uint8, (H, W, 3).
    """
    x, y, heading = way[-1].tolist()
    ahead = Marker((x + 0.35 * np.cos(heading), y + 0.35 * np.sin(heading)), _LOOKS_AT, radius=0.07)
    return draw_topdown(
        house,
        pixels_per_metre=pixels_per_metre,
        trajectories=[way],
        markers=[*traces.markers, ahead],
        squares=traces.squares,
        crosses=traces.crosses,
        margin=_MARGIN,
        has_labels=False,
    )


def house_map_pixels(house: House, points: np.ndarray, *, pixels_per_metre: float) -> np.ndarray:
    """Column and row, float (Q, 2), of points (Q, 2) or more columns, m, on a picture of `draw_house_map`."""
    low, high = house.bounds
    x, y = np.asarray(points, np.float64)[:, :2].T
    return np.stack([x - low[0] + _MARGIN, high[1] + _MARGIN - y], 1) * pixels_per_metre


def draw_view_and_map(view: np.ndarray, house: House, way: np.ndarray, traces: MapOverlay) -> np.ndarray:
    """The view, uint8 (384, 384, 3), and right of it the plan (see `draw_house_map`). Returns uint8, (384, 768, 3)."""
    low, high = house.bounds
    plan = draw_house_map(house, way, traces, pixels_per_metre=VIEW_SIDE / (float(np.max(high - low)) + 2 * _MARGIN))
    plan = plan[:VIEW_SIDE, :VIEW_SIDE]  # rounding may have added a pixel
    picture = np.full((VIEW_SIDE, 2 * VIEW_SIDE, 3), _BACKGROUND, np.uint8)
    picture[:, :VIEW_SIDE] = view
    top, left = (VIEW_SIDE - plan.shape[0]) // 2, VIEW_SIDE + (VIEW_SIDE - plan.shape[1]) // 2
    picture[top : top + plan.shape[0], left : left + plan.shape[1]] = plan
    return picture
