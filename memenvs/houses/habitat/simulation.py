"""The simulator of habitat-sim in this process: scenes, small objects and images.

To change its scene takes seconds at most, to make another simulator takes longer. So all environments of a process
share one. Environments in the same home are drawn one after the other, so that the scene changes seldom.
"""

from __future__ import annotations

import atexit
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.gltf import make_object
from memenvs.houses.habitat.dataset import SceneName
from memenvs.houses.habitat.furniture import (
    Furniture,
    MarkedSurface,
    read_furniture,
    read_stage_surfaces,
    settle_objects,
)
from memenvs.houses.habitat.package import check_drawing, choose_gpu, import_habitat, navmesh_settings
from memenvs.houses.habitat.views import SampledView
from memenvs.houses.ycb import object_height, object_shapes

#: Images that a camera of habitat-sim draws.
COLOUR, DEPTH, SEMANTIC = "COLOR", "DEPTH", "SEMANTIC"
#: Cameras that the simulator has room for; it starts anew when a process has used more.
_MAX_CAMERAS = 32


@dataclass(frozen=True)
class SceneObject:
    """A small object in a scene.

    Attributes:
        category: Index into `memenvs.houses.classes.YCB_CLASSES`.
        position: (x, y, z) of the middle of its bounding box in habitat-sim's frame, m.
        yaw: Turn about the vertical, counter-clockwise seen from above, rad.
        semantic_id: Value of its pixels.
        file: Object config; None for our own model of the category.
    """

    category: int
    position: tuple[float, float, float]
    yaw: float
    semantic_id: int
    file: str | None = None


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """A part of a stage that has a semantic id.

    Attributes:
        id: Value of its pixels.
        name: Name of its class.
        corners: float64, (8, 3); of its bounding box in habitat-sim's frame, m.
    """

    id: int
    name: str
    corners: np.ndarray


