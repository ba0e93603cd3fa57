"""Python processes with torch and other slow packages already imported.

Importing them would take most of the time of a short process. Each process is forked from a server that has imported
these packages but nothing of this project, so that each imports the project anew.
"""

import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
from dataclasses import dataclass
from inspect import signature
from multiprocessing import forkserver
from multiprocessing.connection import arbitrary_address
from pathlib import Path
from typing import Any

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "gymnasium",
        "matplotlib.figure",
        "numba",
        "PIL.Image",
        "pytest",
        "safetensors.torch",
        "scipy.ndimage",
        "stable_baselines3",
        "torch._dynamo",  # the first optimizer imports it, which takes as long as torch itself
        "torch.utils.tensorboard",
    ]
)


def free_port() -> str:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@dataclass(frozen=True)
class Done:
    """Result of a process: its exit status (-n if signal n ended it) and its output."""

    returncode: int
    stdout: str
    stderr: str


class Python:
    """A running process `python ARGUMENTS`.

    Processes that it starts with `multiprocessing` are forked from a copy of the same server.

    Args:
        *arguments: "-c" and code, "-m" and a module, or a script; then the arguments of the program.
        folder: Working directory; None for that of this process.
        environ: All environment variables; None for those of this process.
    """

    def __init__(self, *arguments: str, folder: Path | None = None, environ: dict[str, str] | None = None) -> None:
        self._output = tempfile.TemporaryDirectory()
        self._files = [Path(self._output.name) / name for name in ("stdout", "stderr")]
        variables = dict(os.environ) if environ is None else environ
        self._process = SERVER.Process(target=_run, args=(arguments, folder or Path.cwd(), variables, self._files))
        self._process.start()

    @property
    def number(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def wait(self, timeout: float = 300.0) -> Done:
        """Wait for the end, and kill the process if `timeout` seconds pass."""
        self._process.join(timeout)
        self.kill()
        self._process.join()
        assert self._process.exitcode is not None
        out, err = (file.read_text() if file.exists() else "" for file in self._files)
        self._output.cleanup()
        return Done(self._process.exitcode, out, err)

    def kill(self) -> None:
        """Kill the process if it is running."""
        self._process.kill()


def run_python(*arguments: str, folder: Path | None = None, environ: dict[str, str] | None = None) -> Done:
    """Run `python ARGUMENTS` to its end; see `Python`."""
    return Python(*arguments, folder=folder, environ=environ).wait()


def _run(arguments: tuple[str, ...], folder: Path, environ: dict[str, str], files: list[Path]) -> None:
    """Body of the forked process: redirect output, then behave as `python ARGUMENTS`."""
    for number, file in enumerate(files, 1):
        with file.open("wb") as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    multiprocessing.get_context = lambda method=None: SERVER  # type: ignore[assignment]
    _fork_server()
    kind, *rest = arguments
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")


def _fork_server() -> None:
    """Make a copy of this process the server of the processes that it starts.

    Each process would start a server of its own, which imports all packages again.
    """
    key, given = os.urandom(32), {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(arbitrary_address("AF_UNIX"))
        listener.listen()
        alive, kept = os.pipe()  # the server ends when no process keeps the pipe open
        if "authkey_r" in signature(forkserver.main).parameters:  # from Python 3.14 on it knows its clients by a key
            given["authkey_r"], end = os.pipe()
            os.write(end, key)
            os.close(end)
        pid = os.fork()
        if pid == 0:
            os.close(kept)
            try:
                forkserver.main(os.dup(listener.fileno()), alive, [], **given)
            finally:
                os._exit(0)
        for each in (alive, *given.values()):
            os.close(each)
        server: Any = forkserver._forkserver  # type: ignore[attr-defined]
        server._forkserver_address, server._forkserver_alive_fd, server._forkserver_pid = (
            listener.getsockname(), kept, pid,
        )  # fmt: skip
        server._forkserver_authkey = key
