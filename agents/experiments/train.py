"""Training of runs; a killed run resumes bit by bit."""

from __future__ import annotations

from typing import Any

import torch

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory


from memenvs.agents.devices import torch_device
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
    config.kind.make_experiment().check(config, processes or Processes())


def train_run(run: RunDirectory, *, quiet: bool = False) -> Any:
    """Train a run to its end, from its checkpoint if it has one.

    A killed run that is called again ends with the same bits as one that was not killed (CPU, same number of threads).
    Of several processes all must call this; each has its share of the environments.

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
        return run.config.kind.make_experiment().train(run, quiet=quiet)
    except FileNotFoundError:
        raise
    except OSError as error:
        kept = "the last checkpoint is kept" if run.has_checkpoint else "there is no checkpoint yet"
        raise OSError(f"{error}; {kept}, --resume goes on when this is mended") from error