class Simulation:
    """habitat-sim's `Simulator`; use `simulation`, which makes it once.

    Raises:
        ImportError: The package is not there.
    """

    def __init__(self) -> None:
        self._package = import_habitat()
        check_drawing()
        self._process = os.getpid()
        self._simulator: Any = None
        self._scene: SceneName | None = None
        self._objects: tuple[SceneObject, ...] = ()
        self._placed: list[int] = []  # the package's numbers of these
        self._agents: list[Any] = []  # one for each camera, because it draws all cameras of an agent
        self._cameras: dict[tuple[SampledView, str], int] = {}
        self._has_colour = False
        # Object config -> where its origin is from the middle of its box, m.
        self._offsets: dict[str, tuple[float, float, float]] = {}

    def enter(self, name: SceneName, objects: Sequence[SceneObject] = ()) -> None:
        """Go to a scene with these small objects in it.

        Raises:
            ValueError: The package cannot load the scene.
            RuntimeError: This process was forked from one that used the simulator.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                "world 'habitat' cannot be used in a process that was forked from one that has used it; "
                "make vector environments with context='spawn'"
            )
        if self._simulator is None or name != self._scene:
            self._scene = None  # unless all goes well
            self._objects, self._placed = (), []
            if name.has_objects and not self._package.built_with_bullet:
                raise ValueError(
                    f"{name.scene} has objects, which need a habitat-sim that was built with Bullet; this one was not"
                )
            configuration = self._configuration(name)
            try:
                if self._simulator is None:
                    self._simulator = self._package.Simulator(configuration)
                else:
                    self._simulator.reconfigure(configuration)
            except (RuntimeError, ValueError, AssertionError) as error:
                self.close()
                where = f"the scene {name.scene!r} of {name.dataset}"
                raise ValueError(f"habitat-sim cannot load {where}: {error}") from error
            if name.has_objects:
                static = self._package.physics.MotionType.STATIC
                settle_objects(self._simulator, self.first_furniture_id(), static)
            self._scene = name
        if tuple(objects) != self._objects:
            self._place(objects)
            self._objects = tuple(objects)

    def draw(self, view: SampledView, kinds: Sequence[str], pose: np.ndarray) -> dict[str, np.ndarray]:
        """Draw pictures of the scene that was entered.

        Args:
            view: The camera.
            kinds: Any of `COLOUR`, `DEPTH` and `SEMANTIC`.
            pose: float64, (5,); x, y, z of the camera in habitat-sim's frame (m), heading and pitch in ours (rad).

        Returns:
            Kind -> image of the view's size: uint8 (H, W, 3), float32 (H, W) or uint32 (H, W).
        """
        agents = [self._camera(view, kind) for kind in kinds]
        state = self._package.AgentState()
        state.position = pose[:3].astype(np.float32)
        state.rotation = _rotation(float(pose[3]), float(pose[4]))
        for agent in agents:
            self._simulator.agents[agent].set_state(state)
        images = self._simulator.get_sensor_observations(agent_ids=agents)
        drawn = {}
        for kind, agent in zip(kinds, agents, strict=True):
            (image,) = images[agent].values()
            drawn[kind] = view.crop(image[..., :3] if kind == COLOUR else image)
        return drawn

    def navmesh(self, radius: float, height: float) -> bytes:
        """Return the navigation mesh of the scene for a robot, as the content of a .navmesh file.

        That of the data set is taken if it was built for such a robot.

        Raises:
            ValueError: There is no floor for the robot.
        """
        assert self._scene is not None, "enter a scene first"
        settings = navmesh_settings(self._package, radius, height)
        settings.include_static_objects = self._scene.has_objects
        pathfinder = self._simulator.pathfinder
        if not (pathfinder.is_loaded and _is_for(pathfinder.nav_mesh_settings, settings)):
            pathfinder = self._package.PathFinder()
            if not self._simulator.recompute_navmesh(pathfinder, settings) or not pathfinder.is_loaded:
                scene = self._scene.scene
                hint = ""
                if scene.endswith(".glb"):
                    hint = "; a .glb alone is read with z up, so one with y up needs a stage config that says so"
                raise ValueError(
                    f"habitat-sim finds no floor in {scene!r} for a robot of radius {radius} m and height {height} m"
                    + hint
                )
        with tempfile.TemporaryDirectory(prefix="memenvs-") as folder:
            path = Path(folder) / "mesh.navmesh"
            pathfinder.save_nav_mesh(str(path))
            return path.read_bytes()

    def load_navmesh(self, content: bytes) -> Any:
        """Make a `PathFinder` of what `navmesh` returned."""
        pathfinder = self._package.PathFinder()
        with tempfile.TemporaryDirectory(prefix="memenvs-") as folder:
            path = Path(folder) / "mesh.navmesh"
            path.write_bytes(content)
            pathfinder.load_nav_mesh(str(path))
        if not pathfinder.is_loaded:  # a query would end the process
            raise ValueError("a navigation mesh cannot be read: it is no .navmesh file of this version of habitat-sim")
        return pathfinder

    def furniture(self) -> list[Furniture]:
        """List the objects that the scene has of its own; errors are those of `read_furniture`."""
        assert self._scene is not None, "enter a scene first"
        return read_furniture(self._simulator) if self._scene.has_objects else []

    def stage_surfaces(self) -> list[MarkedSurface]:
        """List the surfaces that are marked on the stage; errors are those of `read_stage_surfaces`."""
        return read_stage_surfaces(self._simulator)

    def labelled_parts(self) -> list[LabelledPart]:
        """List the parts of the stage that have semantic ids, such as those of HM3D."""
        scene = self._simulator.semantic_scene
        objects = [] if scene is None else scene.objects  # the descriptors of some data sets leave entries out
        return [_labelled_part(part) for part in objects if part is not None and part.semantic_id > 0]

    def first_furniture_id(self) -> int:
        """Semantic id of the first of `furniture`; the others follow in order."""
        return max((part.id for part in self.labelled_parts()), default=0) + 1

    def object_box(self, file: str) -> np.ndarray:
        """Measure the bounding box of an object config as it stands, float64 (2, 3), m, y up."""
        manager = self._simulator.get_rigid_object_manager()
        placed = manager.add_object_by_template_handle(self._template_of(file))
        box = np.array([placed.aabb.min, placed.aabb.max], np.float64)
        manager.remove_object_by_id(placed.object_id)
        return box

    @property
    def package(self) -> Any:
        """The module `habitat_sim`."""
        return self._package

    def close(self) -> None:
        """End the simulator; `enter` starts another one."""
        if self._simulator is not None and os.getpid() == self._process:
            self._simulator.close()
        self._simulator = None
        self._scene = None
        self._objects, self._placed = (), []
        self._cameras = {}
        self._agents = []

    def _configuration(self, name: SceneName) -> Any:
        scene = self._package.SimulatorConfiguration()
        scene.scene_dataset_config_file = name.dataset
        scene.scene_id = name.scene
        scene.gpu_device_id = choose_gpu()
        scene.enable_physics = name.has_objects  # without it the package lists no objects
        if not self._agents:
            self._agents = [
                self._package.agent.AgentConfiguration(sensor_specifications=[]) for _ in range(_MAX_CAMERAS)
            ]
            # What the first cameras show decides what the package loads; colours take seconds, so only when needed.
            kinds = (DEPTH, SEMANTIC, COLOUR) if self._has_colour else (DEPTH, SEMANTIC)
            for kind in kinds:
                self._add_camera(SampledView.whole(8, 8, math.pi / 2), kind)
        return self._package.Configuration(scene, self._agents)

    def _camera(self, view: SampledView, kind: str) -> int:
        """Number of the agent that has this camera."""
        if (view, kind) not in self._cameras:
            name, objects = self._scene, self._objects
            assert name is not None, "enter a scene first"
            needs_colour = kind == COLOUR and not self._has_colour
            if needs_colour or len(self._cameras) == _MAX_CAMERAS:
                self._has_colour |= needs_colour
                self.close()
                self.enter(name, objects)
            self._simulator.add_sensor(*self._add_camera(view, kind, is_running=True))
        return self._cameras[view, kind]

    def _add_camera(self, view: SampledView, kind: str, *, is_running: bool = False) -> tuple[Any, int]:
        """Give the next agent a camera; returns its specification and the number of the agent."""
        number = len(self._cameras)
        camera = self._package.CameraSensorSpec()
        camera.uuid = f"camera{number}"
        camera.sensor_type = getattr(self._package.SensorType, kind)
        camera.resolution = [view.height, view.width]
        camera.hfov = math.degrees(view.hfov)
        camera.position = np.zeros(3, np.float32)  # at the agent's own position
        if not is_running:  # the package adds it itself to a running simulator
            self._agents[number].sensor_specifications.append(camera)
        self._cameras[view, kind] = number
        return camera, number

    def _place(self, objects: Sequence[SceneObject]) -> None:
        """Replace the small objects of the scene."""
        manager = self._simulator.get_rigid_object_manager()
        for number in self._placed:
            manager.remove_object_by_id(number)
        self._placed = []
        for item in objects:
            handle, offset = self._template(item)
            placed = manager.add_object_by_template_handle(handle)
            self._placed.append(placed.object_id)
            placed.motion_type = self._package.physics.MotionType.KINEMATIC
            x, y, z = offset
            cos, sin = math.cos(item.yaw), math.sin(item.yaw)
            turned = np.array([cos * x + sin * z, y, cos * z - sin * x])
            placed.translation = np.asarray(item.position, np.float64) + turned
            placed.rotation = _magnum_yaw(item.yaw)
            placed.semantic_id = item.semantic_id

    def _template(self, item: SceneObject) -> tuple[str, tuple[float, float, float]]:
        """Handle of an object's template, and where its origin is from the middle that `SceneObject` names."""
        if item.file is not None:
            if item.file not in self._offsets:
                x, y, z = (-self.object_box(item.file).mean(0)).tolist()
                self._offsets[item.file] = x, y, z
            return self._template_of(item.file), self._offsets[item.file]
        manager = self._simulator.get_object_template_manager()
        path, offset = _object_file(item.category)
        handle = f"memenvs/{YCB_CLASSES[item.category]}"
        if not manager.get_library_has_handle(handle):
            template = manager.create_new_template(str(path), False)
            manager.register_template(template, handle)
        return handle, offset

    def _template_of(self, file: str) -> str:
        """Handle of the template of an object config, which is read where it is not known."""
        manager = self._simulator.get_object_template_manager()
        if not manager.get_library_has_handle(file):
            manager.load_configs(file)
        return file


