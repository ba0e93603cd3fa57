"""Many runs by one command, in several processes that end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection
from threading import Thread
from types import FrameType
from typing import Any, NamedTuple

#: Seconds that a run may take for its checkpoint when the command is stopped.
STOP_SECONDS = 60.0


class Job(NamedTuple):
    """Work on one run.

    Attributes:
        work: Called in another process, so it is a function of a module or a `functools.partial` of one.
        after: Name of the job that has to end first, such as the run whose weights this one begins with.
    """

    work: Callable[[], Any]
    after: str | None = None


def run_jobs(jobs: Mapping[str, Job], processes: int) -> Iterator[tuple[str, Any]]:
    """Run jobs in several processes, those that wait for no other first.

    If a job fails, the others go on, but those that wait for it do not. After Ctrl-C running jobs get SIGTERM, on which
    a training saves a checkpoint. All of them end if this process is killed.

    Args:
        jobs: Name -> job.
        processes: Jobs at the same time, >= 1.

    Yields:
        (name, result) of each job, as it ends.

    Raises:
        RuntimeError: Jobs failed; the message names them with the reason.
    """
    waiting = dict(jobs)
    started: dict[Future[Any], str] = {}
    failed: dict[str, str] = {}
    cause: BaseException | None = None
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _end_with_parent)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, _interrupt_once)
    try:
        while waiting or started:
            busy = {*waiting, *started.values()}
            for name, job in list(waiting.items()):
                if job.after in failed:
                    failed[name] = f"begins with the weights of {job.after}"
                    del waiting[name]
                elif job.after not in busy:
                    started[pool.submit(waiting.pop(name).work)] = name
            ended, _ = wait(started, return_when=FIRST_COMPLETED)
            for future in ended:
                name = started.pop(future)
                error = future.exception()
                if error is None:
                    yield name, future.result()
                else:
                    failed[name] = f"{type(error).__name__}: {error}"
                    cause = cause or error
        pool.shutdown()
    except BaseException:  # also Ctrl-C: running processes are stopped, and the next command resumes their runs
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted clean-up would leave processes behind
        children = multiprocessing.active_children()
        for process in children:
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        for process in children:
            process.join(STOP_SECONDS)
            process.kill()
        raise
    finally:
        if not isinstance(sys.exception(), KeyboardInterrupt):  # after which the command ends
            signal.signal(signal.SIGINT, before)
    if failed:
        lines = [f"{name}: {reason}" for name, reason in failed.items()]
        raise RuntimeError("\n".join([f"{len(failed)} of {len(jobs)} runs failed", *lines])) from cause


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Raise a KeyboardInterrupt, and ignore a second one, which may come before the clean-up begins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Initialise a process of the pool: it ends when the command does, even if that is killed, with a checkpoint.

    It ignores Ctrl-C, which reaches every process of a terminal: a child that only dropped its run would begin the next
    one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
