"""A recorded stand-in for habitat-sim 0.3.3 that refuses what the real package refuses.

Its world is one empty room: the navigation mesh is the bounds of a home's rooms, or of a stage, less the robot's
radius. In exported homes depth is the number of the column, from 1; semantic ids are those of the small objects, in
columns, or 1. In other scenes rays meet the box of the stage from inside, and those of objects. What it refuses was
recorded with the real package (`test_package.py` queries both): unknown attributes, a camera of a kind that was not
loaded, a CUDA device that is not there, objects of a scene without physics, queries on a navigation mesh that is not
loaded, which end the real process. Lists for points are refused by some builds of the package, and here.
"""

import json
import math
import types
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

__version__ = "0.3.3"
built_with_bullet = True


def _point(value: Any) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.shape != (3,):
        raise TypeError(f"incompatible function arguments: {value!r}")
    return value.astype(np.float32)


class NavMeshSettings:
    """Settings with the defaults of the real ones; they take no other names, and numbers only."""

    _DEFAULTS: ClassVar[dict[str, float]] = {
        "cell_size": 0.05, "cell_height": 0.2, "agent_height": 1.5, "agent_radius": 0.1, "agent_max_climb": 0.2,
        "agent_max_slope": 45.0, "include_static_objects": False,
    }  # fmt: skip

    def __init__(self) -> None:
        self.set_defaults()

    def set_defaults(self) -> None:
        vars(self).update(self._DEFAULTS)

    def __setattr__(self, name: str, value: float) -> None:
        if name not in self._DEFAULTS:
            raise AttributeError(f"'NavMeshSettings' object has no attribute {name!r}")
        if not isinstance(value, (int, float)):
            raise TypeError(f"{name}: incompatible argument {value!r}")
        vars(self)[name] = value


class SimulatorConfiguration:
    """The fields that are used."""

    __slots__ = ("enable_physics", "gpu_device_id", "scene_dataset_config_file", "scene_id")

    def __init__(self) -> None:
        self.scene_dataset_config_file = "default"
        self.scene_id = ""
        self.gpu_device_id = 0
        self.enable_physics = False


class MultiGoalShortestPath:
    """Start and ends take arrays only."""

    def __init__(self) -> None:
        self.geodesic_distance, self.requested_ends = 0.0, []

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "requested_start":
            value = _point(value)
        elif name == "requested_ends":
            value = [_point(end) for end in value]
        super().__setattr__(name, value)


class PathFinder:
    """Navigation mesh of a rectangle, y up; its height is 0.05 m, as that of the real one is."""

    HEIGHT = 0.05
    num_islands = 1

    def __init__(self) -> None:
        self._mesh: dict[str, Any] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._mesh is not None

    @property
    def mesh(self) -> dict[str, Any]:
        if self._mesh is None:
            raise SystemError("segmentation fault: the navigation mesh is not loaded")
        return self._mesh

    @property
    def nav_mesh_settings(self) -> Any:
        return None if self._mesh is None else SimpleNamespace(**self._mesh["settings"])

    def build(self, bounds: list[list[float]], settings: NavMeshSettings) -> bool:
        radius = settings.agent_radius
        (x0, z0), (x1, z1) = bounds
        low, high = (x0 + radius, z0 + radius), (x1 - radius, z1 - radius)
        if low[0] >= high[0] or low[1] >= high[1]:
            return False  # no floor is left; the old mesh stays
        self._mesh = {"low": low, "high": high, "settings": dict(vars(settings))}
        return True

    def save_nav_mesh(self, path: str) -> bool:
        Path(path).write_text(json.dumps(self.mesh))
        return True

    def load_nav_mesh(self, path: str) -> bool:
        try:
            self._mesh = json.loads(Path(path).read_text())
        except ValueError:
            return False
        return True

    def island_area(self, island_index: int) -> float:
        (x0, z0), (x1, z1) = self.mesh["low"], self.mesh["high"]
        return (x1 - x0) * (z1 - z0)

    def build_navmesh_vertices(self, island_index: int) -> list[np.ndarray]:
        (x0, z0), (x1, z1) = self.mesh["low"], self.mesh["high"]
        return [np.array([x, self.HEIGHT, z], np.float32) for x, z in ((x0, z0), (x1, z0), (x1, z1), (x0, z1))]

    def build_navmesh_vertex_indices(self, island_index: int) -> list[int]:
        return [0, 1, 2, 0, 2, 3]

    def snap_point(self, point: Any, island_index: int = -1) -> np.ndarray:
        start = _point(point)
        (x0, z0), (x1, z1) = self.mesh["low"], self.mesh["high"]
        snapped = np.array([min(max(start[0], x0), x1), self.HEIGHT, min(max(start[2], z0), z1)], np.float32)
        return snapped if np.abs(snapped - start).max() <= 2.0 else np.full(3, np.nan, np.float32)

    def get_island(self, point: Any) -> int:
        return 0 if np.isfinite(self.snap_point(point)).all() else -1

    def try_step(self, start: Any, end: Any) -> np.ndarray:
        _point(start)
        return self.snap_point(end)

    def try_step_no_sliding(self, start: Any, end: Any) -> np.ndarray:
        first, last, reached = _point(start), _point(end), self.snap_point(end)
        lengths = [float(np.hypot(*(point - first)[[0, 2]])) for point in (reached, last)]
        share = 1.0 if lengths[1] == 0 or (reached - last)[[0, 2]].any() == 0 else 0.0
        return self.snap_point(first + np.float32(share) * (last - first))

    def find_path(self, path: MultiGoalShortestPath) -> bool:
        start = self.snap_point(path.requested_start)
        ends = [self.snap_point(end) for end in path.requested_ends]
        path.geodesic_distance = min((float(np.linalg.norm(end - start)) for end in ends), default=math.inf)
        return math.isfinite(path.geodesic_distance)


