"""Messages about the compilation of numba, which takes a minute at the first use of homes."""

from __future__ import annotations

import sys
import time
from typing import Any

#: Seconds between two messages while functions are compiled.
MESSAGE_SECONDS = 10.0

_FIRST_MESSAGE = (
    "memenvs: compiling (once; about a minute for environments in homes, seconds for others; "
    "`memenvs warmup` does it ahead)"
)


class CompilationLog:
    """Messages on standard error while functions of `memenvs` are compiled.

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
