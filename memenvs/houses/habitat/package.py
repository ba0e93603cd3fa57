"""Import habitat-sim with the choices that it takes only once a process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from typing import Any

from memenvs.houses.habitat.egl import egl_devices
from memenvs.houses.navigation.navmap import CLIMB

#: How to get the package; ends the message about a missing one.
INSTALL_HABITAT = (
    "it is not on PyPI; with Python 3.11 get it by `conda install habitat-sim withbullet headless -c conda-forge -c "
    "aihabitat-nightly`, else from source: https://github.com/facebookresearch/habitat-sim (MIT licence)"
)
#: What a process without a GPU has to set before the package is imported, and what keeps its log short.
_SOFTWARE = {"EGL_PLATFORM": "surfaceless", "LIBGL_ALWAYS_SOFTWARE": "1"}
_QUIET = {"HABITAT_SIM_LOG": "quiet", "MAGNUM_LOG": "quiet"}

_START_MESSAGE = "memenvs: starting habitat-sim (once a process; half a minute or more)"

#: Cells of navigation meshes, m. The default height of 0.2 would put the floor 0.2 m too high.
CELL_SIZE, CELL_HEIGHT = 0.05, 0.05


@cache
def choose_gpu() -> int:
    """Choose what draws: the first CUDA device that EGL offers, or -1 for software.

    habitat-sim ends the process where the choice is wrong, and cannot change it later. So it is made once, before the
    first simulator.

    Raises:
        ImportError: There is no EGL.
    """
    try:
        devices = egl_devices()
    except OSError as error:
        raise ImportError(f"world 'habitat' draws with EGL: {error}") from error
    return min((device.cuda_index for device in devices if device.cuda_index is not None), default=-1)


def import_habitat() -> Any:
    """Import habitat-sim.

    Returns:
        The module `habitat_sim`.

    Raises:
        ImportError: It is not installed, or cannot be loaded; or there is no EGL. The message says what to do.
    """
    for name, value in (_QUIET if choose_gpu() >= 0 else {**_QUIET, **_SOFTWARE}).items():
        os.environ.setdefault(name, value)
    if importlib.util.find_spec("habitat_sim") is None:
        raise ImportError(f"world 'habitat' needs the package habitat-sim; {INSTALL_HABITAT}")
    if "habitat_sim" not in sys.modules:
        print(_START_MESSAGE, file=sys.stderr, flush=True)
    try:
        import_module("quaternion")  # before habitat_sim, as its own tests do
        habitat_sim = import_module("habitat_sim")
    except ImportError as error:
        raise ImportError(f"habitat-sim is installed, but cannot be loaded: {error}") from error
    return habitat_sim


@cache
def check_drawing() -> None:
    """Check that EGL draws.

    It is tried in a process of its own: the package would end this one where it does not.

    Raises:
        ImportError: It does not; the message says what to do.
    """
    script = "from memenvs.houses.habitat.egl import describe_egl; describe_egl()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"the driver ends the process ({done.returncode})"])[-1]
        raise ImportError(f"world 'habitat' draws with EGL: {reason.removeprefix('OSError: ')}")


def navmesh_settings(habitat_sim: Any, radius: float, height: float) -> Any:
    """Return the `NavMeshSettings` for a robot of this radius and height, m."""
    settings = habitat_sim.NavMeshSettings()
    settings.set_defaults()
    settings.agent_radius, settings.agent_height, settings.agent_max_climb = radius, height, CLIMB
    settings.cell_size, settings.cell_height = CELL_SIZE, CELL_HEIGHT
    return settings


def describe_habitat() -> str:
    """Draw an image in an empty scene and return version, features and what drew.

    The package may end the process, so ask in a process of its own.

    Raises:
        ImportError: See `import_habitat`.
    """
    habitat_sim = import_habitat()
    sensor = habitat_sim.CameraSensorSpec()
    sensor.uuid = "depth"
    sensor.sensor_type = habitat_sim.SensorType.DEPTH
    sensor.resolution = [8, 8]
    scene = habitat_sim.SimulatorConfiguration()
    scene.scene_id = "NONE"
    scene.gpu_device_id = choose_gpu()
    agent = habitat_sim.agent.AgentConfiguration(sensor_specifications=[sensor])
    with habitat_sim.Simulator(habitat_sim.Configuration(scene, [agent])) as simulator:
        assert simulator.get_sensor_observations()["depth"].shape == (8, 8)
    physics = "with" if habitat_sim.built_with_bullet else "without"
    drawn = "in software" if choose_gpu() < 0 else f"on GPU {choose_gpu()}"
    return f"habitat-sim {habitat_sim.__version__} {physics} Bullet, draws {drawn}"
