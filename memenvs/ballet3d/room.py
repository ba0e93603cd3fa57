"""The room of Ballet3D: pictures from our renderer.

The room extends from (-5, -5) to (5, 5) m and has no ceiling. The robot stands in its centre.
"""

from __future__ import annotations

import numpy as np

from memenvs.ballet3d.episodes import BACK, COLOURS, NUM_DANCERS, POSITIONS, REST, SHAPES, WALL_HEADINGS_DEG
from memenvs.box_rooms.room import (
    HEIGHT,
    RoomBuilder,
    camera_poses,
    make_camera,
    rendered_heights,
    rendered_positions,
    rendered_scene,
)
from memenvs.houses.house import Colour, House
from memenvs.houses.rendering.renderer import Renderer, render_frame
from memenvs.houses.rendering.scene import BLUE, RED, Z0, Z1, Scene, X, Y

#: Rows and columns of pictures, and of pictures for people.
VIEW_SIZE = (84, 84)
LARGE_SIZE = (384, 384)
#: Half of the room's side, height of the walls, distance of dancers from the middle, and their size; m.
HALF_SIDE = 5.0
WALL_HEIGHT = HEIGHT * 2 / 3
STAGE_DISTANCE = 4.5
DANCER_SIZE = 0.9
# Colours are as bright in our light as Miniworld's (walls of cardboard, a floor of asphalt) are in its light. Walls and
# sky are in the order of `RoomBuilder.add_room`.
_WALLS: tuple[Colour, ...] = ((182, 152, 105), (171, 142, 98), (189, 157, 109), (164, 136, 95))
_FLOOR: tuple[str, Colour] = ("plain", (112, 114, 115))
_SKY: Colour = (64, 209, 255)
_SKY_GAINS = np.array([1.147, 1.389, 1.188, 1.332])  # the sky needs no light, so our light is taken out again
_BOX_COLOURS: tuple[Colour, ...] = (
    (245, 0, 0),
    (0, 245, 0),
    (0, 0, 245),
    (112, 38, 194),
    (245, 245, 0),
    (99, 99, 99),
)
_BALL_COLOURS: tuple[Colour, ...] = (
    (255, 0, 0),
    (0, 255, 0),
    (0, 0, 255),
    (185, 68, 243),
    (255, 255, 0),
    (167, 167, 167),
)
_BATCH = 64  # pictures that the renderer draws at once


def make_house(dancers: np.ndarray, places: np.ndarray) -> House:
    """Make the room with dancers as a house; instances 1, 2, ... are the dancers.

    Args:
        dancers: int, (K,); numbers of dancers.
        places: float, (K, 3); x, y and height of each, m.
    """
    builder = RoomBuilder("ballet in 3D")
    builder.add_room(
        (-HALF_SIDE, -HALF_SIDE),
        (HALF_SIDE, HALF_SIDE),
        walls=_WALLS,
        wall_material="plain",
        floor=_FLOOR,
        height=WALL_HEIGHT,
        sky=(_SKY,) * 4,
    )
    for dancer, (x, y, height) in zip(dancers.tolist(), places.tolist(), strict=True):
        shape, colour = divmod(dancer, len(COLOURS))
        if SHAPES[shape] == "box":
            builder.add_box(dancer_name(dancer), (x, y), _BOX_COLOURS[colour], DANCER_SIZE, height)
        else:
            builder.add_ball(dancer_name(dancer), (x, y), _BALL_COLOURS[colour], DANCER_SIZE, height)
    return builder.build()


def dancer_name(dancer: int) -> str:
    """Return the name of a dancer, such as "red box"."""
    shape, colour = divmod(dancer, len(COLOURS))
    return f"{COLOURS[colour]} {SHAPES[shape]}"


