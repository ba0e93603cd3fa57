"""Other Python processes that begin with torch and its like imported, into which most of a short one's time would go.

They are forked from a server that has imported what is not ours, and nothing that is: each imports this project anew.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["gymnasium", "matplotlib.figure", "numba", "pytest", "safetensors.torch", "stable_baselines3", "torch"]
)


@dataclass(frozen=True)
class Done:
    """How a process ended: its exit status (below 0 by that signal) and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Python:
    """`python ARGUMENTS`, started; what it starts by `multiprocessing` is forked from the same server.

    Args:
        *arguments: "-c" and code, "-m" and a module, or a script; then those of the program.
        folder: Where it runs; None: here.
        environ: All variables of its environment; None: those of this process.
    """

    def __init__(self, *arguments: str, folder: Path | None = None, environ: dict[str, str] | None = None) -> None:
        self._written = tempfile.TemporaryDirectory()
        self._files = [Path(self._written.name) / name for name in ("stdout", "stderr")]
        place, variables = folder or Path.cwd(), dict(os.environ) if environ is None else environ
        self._process = SERVER.Process(target=_run, args=(arguments, place, variables, self._files))
        self._process.start()

    def wait(self, timeout: float = 300.0) -> Done:
        """Waits until it ends; kills it where it does not in time."""
        self._process.join(timeout)
        self.kill()
        self._process.join()
        assert self._process.exitcode is not None
        out, err = (file.read_text() if file.exists() else "" for file in self._files)
        self._written.cleanup()
        return Done(self._process.exitcode, out, err)

    def kill(self) -> None:
        """Kills it, if it runs."""
        self._process.kill()


def run_python(*arguments: str, folder: Path | None = None, environ: dict[str, str] | None = None) -> Done:
    """Runs `python ARGUMENTS` to its end; see `Python`."""
    return Python(*arguments, folder=folder, environ=environ).wait()


def _run(arguments: tuple[str, ...], folder: Path, environ: dict[str, str], files: list[Path]) -> None:
    """What such a process does."""
    for number, file in enumerate(files, 1):
        with file.open("wb") as written:
            os.dup2(written.fileno(), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    multiprocessing.get_context = lambda method=None: SERVER  # type: ignore[assignment]
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
