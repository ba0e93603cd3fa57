"""Sweeps: many runs by one command, in several processes, each after the run whose weights it begins with."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from threading import Thread

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory, find_conflict
from memenvs.agents.experiments.study_results import find_row_conflict, has_results


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep.

    Attributes:
        config: Its settings. If `encoder_from` is the folder of another run of the sweep, it waits for that one.
        work: Trains and evaluates the run that it is given, from where that is; the second argument says whether to show no progress. It is sent to
            another process, so it is a function of a module or a `functools.partial` of one.
        results: Names of the evaluations that `work` leaves, `NAME.json` in the folder. A run that has them, in its folder or
            as a row of a table beside it, is done and needs no checkpoint to be shown. A run that leaves none is carried
            out only for those that begin with its weights.
    """

    config: RunConfig
    work: Callable[[RunDirectory, bool], object]
    results: tuple[str, ...]


def sweep_options(parser: argparse.ArgumentParser, out: str, argv: list[str] | None = None) -> argparse.Namespace:
    """Adds the options that all sweeps have, and parses the command line.

    Args:
        parser: With the options of this sweep.
        out: Folder of the runs, if none is given.
        argv: Arguments; None for those of the process.

    Returns:
        Options, among them `out` (Path), `seeds` (list of int), `jobs` (int), `show` and `smoke` (bool). With `smoke` the folder is one of its own
        and there is one seed.
    """
    parser.add_argument(
        "--out", type=Path, default=Path(out), help="started runs in it are continued (default %(default)s)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], help="each one is another run of each preset (default 0 1 2)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default 1)")
    parser.add_argument("--show", action="store_true", help="train nothing: only the tables of the runs that are done")
    parser.add_argument(
        "--smoke", action="store_true", help="train one seed for seconds, in OUT/smoke: shows that everything runs"
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
    """Carries out the runs that are not done; prints the folder of each that is, in their order.

    If one fails, the others go on and those that would begin with its weights do not start; if the command is stopped or killed, so are all.

    Args:
        parser: Refuses what cannot be done, before anything is.
        options: Those of `sweep_options`; with `show` nothing is carried out.
        runs: Folder -> run; after the run whose weights it begins with.

    Returns:
        Folders of the runs that are done and have something to show, in order.

    Raises:
        RuntimeError: Runs failed; the message names them and says why.
    """
    if options.show:
        runs = {folder: run for folder, run in runs.items() if run.results and has_results(folder, *run.results)}
        if not runs:
            parser.error(f"--show: no run in {options.out} is done")
    settings = {folder: run.config for folder, run in runs.items()}
    problem = find_conflict(settings) or find_row_conflict(settings)
    if problem:
        parser.error(problem)
    if not options.show:
        _carry_out(runs, options.jobs)
    done = [folder for folder, run in runs.items() if run.results]
    for folder in done:
        print(f"done: {folder}", flush=True)
    return done


def over_seeds(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the runs of a sweep.

    Args:
        sample: float, (runs, ...), at least one run.

    Returns:
        float64, (...) each; the error of a single run is 0.
    """
    spread = sample.std(0, ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else np.zeros(sample.shape[1:])
    return sample.mean(0), spread


def mean_and_error(sample: np.ndarray) -> str:
    """Mean and, of several runs, standard error of numbers, float (runs,), as tables have them: "97.5 +- 0.3"."""
    mean, spread = over_seeds(sample)
    return f"{mean:.1f}" + f" +- {spread:.1f}" * (len(sample) > 1)


def percent(sample: np.ndarray) -> str:
    """`mean_and_error` of shares, in %."""
    return mean_and_error(100 * sample)


def _carry_out(runs: dict[Path, SweepRun], jobs: int) -> None:
    """All runs in `jobs` processes, those that wait for no other first."""
    waiting = _unfinished(runs)
    started: dict[Future[None], Path] = {}
    failed: dict[Path, str] = {}
    cause: BaseException | None = None
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_the_parent)
    try:
        while waiting or started:
            busy = {*waiting, *started.values()}
            for folder in list(waiting):
                source = waiting[folder].config.encoder_from
                if source is not None and Path(source) in failed:
                    failed[folder] = f"begins with the weights of {source}"
                    del waiting[folder]
                elif source is None or Path(source) not in busy:
                    started[pool.submit(_work, folder, waiting.pop(folder), jobs > 1)] = folder
            ended, _ = wait(started, return_when=FIRST_COMPLETED)
            for future in ended:
                folder, error = started.pop(future), future.exception()
                if error is not None:
                    failed[folder] = f"{type(error).__name__}: {error}"
                    cause = cause or error
                print(f"{'failed' if folder in failed else 'trained'}: {folder}", flush=True)
    except BaseException:  # also a stop by the user: what is running is stopped too, and goes on with the next command
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    if failed:
        lines = [f"{folder}: {why}" for folder, why in failed.items()]
        raise RuntimeError("\n".join([f"{len(failed)} of {len(runs)} runs failed", *lines])) from cause


def _unfinished(runs: dict[Path, SweepRun]) -> dict[Path, SweepRun]:
    """Those that lack files, and of those that leave none what others of these begin with."""
    found: dict[Path, SweepRun] = {}
    for folder, run in reversed(runs.items()):
        sources = [Path(each.config.encoder_from) for each in found.values() if each.config.encoder_from is not None]
        if not has_results(folder, *run.results) if run.results else folder in sources:
            found[folder] = run
    return dict(reversed(found.items()))


def _end_with_the_parent() -> None:
    """A process of the pool ends when the command does, also when that is killed; until then it does not listen to Ctrl-C.

    Ctrl-C reaches every process of a terminal; a child that only drops its run would begin the next one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _work(folder: Path, run: SweepRun, quiet: bool) -> None:
    """One run, to its end."""
    with RunDirectory.open_or_create(folder, run.config) as directory:
        run.work(directory, quiet)