def stage_places(position: np.ndarray) -> np.ndarray:
    """Convert positions of dancers before the four walls to places in the room.

    Args:
        position: int, (..., 4); rows of `POSITIONS`, in the order of `WALLS`.

    Returns:
        float64, (..., 4, 3); x, y and height, m.
    """
    heading = np.radians(WALL_HEADINGS_DEG)
    ahead, right = (
        np.column_stack(pair) for pair in ((np.cos(heading), np.sin(heading)), (np.sin(heading), -np.cos(heading)))
    )
    height, shift = np.moveaxis(POSITIONS[position].astype(np.float64), -1, 0)
    return np.concatenate([STAGE_DISTANCE * ahead + shift[..., None] * right, height[..., None]], -1)


class DanceRoom:
    """Draws what the robot sees from the centre of the room.

    Args:
        threads: Rendering threads; pictures do not depend on it.
    """

    def __init__(self, *, threads: int = 1) -> None:
        self._scene = _full_scene()
        self._renderer = Renderer(make_camera(*VIEW_SIZE), _BATCH, threads=threads)

    def draw(self, heading: np.ndarray, dancer: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Draw pictures.

        Args:
            heading: float, (K,); rad.
            dancer: int, (K, 4); the dancer before each wall, in the order of `WALLS`.
            position: int, (K, 4); rows of `POSITIONS`.

        Returns:
            uint8, (K, 84, 84, 3).
        """
        out = np.empty((len(heading), *VIEW_SIZE, 3), np.uint8)
        block = np.empty((_BATCH, *VIEW_SIZE, 3), np.uint8)
        scenes = _with_dancers(self._scene, dancer, stage_places(position))
        poses = np.zeros((_BATCH, 3))
        for start in range(0, len(heading), _BATCH):
            count = min(_BATCH, len(heading) - start)
            for k in range(count):
                self._renderer.set_scene(k, scenes[start + k])
            poses[:count, 2] = heading[start : start + count]
            self._renderer.render(camera_poses(poses), rgb=block, env_mask=np.arange(_BATCH) < count)
            out[start : start + count] = block[:count]
        return out

    def draw_large(self, heading: float, dancer: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Draw one picture for people, uint8 (384, 384, 3).

        Arguments are those of `draw`, without their first axis.
        """
        (scene,) = _with_dancers(self._scene, dancer[None], stage_places(position)[None])
        pose = camera_poses(np.array([[0.0, 0.0, heading]]))[0]
        return render_frame(scene, make_camera(*LARGE_SIZE), pose.tolist()).rgb

    def close(self) -> None:
        """Stop the rendering threads; they start again when needed."""
        self._renderer.close()


def _full_scene() -> Scene:
    """The room with each dancer once; `_with_dancers` selects and places them."""
    places = np.tile(stage_places(np.full(4, REST))[BACK], (NUM_DANCERS, 1))
    scene = rendered_scene(make_house(np.arange(NUM_DANCERS), places))
    scene.geometry[4:8, RED : BLUE + 1] *= _SKY_GAINS[:, None]  # after the four walls
    return scene


def _with_dancers(scene: Scene, dancer: np.ndarray, places: np.ndarray) -> list[Scene]:
    """Select and place the dancers of a scene of `_full_scene`, for K pictures.

    Args:
        scene: The scene.
        dancer: int, (K, 4).
        places: float64, (K, 4, 3); x, y and height, m.
    """
    first, end = scene.num_shapes - NUM_DANCERS, scene.num_shapes
    count = dancer.shape[1]
    kept = np.r_[np.arange(first), np.full(count, first), np.arange(end, len(scene.geometry))]
    rows = np.tile(kept, (len(dancer), 1))
    rows[:, first : first + count] += dancer
    geometry, attributes = scene.geometry[rows], scene.attributes[rows]
    on_stage = geometry[:, first : first + count]
    on_stage[..., [X, Y]] = rendered_positions(places[..., :2].reshape(-1, 2)).reshape(-1, count, 2)
    on_stage[..., Z0] = rendered_heights(places[..., 2])
    on_stage[..., Z1] = on_stage[..., Z0] + rendered_heights(np.array(DANCER_SIZE))
    fields = vars(scene) | {"num_shapes": first + count}
    return [
        Scene(**fields | {"geometry": one, "attributes": other})
        for one, other in zip(geometry, attributes, strict=True)
    ]