@cache
def simulation() -> Simulation:
    """Return the simulator of this process."""
    made = Simulation()
    atexit.register(made.close)  # before the interpreter takes modules away
    return made


@cache
def _object_file(category: int) -> tuple[Path, tuple[float, float, float]]:
    """Write our model of a small object; returns its file (GLB), and where the middle of the mesh is (m, y up).

    The package puts the middle of a mesh at an object's position. So the mesh is written about its middle, and the
    offset is from the middle of the object's nominal box.
    """
    scene = make_object(object_shapes(category, (0.0, 0.0, -object_height(category) / 2)))
    middle = scene.bounds.mean(0)
    scene.apply_translation(-middle)
    path = _object_folder() / f"{YCB_CLASSES[category]}.glb"
    path.write_bytes(scene.export(file_type="glb"))
    x, y, z = middle.tolist()
    return path, (x, y, z)


@cache
def _object_folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="memenvs-objects-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _is_for(built: Any, settings: Any) -> bool:
    """True if a navigation mesh was built for such a robot: radii count in whole cells."""
    if built is None:
        return False
    cells = [math.ceil(robot.agent_radius / built.cell_size - 1e-3) for robot in (built, settings)]
    same = ("agent_height", "agent_max_climb", "cell_size", "cell_height")
    return cells[0] == cells[1] and all(abs(getattr(built, key) - getattr(settings, key)) < 1e-4 for key in same)


def _rotation(heading: float, pitch: float) -> list[float]:
    """Rotation [x, y, z, w] of an agent; without one it faces -z, where our heading 0 faces +x."""
    half_yaw, half_pitch = (heading - math.pi / 2) / 2, pitch / 2
    cos_yaw, sin_yaw = math.cos(half_yaw), math.sin(half_yaw)
    cos_pitch, sin_pitch = math.cos(half_pitch), math.sin(half_pitch)
    return [cos_yaw * sin_pitch, sin_yaw * cos_pitch, -sin_yaw * sin_pitch, cos_yaw * cos_pitch]


def _magnum_yaw(yaw: float) -> Any:
    magnum: Any = import_module("magnum")  # comes with habitat-sim
    return magnum.Quaternion.rotation(magnum.Rad(yaw), magnum.Vector3.y_axis())


def _labelled_part(part: Any) -> LabelledPart:
    box = part.obb
    centre, half = np.array(box.center, np.float64), np.array(box.half_extents, np.float64)
    x, y, z, w = np.array(box.rotation, np.float64)
    signs = np.array(list(product((-1, 1), repeat=3)))
    across = np.cross((x, y, z), signs * half)
    corners = centre + signs * half + 2 * (w * across + np.cross((x, y, z), across))
    name = "" if part.category is None else part.category.name()
    return LabelledPart(int(part.semantic_id), name, corners)
