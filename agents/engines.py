"""Engines that do the runs of a study: processes of this machine, SLURM, Ray.

An engine starts workers, each of which calls a function once. It schedules nothing: what a worker does is up to the
function, see `memenvs.agents.work`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

#: Names that `open_engine` takes; the last may be followed by ":" and an address.
ENGINES = ("local", "slurm", "ray")
#: Seconds that a run may take for its checkpoint when the command is stopped.
STOP_SECONDS = 60.0
#: Seconds between two questions about the jobs of SLURM.
POLL_SECONDS = 1.0
Work = Callable[[], Any]
"""What a worker calls, in another process: a function of a module or a `functools.partial` of one."""
Start = Callable[[Work, int], list[Future[Any]]]
"""Starts as many workers as the number says."""


def check_engine(name: str, resources: Mapping[str, Any] | None = None) -> None:
    """Check the name of an engine, and that it has resources; see `open_engine`.

    Raises:
        ValueError: There is no such engine, or it has none.
    """
    kind, _, address = name.partition(":")
    if kind not in ENGINES or (address and kind != "ray"):
        raise ValueError(f"an engine must be local, slurm, ray or ray:ADDRESS, got {name!r}")
    if kind == "local" and resources:
        raise ValueError(f"resources are of slurm and ray; processes of this machine have none, got {resources}")


@contextmanager
def open_engine(
    name: str, folder: Path, processes: int | None = None, resources: Mapping[str, Any] | None = None
) -> Iterator[Start]:
    """Open an engine, which waits for its workers at the end.

    After an exception, such as that of Ctrl-C, workers of this machine and of Ray save a checkpoint and end. Jobs of
    SLURM stay in its queue.

    Args:
        name: "local", "slurm", or "ray", which may be followed by ":" and the address of a cluster.
        folder: Folder for the files of SLURM's jobs, which all machines can read.
        processes: Workers at the same time; None for one on this machine, and for as many as there is room for else.
        resources: What each worker gets: parameters of submitit's executor, or options of `ray.remote`.

    Yields:
        Function that starts workers.

    Raises:
        ValueError: There is no such engine, or it has no such resource.
        ImportError: The package of the engine is missing.
    """
    check_engine(name, resources)
    kind, _, address = name.partition(":")
    if kind == "local":
        with _local(processes or 1) as start:
            yield start
    elif kind == "slurm":
        yield _slurm(folder, processes, resources or {})
    else:
        with _ray(address, resources or {}) as start:
            yield start


@contextmanager
def _local(processes: int) -> Iterator[Start]:
    """Start workers in processes of this machine, which end with this one."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _end_with_parent)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, _interrupt_once)
    try:
        yield lambda work, count: [pool.submit(work) for _ in range(count)]
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


def _slurm(folder: Path, processes: int | None, resources: Mapping[str, Any]) -> Start:
    """Submit workers as arrays of jobs."""
    import submitit

    # Jobs that reach the time limit are queued again, as often as it takes
    executor = submitit.AutoExecutor(folder / "slurm", cluster="slurm", slurm_max_num_timeout=1000)
    defaults = {"name": "memenvs", "timeout_min": 240, "cpus_per_task": 1, "slurm_array_parallelism": processes}
    try:
        executor.update_parameters(**{**defaults, **resources})
    except (NameError, AssertionError) as error:  # which submitit raises
        raise ValueError(f"resources: {error}") from None

    def start(work: Work, count: int) -> list[Future[Any]]:
        with executor.batch():
            jobs = [executor.submit(PreemptibleWork(work)) for _ in range(count)]
        futures: list[Future[Any]] = [Future() for _ in jobs]
        Thread(target=_follow, args=(dict(zip(futures, jobs, strict=True)),), daemon=True).start()
        return futures

    return start


def _follow(jobs: dict[Future[Any], Any]) -> None:
    """Give the results of SLURM's jobs to their futures as they end."""
    while jobs:
        for future, job in list(jobs.items()):
            if job.done():
                del jobs[future]
                error = job.exception()
                if error is None:
                    future.set_result(job.result())
                else:
                    future.set_exception(error)
        time.sleep(POLL_SECONDS)


class PreemptibleWork:
    """Work in a job of SLURM, which is queued again after a preemption or its time limit.

    Before either, submitit gets a signal, on which it calls `checkpoint` and queues the job again. It would end the
    training where it is. So the signal first interrupts the training as Ctrl-C does, which saves its state.

    Args:
        work: What the job calls.
    """

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self) -> Any:
        """Do the work."""
        import submitit

        number = signal.Signals[f"SIG{submitit.JobEnvironment.USR_SIG}"]
        queue_again: Any = signal.getsignal(number)
        interrupted = False

        def interrupt(number: int, frame: FrameType | None) -> None:
            nonlocal interrupted
            interrupted = True
            signal.raise_signal(signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        # SLURM sends it some time before it kills a job. One that ended on it would not be queued again.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(number, interrupt)
        try:
            return self.work()
        except KeyboardInterrupt:
            if interrupted:
                queue_again(number, None)  # ends the process
            raise
        finally:
            signal.signal(number, queue_again)

    def checkpoint(self) -> Any:
        """Return what submitit runs when the job begins again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@contextmanager
def _ray(address: str, resources: Mapping[str, Any]) -> Iterator[Start]:
    """Start workers as tasks of a Ray cluster, which tries those again whose process or machine is gone."""
    import ray

    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address or None, log_to_driver=False)
    tasks: list[Any] = []
    try:
        task = ray.remote(_call).options(**resources)

        def start(work: Work, count: int) -> list[Future[Any]]:
            tasks.extend(task.remote(work) for _ in range(count))
            return [reference.future() for reference in tasks[len(tasks) - count :]]

        yield start
    except BaseException:
        for reference in tasks:
            ray.cancel(reference)  # a KeyboardInterrupt, on which a training saves a checkpoint
        ray.wait(tasks, num_returns=len(tasks), timeout=STOP_SECONDS)
        raise
    finally:
        if is_ours:
            ray.shutdown()


def _call(work: Work) -> Any:
    """Call a function; Ray's tasks are functions of a module."""
    return work()
