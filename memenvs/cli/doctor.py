"""`memenvs doctor`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import memenvs
from memenvs.checks import choices_for
from memenvs.cli.common import print_json
from memenvs.cli.extras import EXTRAS
from memenvs.compilation import CACHE_VARIABLE
from memenvs.data import ASSET_SIZES_FILE, DATA_VARIABLE, PROCTHOR_FILE, VLN_FOLDER, data_root
from memenvs.files import list_files

#: Seconds after which a check in a process of its own has failed.
TIMEOUT = 120
#: Most characters of a reason.
_MAX_REASON = 300


class Unavailable(Exception):
    """A part does not work; the message says why, and what to do."""


@dataclass(frozen=True)
class Part:
    """Something that works on this machine or does not.

    Attributes:
        name: On the command line.
        serves: What needs it.
        check: Describes the part in one line, or raises `Unavailable`.
        needed: Whether the package is of no use without it.
    """

    name: str
    serves: str
    check: Callable[[], str]
    needed: bool = False


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    needed, parts = ([part.name for part in PARTS if part.needed or not only] for only in (True, False))
    command.add_argument(
        "parts",
        nargs="*",
        type=part_name,
        metavar="PART",
        help="parts to check; the exit status is 1 where one of them does not work (default: all, of which only "
        f"{' and '.join(needed)} must work); {', '.join(parts)}",
    )


def run(arguments: argparse.Namespace) -> None:
    """Print what works on this machine and why the rest does not.

    Raises:
        SystemExit: With status 1, where a part that was named, or one that everything needs, does not work.
    """
    findings = []
    if not arguments.json:
        print(f"memenvs {memenvs.__version__}, Python {platform.python_version()}, {platform.platform()}")
        print("what is compiled at its first use takes a while; it is then kept", flush=True)
    for part in PARTS:
        if not arguments.parts or part.name in arguments.parts:
            findings.append(examine(part))
            if not arguments.json:
                print(describe(findings[-1]), flush=True)
    works = all(finding["works"] for finding in findings if arguments.parts or finding["needed"])
    if arguments.json:
        print_json(
            {
                "memenvs": memenvs.__version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "works": works,
                "parts": findings,
            }
        )
    if not works:
        raise SystemExit(1)


def examine(part: Part) -> dict[str, Any]:
    """Check a part; whatever goes wrong in it is its reason.

    Returns:
        `name`, `serves` and `needed` of the part; whether it `works`; and as `detail` its description, or the reason.
    """
    try:
        works, detail = True, part.check()
    except Exception as error:
        works, detail = False, str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"
    detail = " ".join(detail.split())[:_MAX_REASON]
    return {"name": part.name, "works": works, "detail": detail, "serves": part.serves, "needed": part.needed}


def describe(finding: dict[str, Any]) -> str:
    """Format the result of `examine` as a line of the table."""
    state = "works" if finding["works"] else "FAILS" if finding["needed"] else "no"
    reason = "" if finding["works"] else f" (for {finding['serves']})"
    return f"{state:5}  {finding['name']:11}  {finding['detail']}{reason}"


def in_own_process(call: str) -> Callable[[], str]:
    """Make a check that calls a function in a process of its own, which a driver may end.

    Args:
        call: "module:function"; it returns the description or raises.
    """

    def check() -> str:
        module, _, function = call.partition(":")
        script = (
            "import json\n"
            "from importlib import import_module\n"
            "try:\n"
            f"    answer = True, str(import_module({module!r}).{function}())\n"
            "except Exception as error:\n"
            "    answer = False, str(error) or repr(error)\n"
            "print()\n"
            "print(json.dumps(answer))\n"
        )
        try:
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"gave no answer within {TIMEOUT} s") from error
        lines = done.stdout.splitlines()
        if done.returncode != 0 or not lines:
            how = f"status {done.returncode}" if done.returncode >= 0 else signal.Signals(-done.returncode).name
            printed = [line for line in done.stderr.strip().splitlines() if not line.startswith("memenvs: ")]
            raise Unavailable(f"ends the process with {how}: {(printed or ['no message'])[-1]}")
        works, line = json.loads(lines[-1])  # before it, libraries may have printed
        if not works:
            raise Unavailable(line)
        return str(line)

    return check


def check_renderer() -> str:
    """Draw an image of a generated home."""
    import numpy as np

    from memenvs.houses.procedural.generator import procedural_house
    from memenvs.houses.rendering.camera import Camera
    from memenvs.houses.rendering.pipeline import render_envs
    from memenvs.houses.rendering.renderer import Renderer
    from memenvs.houses.rendering.scene import Scene

    camera = Camera(height=128, width=128, hfov_deg=90.0)
    renderer = Renderer(camera, 1)
    house = procedural_house(0)
    renderer.set_scene(0, Scene.from_house(house))
    middle = np.mean(house.rooms[0].polygon, axis=0)
    rgb = np.zeros((1, camera.height, camera.width, 3), np.uint8)
    poses = np.array([[*middle, 1.2, 0.0, 0.0]])
    renderer.render(poses, rgb=rgb)  # compiles at the first use
    if len(np.unique(rgb)) < 2:
        raise Unavailable("draws nothing but one colour")
    start = time.perf_counter()
    renderer.render(poses, rgb=rgb)
    milliseconds = 1000 * (time.perf_counter() - start)
    path = render_envs.stats.cache_path
    kept = f"kept in {path}" if path else "kept nowhere"
    if not path or Path(path).is_relative_to(tempfile.gettempdir()):
        kept += f"; set {CACHE_VARIABLE} to a folder that lasts"
    return f"128 x 128 pixels in {milliseconds:.1f} ms, compiled code {kept}"


def open_window() -> str:
    """Open the display of pygame; the driver may end the process."""
    if importlib.util.find_spec("pygame") is None:
        raise Unavailable("pygame is not installed: pip install 'memenvs[play]'")
    os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    import pygame

    try:
        pygame.display.init()
    except pygame.error as error:
        name = os.environ.get("DISPLAY")
        where = f"DISPLAY is {name!r}" if name else "DISPLAY is not set"
        raise Unavailable(
            f"pygame opens no window: {error}; {where}; without a screen start with: xvfb-run -a"
        ) from error
    driver = pygame.display.get_driver()
    if driver in ("dummy", "offscreen"):
        raise Unavailable(f"pygame has only its driver {driver!r}, which shows nothing; without a screen: xvfb-run -a")
    return f"pygame {pygame.version.ver} opens windows by {driver}"


def open_miniworld() -> str:
    """Draw a view of FourBoxes in Miniworld, which needs a display and may end the process."""
    from memenvs.box_rooms.worlds import explain_miniworld

    with explain_miniworld():
        from memenvs.four_boxes.miniworld import MiniworldRoom

        MiniworldRoom(1).place(0, (0.0, 0.0, 0.0), 0)
    return f"miniworld {version('miniworld')} draws"


def check_gpu() -> str:
    """Name the GPUs that PyTorch can use."""
    torch = _import_torch()
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        return ", ".join(f"{gpu.name} with {gpu.total_memory / 2**30:.0f} GiB" for gpu in names)
    if torch.backends.mps.is_available():
        return "Apple GPU (mps)"
    if torch.version.cuda is None and torch.version.hip is None:
        raise Unavailable(f"PyTorch {torch.__version__} is built for the CPU; everything runs there")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    reason = "no GPU or no driver" if hidden is None else f"no GPU or no driver, and CUDA_VISIBLE_DEVICES={hidden!r}"
    raise Unavailable(f"PyTorch {torch.__version__} finds {reason}; everything runs on the CPU")


def check_attention() -> str:
    """Name the kernels of PyTorch's attention that this machine has."""
    torch = _import_torch()
    if not torch.cuda.is_available():
        return "scaled_dot_product_attention on the CPU"
    q = torch.zeros(1, 1, 128, 64, device="cuda", dtype=torch.bfloat16)
    parameters = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True, False)
    usable = {
        "flash": torch.backends.cuda.can_use_flash_attention(parameters),
        "memory-efficient": torch.backends.cuda.can_use_efficient_attention(parameters),
        "math": True,
    }
    return f"scaled_dot_product_attention in bfloat16: {', '.join(name for name, can in usable.items() if can)}"


