"""Renderer of homes in habitat-sim, with the interface of our own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from memenvs.houses.habitat.simulation import COLOUR, DEPTH, SEMANTIC, SceneName, SceneObject, simulation
from memenvs.houses.habitat.views import SampledView
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import checked_image

#: Name of an image -> what habitat-sim draws for it, type, and channels.
_IMAGES = {
    "rgb": (COLOUR, np.uint8, (3,)),
    "depth": (DEPTH, np.float32, (1,)),
    "semantic": (SEMANTIC, np.uint8, ()),
    "instance": (SEMANTIC, np.uint16, ()),
}

_NOTHING, _FLOOR, _WALL, _CEILING = range(4)  # of `HabitatScene.building`
#: What is this near to the floor or the ceiling is part of it, m.
_THICKNESS = 0.05


@dataclass(frozen=True, eq=False)
class HabitatScene:
    """A scene with small objects in it, and the meaning of its semantic ids.

    Attributes:
        name: The scene.
        objects: Small objects in it.
        classes: uint8, (K + 2,); class of each semantic id 0 ... K; the last entry is for larger ones.
        instances: uint16, (K + 2,); index into `House.instances`, likewise.
        floor: Height of the floor in habitat-sim's frame, m.
        building: uint8, (4,); where what has no semantic id is the building, classes of nothing, floor, wall and
            ceiling; which of them a pixel is follows from its height. Else None.
        height: Height of the ceiling above the floor, m.
    """

    name: SceneName
    objects: tuple[SceneObject, ...]
    classes: np.ndarray
    instances: np.ndarray
    floor: float = 0.0
    building: np.ndarray | None = None
    height: float = math.inf

    def relabel(self, labels: np.ndarray) -> HabitatScene:
        """Return the scene with other classes: that of class k is `labels[k]`."""
        building = None if self.building is None else labels[self.building].astype(np.uint8)
        return replace(self, classes=labels[self.classes].astype(np.uint8), building=building)


class HabitatRenderer:
    """Renderer of N environments by the simulator of this process; it can be pickled.

    Args:
        camera: The camera of all environments, unless `render` gets another one.
        num_envs: N; >= 1.
        threads: 1, because the package draws one image after the other.

    Raises:
        ValueError: `num_envs` is too small, or `threads` is not 1.
    """

    def __init__(self, camera: Camera, num_envs: int, *, threads: int = 1) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if threads != 1:
            raise ValueError(
                f"threads must be 1 in world 'habitat', which draws one image after the other, got {threads}; use more "
                "processes: gym.make_vec(..., vectorization_mode='async', vector_kwargs={'context': 'spawn'})"
            )
        self.camera = camera
        self.num_envs = num_envs
        self._scenes: list[HabitatScene | None] = [None] * num_envs

    def set_scene(self, env: int, scene: HabitatScene) -> None:
        """Give environment `env` another scene.

        Raises:
            ValueError: There is no such environment.
        """
        if not 0 <= env < self.num_envs:
            raise ValueError(f"env must be 0 to {self.num_envs - 1}, got {env}")
        self._scenes[env] = scene

    def render(
        self,
        poses: np.ndarray,
        *,
        rgb: np.ndarray | None = None,
        depth: np.ndarray | None = None,
        semantic: np.ndarray | None = None,
        instance: np.ndarray | None = None,
        env_mask: np.ndarray | None = None,
        camera: Camera | None = None,
    ) -> None:
        """Render into the arrays that are given, as our own `Renderer.render` does.

        Environments in the same scene are drawn one after the other, because going to another one takes long.

        Raises:
            ValueError: An array has the wrong shape or type or is not contiguous, or a pose is not finite.
            RuntimeError: An environment to be drawn has no scene.
        """
        camera = self.camera if camera is None else camera
        poses = np.asarray(poses, np.float64)
        if poses.shape != (self.num_envs, 5):
            raise ValueError(f"poses must have shape {(self.num_envs, 5)}, got {poses.shape}")
        arrays = {"rgb": rgb, "depth": depth, "semantic": semantic, "instance": instance}
        shape = self.num_envs, camera.height, camera.width
        images = {
            name: checked_image(name, array, _IMAGES[name][1], (*shape, *_IMAGES[name][2]))
            for name, array in arrays.items()
            if array is not None
        }
        envs = range(self.num_envs) if env_mask is None else np.flatnonzero(env_mask).tolist()
        if not np.isfinite(poses[list(envs)]).all():
            raise ValueError(f"poses must be finite, got {poses[list(envs)].tolist()}")
        kinds = sorted({_IMAGES[name][0] for name in images})
        if not kinds:
            return
        view = SampledView.of(camera)
        for scene, env in self._in_order(envs):
            simulation().enter(scene.name, scene.objects)
            x, y, z, heading, pitch = poses[env].tolist()
            needs_depth = scene.building is not None and semantic is not None
            drawn_kinds = sorted({*kinds, DEPTH}) if needs_depth else kinds
            drawn = simulation().draw(view, drawn_kinds, np.array([x, scene.floor + z, -y, heading, pitch]))
            for name, array in images.items():
                image = drawn[_IMAGES[name][0]]
                if name == "semantic":
                    is_building = image == 0
                    image = scene.classes[np.minimum(image, len(scene.classes) - 1)]
                    if scene.building is not None:
                        parts = _building_parts(scene, camera, z, pitch, drawn[DEPTH])
                        image = np.where(is_building, parts, image)
                elif name == "instance":
                    image = scene.instances[np.minimum(image, len(scene.instances) - 1)]
                array[env] = image.reshape(array[env].shape)

    def close(self) -> None:
        """Do nothing: other environments of the process use the simulator too."""

    def _in_order(self, envs: range | list[int]) -> list[tuple[HabitatScene, int]]:
        """Scenes of environments, those with the same name and objects together."""
        pairs = []
        for env in envs:
            scene = self._scenes[env]
            if scene is None:
                raise RuntimeError(f"environments without a home: [{env}]; call set_scene")
            pairs.append((scene, env))
        return sorted(pairs, key=lambda pair: (pair[0].name, id(pair[0].objects)))


def _building_parts(scene: HabitatScene, camera: Camera, z: float, pitch: float, depth: np.ndarray) -> np.ndarray:
    """Classes of pixels of a building, by their height; uint8, (H, W).

    Args:
        scene: The scene.
        camera: What drew them.
        z: Height of the camera above the floor, m.
        pitch: Its pitch, rad.
        depth: float32, (H, W); m, 0 where nothing is hit.
    """
    assert scene.building is not None
    up = (camera.centre[1] - np.arange(camera.height)) / camera.focal  # for a depth of 1
    heights = z + depth * (math.sin(pitch) + up * math.cos(pitch))[:, None]
    part = np.where(heights < _THICKNESS, _FLOOR, np.where(heights > scene.height - _THICKNESS, _CEILING, _WALL))
    return scene.building[np.where(depth > 0, part, _NOTHING)]
