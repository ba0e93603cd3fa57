"""A recorded stand-in for habitat-sim 0.3.3 that refuses what the real package refuses.

It has no physics and no images: `save_nav_mesh` writes the settings that the mesh was built with. What it refuses was
recorded with the real package: unknown attributes, a camera of a CUDA device that is not there, queries on a
navigation mesh that is not loaded (which end the real process).
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

__version__ = "0.3.3"
built_with_bullet = False


class NavMeshSettings:
    """Settings with the defaults of the real ones; they take no other names, and numbers only."""

    _DEFAULTS: ClassVar[dict[str, float]] = {
        "cell_size": 0.05,
        "cell_height": 0.2,
        "agent_height": 1.5,
        "agent_radius": 0.1,
        "agent_max_climb": 0.2,
        "agent_max_slope": 45.0,
    }

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

    scene_id: str
    gpu_device_id: int
    __slots__ = ("gpu_device_id", "scene_id")

    def __init__(self) -> None:
        self.scene_id = ""
        self.gpu_device_id = 0


class PathFinder:
    """Navigation mesh of a simulator."""

    def __init__(self) -> None:
        self.settings: dict[str, float] | None = None

    @property
    def is_loaded(self) -> bool:
        return self.settings is not None

    def save_nav_mesh(self, path: str) -> bool:
        if self.settings is None:
            raise SystemError("segmentation fault: the navigation mesh is not loaded")
        Path(path).write_text(json.dumps(self.settings))
        return True


class Simulator:
    """A simulator without a renderer, which needs no device as long as no agent has a sensor."""

    def __init__(self, configuration: tuple[SimulatorConfiguration, list[Any]]) -> None:
        scene, agents = configuration
        assert len(agents) >= 1
        if agents[0].sensor_specifications and scene.gpu_device_id != -1:
            raise SystemExit("unable to find CUDA device 0 among 1 EGL devices in total")
        self.stage = json.loads(Path(scene.scene_id).read_text())
        if ("up" in self.stage) != ("front" in self.stage):
            raise AssertionError("up and front: both or none")
        for key in ("render_asset", "semantic_asset", "semantic_descriptor_filename"):
            assert (Path(scene.scene_id).parent / self.stage[key]).is_file(), key
        self.pathfinder = PathFinder()

    def recompute_navmesh(self, pathfinder: PathFinder, settings: NavMeshSettings) -> bool:
        if settings.agent_radius > 5.0:
            return False  # no floor is left; the old mesh stays
        pathfinder.settings = dict(vars(settings))
        return True

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.pathfinder.settings = None


def Configuration(scene: SimulatorConfiguration, agents: list[Any]) -> tuple[SimulatorConfiguration, list[Any]]:
    return scene, agents


agent = SimpleNamespace(
    AgentConfiguration=lambda sensor_specifications: SimpleNamespace(sensor_specifications=sensor_specifications)
)
