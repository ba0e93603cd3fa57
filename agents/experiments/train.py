"""Training of runs; a killed run resumes bit by bit."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.devices import torch_device
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.policies.small_sizes import WIDTHS, is_number


def check_config(config: RunConfig, processes: Processes | None = None) -> None:
    """Find wrong settings before a run begins.

    It makes an environment for training, one for evaluation, and the learner.

    Args:
        config: Settings of the run.
        processes: Processes that are to train together; None: this one alone.

    Raises:
        ValueError: A setting of the environment, the policy or the learner is not allowed, or cannot be split over the
            processes.
        TypeError: A setting does not exist.
    """
    torch_device(config.device)
    size, settings = config.policy.get("size"), config.policy.get("memory_kwargs") or {}
    for name in WIDTHS:
        if is_number(size) and name in settings:
            raise ValueError(
                f"policy.size must be left out with policy.memory_kwargs.{name}, which would win, got {size}; "
                "--policy.memory_kwargs '{}' leaves out those of a preset"
            )
    config.make_experiment().check(config, processes or Processes())


def train_run(run: RunDirectory, *, quiet: bool = False) -> Any:
    """Train a run to its end, from its checkpoint if it has one.

    A killed run that is called again ends with the same bits as one that was not killed (CPU, same number of threads).
    Of several processes all must call this; each has its share of the environments.

    After Ctrl-C or SIGTERM it ends with a checkpoint from which it resumes exactly, says so on standard error, and then
    raises the KeyboardInterrupt, or ends the process by the SIGTERM. A second signal does this at once.

    Args:
        run: The folder.
        quiet: Show no progress bar.

    Returns:
        The learner: a `MemoryAlgorithm`, or a `SupervisedLearner` where the run learns to predict.

    Raises:
        FileNotFoundError: The encoder to start with, or the replay beside the checkpoint, is missing.
        ValueError: The run's checkpoint or replay is incomplete, of other settings or of another number of processes.
            The encoder to start with does not fit. The environments cannot be split over the processes.
        OSError: There is no room for a checkpoint, or a file could not be written; the last checkpoint is kept.
        RuntimeError: Another process has failed.
    """
    try:
        with _stop_signals(run):
            model = run.config.make_experiment().train(run, quiet=quiet)
            if run.stop_signal is not None:  # too late to stop
                raise KeyboardInterrupt
            return model
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OSError(f"{error}; {run.kept}, --resume goes on when this is mended") from error
    except KeyboardInterrupt:
        if run.stop_signal is not None and run.processes.is_first:
            print(run.how_to_resume(), file=sys.stderr, flush=True)
        if run.stop_signal == signal.SIGTERM:
            signal.raise_signal(signal.SIGTERM)  # ends the process, as it would have without the checkpoint
        raise


@contextmanager
def _stop_signals(run: RunDirectory) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM stop training with a checkpoint; a second one does what it does without this."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Only the main thread can set handlers. A signal that is ignored, as in the background of a shell, stays so.
    if threading.current_thread() is not threading.main_thread() or None in before.values():
        yield
        return

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        run.stop_signal = number
        if run.can_stop:
            raise KeyboardInterrupt
        with suppress(RuntimeError):  # it may interrupt another print
            print("memenvs: stops at the next checkpoint; a second signal stops at once", file=sys.stderr, flush=True)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
