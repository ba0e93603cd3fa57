"""Compilation by numba, which takes a minute at the first use of homes: cache and messages."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Environment variable of numba: the folder of compiled code.
CACHE_VARIABLE = "NUMBA_CACHE_DIR"

#: Seconds between two messages while functions are compiled.
MESSAGE_SECONDS = 10.0

_FIRST_MESSAGE = (
    "memenvs: compiling (once; about a minute for environments in homes, seconds for others; "
    "`memenvs warmup` does it ahead)"
)


def choose_cache_folder() -> None:
    """Let numba keep compiled code in a folder of temporary files where it finds no other.

    numba tries `NUMBA_CACHE_DIR`, the folder of each module and the user's cache. Without them it raises an error, as
    in a container whose installation is read-only and whose user has neither a home nor a name.
    """
    in_home = "Library/Caches" if sys.platform == "darwin" else ".cache"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(f"~/{in_home}"))
    named = os.environ.get(CACHE_VARIABLE)
    if (named and _can_write(Path(named))) or _can_write(Path(__file__).parent / "__pycache__"):
        return
    if caches.is_absolute() and _can_write(caches / "numba"):  # not so where nobody knows what ~ is
        return
    with suppress(OSError):  # there may be no folder of temporary files either
        owner = os.getuid() if hasattr(os, "getuid") else 0
        folder = Path(tempfile.gettempdir()) / f"memenvs-{owner}"
        # Compiled code is executed, so nobody else may have made the folder.
        if _can_write(folder) and (folder.lstat().st_uid, folder.lstat().st_mode & 0o022) == (owner, 0):
            os.environ[CACHE_VARIABLE] = str(folder)  # processes that this one starts need it too
            if "numba" in sys.modules:
                sys.modules["numba"].config.CACHE_DIR = str(folder)
            return
    from numba.core.dispatcher import Dispatcher

    Dispatcher.enable_caching = lambda self: None  # type: ignore[method-assign]
    warnings.warn(
        "no folder for compiled code can be written, so that each process compiles anew, which may take a minute; "
        f"name one by the environment variable {CACHE_VARIABLE}",
        RuntimeWarning,
        stacklevel=2,
    )


def need_compiler() -> None:
    """Refuse to go on if numba does not compile.

    Modules with `intrinsic` functions call it, as those are LLVM code.

    Raises:
        ImportError: `NUMBA_DISABLE_JIT` is set.
    """
    from numba import config

    disabled: int = config.DISABLE_JIT  # type: ignore[attr-defined]
    if disabled:
        raise ImportError(
            "environments in homes and 3D rooms need numba's compiler for the renderer and for distances: "
            f"NUMBA_DISABLE_JIT must be 0 or unset, got {disabled}"
        )


def _can_write(folder: Path) -> bool:
    """Return True if a file can be made in a folder; make the folder if it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class CompilationLog:
    """Messages on standard error while `memenvs` is compiled.

    Attributes:
        num_functions: Functions whose compilation has begun so far, those that they call among them.
    """

    def __init__(self) -> None:
        self.num_functions = 0
        self._is_registered = False
        self._depth = 0  # nesting: a function compiles those that it calls
        self._start = 0.0  # of the outermost compilation in progress, s
        self._seconds = 0.0  # duration of the finished outermost compilations
        self._reported = 0.0  # seconds of compilation at the last message

    def register(self) -> None:
        """Begin to listen to numba, if it is imported; a second call does nothing.

        Importing numba takes half a second, so this never imports it.
        """
        if self._is_registered or "numba" not in sys.modules:
            return
        from numba.core import event

        log = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                log.note(event.data["dispatcher"].py_func.__module__, is_start=True)

            def on_end(self, event: Any) -> None:
                log.note(event.data["dispatcher"].py_func.__module__, is_start=False)

        event.register("numba:compile", Listener())
        self._is_registered = True

    def note(self, module: str, *, is_start: bool) -> None:
        """Count a function whose compilation starts or ends, and print what is due."""
        if not module.startswith("memenvs."):
            return
        now = time.monotonic()
        if is_start:
            if self.num_functions == 0:
                print(_FIRST_MESSAGE, file=sys.stderr, flush=True)
            if self._depth == 0:
                self._start = now
            self.num_functions += 1
            self._depth += 1
        seconds = self._seconds + now - self._start
        if not is_start:
            self._depth -= 1
            if self._depth == 0:
                self._seconds = seconds
        if seconds - self._reported >= MESSAGE_SECONDS:
            self._reported = seconds
            message = f"memenvs: compiling, {seconds:.0f} s, {self.num_functions} functions so far"
            print(message, file=sys.stderr, flush=True)


#: The log of this process.
COMPILATION = CompilationLog()
