"""Sweeps: many runs by one command, in several processes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from types import FrameType

from memenvs.agents.experiments.config import RunConfig, has_checkpoint
from memenvs.agents.experiments.directory import RunDirectory, find_conflict
from memenvs.agents.studies.study_results import find_row_conflict, has_results
from memenvs.cli.common import lossy_streams

#: Seconds that a run may take for its checkpoint when the command is stopped.
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep.

    Attributes:
        config: Settings. If `encoder_from` is the folder of another run of the sweep, this run waits for that one.
        work: Function that trains (or resumes) and evaluates a run, of the run and whether to be quiet. It is sent to
            another process, so it is a function of a module or a `functools.partial` of one.
        results: Names of the evaluations that `work` writes, `NAME.json` in the folder. A run that has them, in its
            folder or as a row of a table beside it, is done and needs no checkpoint. A run without any is trained only
            if another one starts with its weights.
    """

    config: RunConfig
    work: Callable[[RunDirectory, bool], object]
    results: tuple[str, ...]


def sweep_options(parser: argparse.ArgumentParser, out: str, argv: list[str] | None = None) -> argparse.Namespace:
    """Add the options that all sweeps have, and parse the command line.

    Args:
        parser: Parser with the options of this sweep.
        out: Default folder of the runs.
        argv: Arguments; None for those of the process.

    Returns:
        Options, among them `out` (Path), `seeds` (list of int), `jobs` (int), `show` and `smoke` (bool). With `smoke`
        there is one seed, in a folder of its own.
    """
    parser.add_argument(
        "--out", type=Path, default=Path(out), help="folder; runs in it are resumed (default %(default)s)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], help="one run of each preset per seed (default 0 1 2)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default 1)")
    parser.add_argument("--show", action="store_true", help="train nothing: show the tables of the runs that are done")
    parser.add_argument(
        "--smoke", action="store_true", help="train one seed for seconds, in OUT/smoke, to see that everything runs"
    )
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error(f"--jobs: must be >= 1, got {options.jobs}")
    if min(options.seeds) < 0:
        parser.error(f"--seeds: must be >= 0, got {min(options.seeds)}")
    if options.smoke:
        options.out /= "smoke"
        options.seeds = options.seeds[:1]
    return options


def run_sweep(parser: argparse.ArgumentParser, options: argparse.Namespace, runs: dict[Path, SweepRun]) -> list[Path]:
    """Train the runs that are not done, then print the folders of the finished ones.

    If a run fails, the others go on, but those that would start with its weights do not. After Ctrl-C the runs write
    checkpoints, and the command ends with status 130. All runs stop if it is killed.

    Args:
        parser: Parser that reports runs that cannot be resumed, before any work.
        options: Options of `sweep_options`; with `show` nothing is trained.
        runs: Folder -> run; each after the run whose weights it starts with.

    Returns:
        Folders of the runs with `results`, in order.

    Raises:
        RuntimeError: Runs failed; the message names them with the reason.
    """
    if options.show:
        runs = {folder: run for folder, run in runs.items() if run.results and has_results(folder, *run.results)}
        if not runs:
            parser.error(f"--show: no run in {options.out} is done")
    configs = {folder: run.config for folder, run in runs.items()}
    problem = find_conflict(configs) or find_row_conflict(configs)
    if problem:
        parser.error(problem)
    if not options.show:
        try:
            with lossy_streams(parser.prog):
                _run_all(runs, options.jobs)
        except KeyboardInterrupt:
            parser.exit(130, "stopped; the same command goes on with the runs that are not done\n")
    done = [folder for folder, run in runs.items() if run.results]
    for folder in done:
        print(f"done: {folder}", flush=True)
    if options.smoke:
        print("smoke: everything runs; after so short a training the numbers mean nothing", flush=True)
    return done


def group_by_name(folders: Iterable[Path]) -> dict[str, list[Path]]:
    """Group the folders of runs, "NAME-SEED", by name.

    Returns:
        Name -> folders, both in order.
    """
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        groups.setdefault(folder.name.rpartition("-")[0], []).append(folder)
    return groups


def _run_all(runs: dict[Path, SweepRun], jobs: int) -> None:
    """Work on all unfinished runs in `jobs` processes, those that wait for no other first."""
    waiting = _unfinished(runs)
    started: dict[Future[None], Path] = {}
    failed: dict[Path, str] = {}
    cause: BaseException | None = None
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, _interrupt_once)
    try:
        while waiting or started:
            busy = {*waiting, *started.values()}
            for folder in list(waiting):
                source = waiting[folder].config.encoder_from
                if source is not None and Path(source) in failed:
                    failed[folder] = f"starts with the weights of {source}"
                    del waiting[folder]
                elif source is None or Path(source) not in busy:
                    started[pool.submit(_work, folder, waiting.pop(folder), jobs > 1)] = folder
            ended, _ = wait(started, return_when=FIRST_COMPLETED)
            for future in ended:
                folder = started.pop(future)
                error = future.exception()
                if error is not None:
                    failed[folder] = f"{type(error).__name__}: {error}"
                    cause = cause or error
                print(f"{'failed' if folder in failed else 'trained'}: {folder}", flush=True)
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
        lines = [f"{folder}: {reason}" for folder, reason in failed.items()]
        raise RuntimeError("\n".join([f"{len(failed)} of {len(runs)} runs failed", *lines])) from cause


def _unfinished(runs: dict[Path, SweepRun]) -> dict[Path, SweepRun]:
    """Runs that lack results, and those whose weights an unfinished run starts with, if they have no checkpoint."""
    found: dict[Path, SweepRun] = {}
    for folder, run in reversed(runs.items()):
        sources = [Path(each.config.encoder_from) for each in found.values() if each.config.encoder_from is not None]
        is_source = folder in sources and not (run.results and has_checkpoint(folder))
        if is_source or (run.results and not has_results(folder, *run.results)):
            found[folder] = run
    return dict(reversed(found.items()))


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


def _work(folder: Path, run: SweepRun, quiet: bool) -> None:
    """Work on one run to its end."""
    with RunDirectory.open_or_create(folder, run.config) as directory:
        run.work(directory, quiet)
