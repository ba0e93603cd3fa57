import os

# One thread: the networks of the tests are so small that a second one only waits. Set it before torch is imported;
# processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Bits are promised on the CPU, and a device of "auto" would take the GPU of a machine that has one.
if os.environ.get("MEMENVS_TEST_GPU") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import ctypes.util
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

INSTALL_DISPLAY = "apt-get install -y xvfb libgl1-mesa-dri libglu1-mesa freeglut3-dev"


@pytest.fixture(scope="session")
def display() -> Iterator[None]:
    """Virtual display with software OpenGL; skips with the install command if there is none."""
    if sys.platform == "darwin":
        pytest.skip("Miniworld is tested on Linux, where a virtual display can be started")
    server = shutil.which("Xvfb")
    missing = [name for name in ("GL", "GLU") if ctypes.util.find_library(name) is None]
    if server is None or missing:
        pytest.skip(f"needs Xvfb and Mesa: {INSTALL_DISPLAY}")
    read, write = os.pipe()
    process = subprocess.Popen(
        [server, "-displayfd", str(write), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(write)
    with os.fdopen(read) as answer:
        number = answer.readline().strip()  # Xvfb picks a free number; nothing is written if it cannot start
    before = os.environ.get("DISPLAY")
    try:
        if not number:
            pytest.skip(f"Xvfb did not start (exit status {process.wait()}); try: {INSTALL_DISPLAY}")
        os.environ["DISPLAY"] = f":{number}"
        yield
    finally:
        if before is None:
            os.environ.pop("DISPLAY", None)
        else:
            os.environ["DISPLAY"] = before
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@pytest.fixture
def miniworld(request: pytest.FixtureRequest) -> None:
    """The package, with a display."""
    request.getfixturevalue("display")
    pytest.importorskip("miniworld", reason="needs miniworld: pip install 'memenvs[miniworld]'")


@pytest.fixture(scope="session", autouse=True)
def sb3_logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let learners of Stable-Baselines3 share a folder of logs; else each leaves one in /tmp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield


#: Compiles the renderer in a fresh checkout, which takes a minute.
COMPILES = Path(__file__).parent / "objectnav" / "test_ext_objnav.py"
#: Train agents for two minutes and draw no homes.
LEARNING = Path(__file__).parent / "learning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files, which workers take one after the other.

    One worker compiles the renderer while the others train agents, so that it is compiled once. What takes longest
    comes next, so that several workers end at the same time.
    """
    marked = [
        {item.path for item in items if item.get_closest_marker(name)} for name in ("learning", "programs", "slow")
    ]

    def place(item: pytest.Item) -> list[bool]:
        first = [item.path == COMPILES, item.path.parent == LEARNING]
        return [not each for each in (*first, *(item.path in paths for paths in marked))]

    items.sort(key=place)
