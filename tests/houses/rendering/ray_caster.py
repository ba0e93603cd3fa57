"""An independent, slow renderer for tests: every ray against every solid, in float64."""

import numpy as np

from memenvs.houses.classes import CLASS_INDEX
from memenvs.houses.house import BOX, ELLIPSOID, House, points_in_polygon
from memenvs.houses.rendering.camera import Camera


def pixel_rays(camera: Camera, heading: float, pitch: float, shift: tuple[float, float]) -> np.ndarray:
    """Rays (H * W, 3) of depth 1; `shift` (columns, rows) moves them off the pixels' centres."""
    factor = 1 if camera.sample_of is None else camera.sample_of[1] // camera.width
    width, height = camera.width * factor, camera.height * factor
    focal = width / 2 / np.tan(np.radians(camera.hfov_deg) / 2)
    columns, rows = np.meshgrid(np.arange(camera.width), np.arange(camera.height))
    right = ((columns + shift[0]) * factor + 0.5 - width / 2) / focal
    down = ((rows + shift[1]) * factor + 0.5 - height / 2) / focal
    forward = np.array([np.cos(heading) * np.cos(pitch), np.sin(heading) * np.cos(pitch), np.sin(pitch)])
    to_right = np.array([np.cos(heading - np.pi / 2), np.sin(heading - np.pi / 2), 0.0])
    upward = np.cross(to_right, forward)
    return (forward + right[..., None] * to_right - down[..., None] * upward).reshape(-1, 3)


def _enter_solid(kind: int, half: np.ndarray, eye: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Depth at which rays (Q, 3) enter a solid at the origin, inf for none; all in the solid's own axes."""
    eye, rays = eye / half, rays / half
    with np.errstate(all="ignore"):
        if kind == ELLIPSOID:
            start, end = _roots((rays**2).sum(1), rays @ eye, eye @ eye - 1)
        else:
            flat = slice(0, 3) if kind == BOX else slice(2, 3)
            sides = np.stack([(-1 - eye[flat]) / rays[:, flat], (1 - eye[flat]) / rays[:, flat]])
            start, end = sides.min(0).max(1), sides.max(0).min(1)
            if kind != BOX:
                first, last = _roots((rays[:, :2] ** 2).sum(1), rays[:, :2] @ eye[:2], eye[:2] @ eye[:2] - 1)
                start, end = np.maximum(start, first), np.minimum(end, last)
        return np.where((start < end) & (start > 0), start, np.inf)


def _roots(a: np.ndarray, b: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """Both solutions of a t^2 + 2 b t + c = 0; an empty range where there is none."""
    root = np.sqrt(np.maximum(b * b - a * c, 0))
    none = b * b <= a * c
    return np.where(none, np.inf, (-b - root) / a), np.where(none, -np.inf, (-b + root) / a)


def own_axes(yaw: float) -> np.ndarray:
    """Rotation (3, 3) from world axes to the axes of a solid."""
    return np.array([[np.cos(yaw), np.sin(yaw), 0], [-np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])


def cast(house: House, camera: Camera, pose: tuple[float, ...], shift: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Depth, class, instance and solid of each ray, float64, (H, W, 4); zeros for nothing.

    Solids count from 1; -1 is a floor and -2 a ceiling.
    """
    eye, shapes = np.array(pose[:3], np.float64), house.shapes
    rays = pixel_rays(camera, pose[3], pose[4], shift)
    depth, solid = np.full(len(rays), np.inf), np.zeros(len(rays), int)
    semantic, instance = np.zeros(len(rays), int), np.zeros(len(rays), int)
    for k in range(len(shapes)):
        rotation = own_axes(float(shapes.yaw[k]))
        own_eye = rotation @ (eye - shapes.centre[k])
        t = _enter_solid(int(shapes.kind[k]), shapes.half[k].astype(np.float64), own_eye, rays @ rotation.T)
        nearer = t < depth
        depth[nearer], solid[nearer] = t[nearer], k + 1
        semantic[nearer], instance[nearer] = shapes.semantic[k], shapes.instance[k]
    for number, (height, name) in enumerate(((0.0, "floor"), (house.height, "ceiling"))):
        with np.errstate(all="ignore"):
            t = (height - eye[2]) / rays[:, 2]
        t[~((t > 0) & np.isfinite(t))] = np.inf
        points = eye[:2] + np.where(np.isfinite(t), t, 0.0)[:, None] * rays[:, :2]
        inside = np.any([points_in_polygon(points, room.polygon) for room in house.rooms], 0)
        nearer = inside & (t < depth)
        depth[nearer], solid[nearer] = t[nearer], -1 - number
        semantic[nearer], instance[nearer] = CLASS_INDEX[name], 0
    depth[np.isinf(depth)] = 0.0
    return np.stack([depth, semantic, instance, solid], 1).reshape(camera.height, camera.width, 4)