class CameraSensorSpec:
    """A camera; its position takes an array only, its resolution a list too."""

    def __init__(self) -> None:
        self.uuid, self.sensor_type, self.resolution, self.hfov = "", SensorType.COLOR, [1, 1], 90.0

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("uuid", "sensor_type", "resolution", "hfov", "position"):
            raise AttributeError(f"'CameraSensorSpec' object has no attribute {name!r}")
        super().__setattr__(name, _point(value) if name == "position" else value)


class _Values:
    """Part of a config: lists of three numbers are vectors."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def get_subconfig_keys(self) -> list[str]:
        return [key for key, value in self._values.items() if isinstance(value, dict)]

    def get_subconfig(self, key: str) -> "_Values":
        return _Values(self._values[key])

    def has_value(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Any:
        value = self._values[key]
        return np.array(value, np.float32) if isinstance(value, list) else value


class _Objects:
    """Manager of rigid objects and of their templates."""

    def __init__(self) -> None:
        self.templates: dict[str, Path] = {}
        self.placed: list[SimpleNamespace] = []
        self.count = 0
        self.has_physics = False

    def get_library_has_handle(self, handle: str) -> bool:
        return handle in self.templates

    def create_new_template(self, path: str, register: bool) -> Path:
        assert Path(path).is_file()
        return Path(path)

    def load_configs(self, path: str) -> list[int]:
        config = json.loads(Path(path).read_text())
        return [self.register_template(Path(path).parent / config["render_asset"], path)]

    def register_template(self, template: Path, handle: str) -> int:
        self.templates[handle] = template
        return len(self.templates)

    def remove_object_by_id(self, number: int) -> None:
        (removed,) = [placed for placed in self.placed if placed.object_id == number]
        self.placed.remove(removed)

    def remove_all_objects(self) -> None:
        self.placed.clear()
        self.count = 0

    def add_object_by_template_handle(self, handle: str) -> SimpleNamespace:
        assert handle in self.templates
        low, high = _bounds(self.templates[handle])
        self.count += 1
        half = (high - low) / 2  # the origin of an object is its centre of mass, that of its box
        made = SimpleNamespace(semantic_id=0, object_id=self.count, handle=f"{Path(handle).stem}_:{self.count:04}")
        made.aabb = SimpleNamespace(min=-half, max=half)
        made.is_of_scene = False
        self.placed.append(made)
        return made

    def add_scene_object(self, config: Path, instance: dict[str, Any]) -> None:
        values = json.loads(config.read_text())
        self.register_template(config.parent / values["render_asset"], str(config))
        made = self.add_object_by_template_handle(str(config))
        low, high = _bounds(self.templates[str(config)])
        w, _, y, _ = instance["rotation"]  # turns about the vertical only
        cos, sin = w * w - y * y, 2 * w * y
        asset = np.eye(4)
        asset[:3, :3] = [[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]]
        asset[:3, 3] = instance["translation"]
        made.transformation = asset.copy()
        made.transformation[:3, 3] += asset[:3, :3] @ ((low + high) / 2)
        node = SimpleNamespace(absolute_transformation=lambda: asset)
        made.visual_scene_nodes = [node, node]
        made.user_attributes = _Values(values.get("user_defined", {}))
        made.creation_attributes = SimpleNamespace(semantic_id=values["semantic_id"], file_directory=str(config.parent))
        made.is_of_scene = True

    def get_objects_by_handle_substring(self, part: str) -> dict[str, SimpleNamespace | None]:
        return {placed.handle: placed if self.has_physics else None for placed in self.placed if part in placed.handle}


def _bounds(path: Path) -> np.ndarray:
    return _read_bounds(path, path.stat().st_mtime_ns)


@cache
def _read_bounds(path: Path, changed: int) -> np.ndarray:
    import trimesh

    return np.asarray(trimesh.load(path, force="scene").bounds, np.float64)


class Simulator:
    """A simulator without physics; without a camera it needs no device."""

    def __init__(self, configuration: tuple[SimulatorConfiguration, list[Any]]) -> None:
        self._objects = _Objects()
        self.reconfigure(configuration)

    def reconfigure(self, configuration: tuple[SimulatorConfiguration, list[Any]]) -> None:
        scene, agents = configuration
        assert len(agents) >= 1
        specifications = [specification for agent_ in agents for specification in agent_.sensor_specifications]
        if specifications and scene.gpu_device_id != -1:
            raise SystemExit("unable to find CUDA device 0 among 1 EGL devices in total")
        self._kinds = {specification.sensor_type for specification in specifications}
        path = Path(scene.scene_id)
        described = {} if path.suffix == ".glb" else json.loads(path.read_text())
        self.pathfinder, self.semantic_scene, self.stage_box = PathFinder(), None, None
        self.agents = [
            SimpleNamespace(sensors=list(agent_.sensor_specifications), state=None, specification=agent_)
            for agent_ in agents
        ]
        for agent_ in self.agents:
            agent_.set_state = types.MethodType(lambda this, state: setattr(this, "state", state), agent_)
        self._objects.remove_all_objects()
        self._objects.has_physics = scene.enable_physics
        home = path.parent.parent / "homes" / f"{path.name.split('.')[0]}.json"
        if not home.is_file():
            self._enter_other(path, described)
            return
        if "stage_instance" in described:
            folder = Path(scene.scene_dataset_config_file).parent
            dataset = json.loads(Path(scene.scene_dataset_config_file).read_text())
            self.pathfinder.load_nav_mesh(str(folder / dataset["navmesh_instances"][described["navmesh_instance"]]))
            # Without it all semantic ids are one too small.
            assert described["semantic_scene_instance"] in dataset["semantic_scene_descriptor_instances"]
            path = folder / described["stage_instance"]["template_name"]
        self.stage = json.loads(path.read_text())
        if ("up" in self.stage) != ("front" in self.stage):
            raise AssertionError("up and front: both or none")
        for key in ("render_asset", "semantic_asset", "semantic_descriptor_filename"):
            assert (path.parent / self.stage[key]).is_file(), key
        corners = np.concatenate([room["polygon"] for room in json.loads(home.read_text())["rooms"]])
        low, high = corners.min(0).tolist(), corners.max(0).tolist()
        self._floor = [[low[0], -high[1]], [high[0], -low[1]]]  # of x and z

    def _enter_other(self, path: Path, described: dict[str, Any]) -> None:
        """Enter a scene that memenvs has not written."""
        folder = path.parent.parent
        instances = described.get("object_instances", [])
        if "stage_instance" in described:
            path = folder / f"{described['stage_instance']['template_name']}.stage_config.json"
        if path.suffix == ".json":
            self.stage = json.loads(path.read_text())
            low, high = _bounds(path.parent / self.stage["render_asset"])
        else:  # a .glb alone has z up
            (x0, y0, z0), (x1, y1, z1) = _bounds(path)
            low, high = np.array([x0, z0, -y1]), np.array([x1, z1, -y0])
        self.stage_box = low, high
        self._floor = [low[[0, 2]].tolist(), high[[0, 2]].tolist()]
        for instance in instances:
            self._objects.add_scene_object(
                folder / "objects" / f"{instance['template_name']}.object_config.json", instance
            )

    def get_stage_initialization_template(self) -> SimpleNamespace:
        stage = SimpleNamespace(orient_up=[0, 1, 0], orient_front=[0, 0, -1], file_directory="")
        stage.get_user_config = lambda: _Values({})
        return stage

    def get_articulated_object_manager(self) -> _Objects:
        return _Objects()

    def recompute_navmesh(self, pathfinder: PathFinder, settings: NavMeshSettings) -> bool:
        return pathfinder.build(self._floor, settings)

    def add_sensor(self, specification: CameraSensorSpec, agent_id: int) -> None:
        if specification.sensor_type not in self._kinds:
            raise ValueError(f"Data for {specification.sensor_type} sensor was not loaded during Simulator init.")
        self.agents[agent_id].sensors.append(specification)
        self.agents[agent_id].specification.sensor_specifications.append(specification)

    def get_sensor_observations(self, agent_ids: list[int]) -> dict[int, dict[str, np.ndarray]]:
        return {number: self._draw(self.agents[number]) for number in agent_ids}

    def _draw(self, agent_: Any) -> dict[str, np.ndarray]:
        _point(agent_.state.position)
        images = {}
        ids = [placed.semantic_id for placed in self._objects.placed] or [1]
        for sensor in agent_.sensors:
            height, width = sensor.resolution
            if self.stage_box is not None:
                images[sensor.uuid] = self._cast(sensor, agent_.state)
                continue
            columns = np.tile(np.arange(width), (height, 1))
            images[sensor.uuid] = {
                SensorType.COLOR: np.full((height, width, 4), 99, np.uint8),
                SensorType.DEPTH: columns.astype(np.float32) + 1,
                SensorType.SEMANTIC: np.array(ids, np.uint32)[columns % len(ids)],
            }[sensor.sensor_type]
        return images

    def _cast(self, sensor: CameraSensorSpec, state: Any) -> np.ndarray:
        """Cast the rays of a camera."""
        height, width = sensor.resolution
        focal = width / 2 / math.tan(math.radians(sensor.hfov) / 2)
        right = (np.arange(width) + 0.5 - width / 2) / focal
        up = (height / 2 - np.arange(height) - 0.5) / focal
        rays = np.stack(np.broadcast_arrays(right[None], up[:, None], -1.0), -1)
        x, y, z, w = state.rotation
        across = np.cross((x, y, z), rays)
        rays = rays + 2 * (w * across + np.cross((x, y, z), across))  # of depth 1
        eye = np.asarray(state.position, np.float64)
        depth = np.full((height, width), np.inf)
        ids = np.zeros((height, width), np.uint32)
        boxes: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, bool]] = [
            (*self.stage_box, eye, rays, 0, True)
        ]
        for placed in self._objects.placed:
            if placed.is_of_scene:
                turn, middle = placed.transformation[:3, :3], placed.transformation[:3, 3]
            else:
                turn, middle = np.eye(3), np.asarray(placed.translation, np.float64)
            box = placed.aabb.min, placed.aabb.max, (eye - middle) @ turn, rays @ turn
            boxes.append((*box, placed.semantic_id, False))
        for low, high, start, along, number, is_inside in boxes:
            with np.errstate(divide="ignore", invalid="ignore"):
                sides = np.sort(np.stack([(low - start) / along, (high - start) / along]), 0)
            near, far = sides[0].max(-1), sides[1].min(-1)
            distance = far if is_inside else near
            hits = (near <= far) & (distance > 1e-6) & (distance < depth)
            depth[hits], ids[hits] = distance[hits], number
        if sensor.sensor_type == SensorType.DEPTH:
            return np.where(np.isfinite(depth), depth, 0).astype(np.float32)
        return ids if sensor.sensor_type == SensorType.SEMANTIC else np.full((height, width, 4), 99, np.uint8)

    def get_rigid_object_manager(self) -> _Objects:
        return self._objects

    get_object_template_manager = get_rigid_object_manager

    def close(self) -> None:
        self.pathfinder = PathFinder()

    def __enter__(self) -> "Simulator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def Configuration(scene: SimulatorConfiguration, agents: list[Any]) -> tuple[SimulatorConfiguration, list[Any]]:
    return scene, agents


AgentState = SimpleNamespace
SensorType = SimpleNamespace(COLOR="color", DEPTH="depth", SEMANTIC="semantic")
physics = SimpleNamespace(MotionType=SimpleNamespace(KINEMATIC="kinematic", STATIC="static"))
agent = SimpleNamespace(
    AgentConfiguration=lambda sensor_specifications: SimpleNamespace(sensor_specifications=sensor_specifications)
)