def _import_torch() -> Any:
    """Import PyTorch.

    Raises:
        Unavailable: It is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise Unavailable("PyTorch is not installed: pip install 'memenvs[agents]'")
    import torch

    return torch


def check_extra(name: str) -> str:
    """Find the packages of an optional dependency; they are not imported."""
    installed, missing = [], []
    for module, package in EXTRAS[name]:
        if importlib.util.find_spec(module) is None:
            missing.append(package)
        else:
            installed.append(f"{package} {_version(package)}")
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)}; pip install 'memenvs[{name}]'")
    return ", ".join(installed)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # in a folder of the path, without its metadata
        return "of unknown version"


def check_procthor() -> str:
    """Find the files of ProcTHOR houses."""
    houses = _data_folder() / PROCTHOR_FILE
    for path in (houses, houses.with_name(ASSET_SIZES_FILE)):
        if not path.is_file():
            raise Unavailable(f"no file {path}")
    return str(houses)


def check_vln() -> str:
    """Find the data of R2R and CVDN."""
    folder = _data_folder() / VLN_FOLDER
    if not folder.is_dir():
        raise Unavailable(f"no folder {folder}")
    names = [path.name.partition(".")[0] for path in list_files(folder, "*.json*")]
    return f"{folder} with {', '.join(names) or 'no file of instructions'}"


def _data_folder() -> Path:
    """Folder of the data.

    Raises:
        Unavailable: The variable is not set, or there is no such folder.
    """
    root = data_root()
    if root is None:
        raise Unavailable(f"{DATA_VARIABLE} is not set")
    if not root.is_dir():
        raise Unavailable(f"{DATA_VARIABLE} is {str(root)!r}, and there is no such folder")
    return root


#: What each optional dependency is for.
_EXTRA_SERVES = {
    "agents": "memenvs train, evaluate and so on",
    "export": "memenvs house --habitat",
    "hdf5": "image features in HDF5",
    "minari": "memenvs dataset",
    "minigrid": "world 'minigrid'",
    "ray": "memenvs study --on ray",
    "slurm": "memenvs study --on slurm",
    "text": "answers in words",
    "video": "videos as .mp4",
}
PARTS = (
    Part("renderer", "every environment in homes and rooms", check_renderer, needed=True),
    *(Part(name, _EXTRA_SERVES[name], partial(check_extra, name)) for name in EXTRAS),
    Part("gpu", "training with --device cuda", check_gpu),
    Part("attention", "memories with attention", check_attention),
    Part("display", "memenvs play", in_own_process(f"{__name__}:open_window")),
    Part("miniworld", "world 'miniworld'", in_own_process(f"{__name__}:open_miniworld")),
    Part("egl", "habitat-sim", in_own_process("memenvs.houses.habitat.egl:describe_egl")),
    Part("habitat-sim", "world 'habitat'", in_own_process("memenvs.houses.habitat.package:describe_habitat")),
    Part("procthor", "world 'procthor'", check_procthor),
    Part("vln", "world 'mp3d' of R2R and CVDN", check_vln),
)


def part_name(text: str) -> str:
    """Parse the argument PART."""
    names = [part.name for part in PARTS]
    if text not in names:
        raise argparse.ArgumentTypeError(f"unknown {text!r}; {choices_for(text, names)}")
    return text
