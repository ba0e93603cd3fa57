"""Draw homes from inside and from above for `docs/houses.md`, in 20 seconds.

Each room is seen from the navigable position in it that shows the most different objects.

    python docs/homes.py [--out docs/images] [--seeds 1000 1001 ...] [--smoke]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from memenvs.houses.house import House, points_in_polygon
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.rendering.topdown import draw_topdown, save_png
from memenvs.houses.ycb import place_objects

EYE = 1.4  # m above the floor
PITCH = -0.25  # rad
MIN_PIXELS = 15  # of an object that counts as visible, in 60 x 80


def best_view(house: House, room: int, rng: np.random.Generator, tries: int) -> tuple[np.ndarray, float]:
    """Find the pose in a room from which the most objects can be seen.

    Args:
        house: The house.
        room: Index of the room.
        rng: Draws positions and headings.
        tries: Largest number of poses to compare.

    Returns:
        Pose of the camera (x, y, z, heading, pitch; m and rad), and its score: the number of visible objects, minus 30
        times the share of pixels nearer than 0.7 m. Zeros if no drawn position is in the room.
    """
    navigation = NavigationMap(house)
    positions = navigation.random_points(rng, 40 * tries)
    positions = positions[points_in_polygon(positions, house.rooms[room].polygon)][:tries]
    if len(positions) == 0:
        return np.zeros(5), 0.0
    middle = house.rooms[room].polygon.mean(0)
    # Towards the centre of the room, up to 0.5 rad beside it.
    headings = np.arctan2(*(middle - positions).T[::-1]) + rng.uniform(-0.5, 0.5, len(positions))
    poses = np.column_stack([positions, np.full(len(positions), EYE), headings, np.full(len(positions), PITCH)])
    camera = Camera(height=60, width=80)
    renderer = Renderer(camera, len(positions))
    scene = Scene.from_house(house)
    for i in range(len(positions)):
        renderer.set_scene(i, scene)
    instance = np.zeros((len(positions), 60, 80), np.uint16)
    depth = np.zeros((len(positions), 60, 80, 1), np.float32)
    renderer.render(poses, instance=instance, depth=depth)
    seen = [sum((image == k).sum() >= MIN_PIXELS for k in np.unique(image) if k) for image in instance]
    near = (depth[..., 0] < 0.7).mean((1, 2))  # a view into a cupboard shows nothing
    scores = np.array(seen) - 30.0 * near
    return poses[scores.argmax()], float(scores.max())


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("docs/images"), help="folder of the pictures (default %(default)s)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1000, 1002, 1004, 1005], help="homes (default 1000 1002 1004 1005)"
    )
    parser.add_argument("--smoke", action="store_true", help="one home, few tries")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    best: dict[str, tuple[float, House, np.ndarray]] = {}  # type of room -> score, house, pose
    for seed in options.seeds[: 1 if options.smoke else None]:
        house, _ = place_objects(procedural_house(seed), rng)
        for number, room in enumerate(house.rooms):
            pose, score = best_view(house, number, rng, 4 if options.smoke else 24)
            if score > best.get(room.type, (0.0,))[0]:
                best[room.type] = (score, house, pose)
        save_png(draw_topdown(house, pixels_per_metre=40.0), options.out / f"map_{seed}.png")
    camera = Camera(height=240, width=320)
    for room_type, (_, house, pose) in best.items():
        renderer = Renderer(camera, 1)
        renderer.set_scene(0, Scene.from_house(house))
        image = np.zeros((1, 240, 320, 3), np.uint8)
        renderer.render(pose[None], rgb=image)
        save_png(image[0], options.out / f"{room_type}.png")
        print(f"{options.out / room_type}.png: {house.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
