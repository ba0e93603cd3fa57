"""Images of exploration for people: the view of the robot, and the legend of maps."""

from __future__ import annotations

import numpy as np

from memenvs.exploration.carmine import HFOV_DEG
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.topdown import Marker
from memenvs.houses.rendering.viewer import VIEW_SIDE
from memenvs.houses.simulator import Simulator

#: Scale of maps, pixels per metre.
MAP_SCALE = 40.0
_BORDER_GREY = 250

#: Symbol and meaning of each entry of a legend; see `memenvs.houses.rendering.topdown.draw_legend`.
Legend = list[tuple[str | Marker, str]]
LEGEND: Legend = [("path", "first to last step"), ("cross", "collision")]
LEGEND_OF_CELLS: Legend = [("square", "cell entered")]


def render_view(sim: Simulator, i: int) -> np.ndarray:
    """Render the view of one robot, with a border that makes it square.

    Args:
        sim: The robots.
        i: Index of the robot.

    Returns:
        uint8, (384, 384, 3).
    """
    height = VIEW_SIDE * 3 // 4
    images = np.zeros((sim.num_robots, height, VIEW_SIDE, 3), np.uint8)
    camera = Camera(height=height, width=VIEW_SIDE, hfov_deg=HFOV_DEG)
    sim.render(np.arange(sim.num_robots) == i, {"rgb": images}, camera=camera)
    view = np.full((VIEW_SIDE, VIEW_SIDE, 3), _BORDER_GREY, np.uint8)
    top = (VIEW_SIDE - height) // 2
    view[top : top + height] = images[i]
    return view
