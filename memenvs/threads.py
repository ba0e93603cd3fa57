"""A pool of threads that survives forks and copies."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool:
    """Threads that start with the first task; a forked process or a copy starts its own.

    A fork copies the object but not its threads, so that an inherited `ThreadPoolExecutor` would wait for ever.

    Args:
        size: Number of threads, >= 1.
        name: Begins the names of the threads.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._process = 0  # id of the process whose threads they are

    def submit(self, task: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task in one of the threads."""
        if self._executor is None or self._process != os.getpid():
            self._executor = ThreadPoolExecutor(self._size, thread_name_prefix=self._name)
            self._process = os.getpid()
        return self._executor.submit(task, *args, **kwargs)

    def close(self) -> None:
        """Drop tasks that have not begun and stop the threads; a later `submit` starts them again."""
        if self._executor is not None and self._process == os.getpid():
            self._executor.shutdown(cancel_futures=True)
        self._executor = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_executor": None}
