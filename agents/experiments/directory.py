"""The folder of a run: its settings, log and checkpoints, locked by one process at a time."""

from __future__ import annotations

import csv
import errno
import json
import os
import platform
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import filelock
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from torch import nn

import memenvs
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments.config import (
    CHECKPOINT,
    CONFIG,
    RunConfig,
    check_new,
    difference,
    has_checkpoint,
    read_config,
)
from memenvs.files import numbered_files, remove_leftovers, write_file

BEST = "best.zip"
METRICS = "metrics.csv"
HEADER = ["step", "name", "value"]
"""First line of `METRICS`."""
VERSIONS = "versions.json"
RESULTS = ("evaluation.json", "answers.png")
NUMBERED_RESULTS = ("demonstrations_*.json", "episode_*.png")
"""Files that the report shows of the evaluated checkpoint."""
LOCK = ".lock"
PACKAGES = ("gymnasium", "numpy", "stable-baselines3", "torch")
"""Packages that the numbers of a run depend on besides this one."""
_CHUNK = 2**20  # bytes that are written at once
VALIDATION = "validation/return"
"""Metric that runs with validation log; the best checkpoint has the largest value."""


class InUseError(RuntimeError):
    """Another process is working in a folder."""


@contextmanager
def lock_folder(path: Path, name: str = LOCK) -> Iterator[None]:
    """Lock a folder against other processes, those of other machines too.

    The folder is made if it is missing. The lock is dropped at the end, and when the process ends, however it ends.

    Args:
        path: The folder.
        name: Name of the file that is locked; a folder may have several such locks.

    Raises:
        InUseError: Another process has the lock.
        OSError: The file system of the folder has no locks, or refuses to write.
    """
    path.mkdir(parents=True, exist_ok=True)
    file = path / name
    was_there = file.exists()
    lock = filelock.FileLock(file, timeout=0, thread_local=False)
    try:
        with warnings.catch_warnings():
            # of a lock that would outlive a killed process, which versions of the package take without locks (Lustre)
            warnings.filterwarnings("error", "flock not supported")
            lock.acquire()
    except filelock.Timeout:
        raise InUseError(f"{path} is in use by another process") from None
    except (OSError, NotImplementedError, UserWarning) as error:  # earlier versions of the package raise the second
        if not was_there:
            file.unlink(missing_ok=True)
        raise OSError(
            f"{path} cannot be locked against other processes ({error}); choose a folder that can be written, on a "
            "file system that has locks, such as that of a local disk, or NFS or Lustre mounted with locks"
        ) from None
    try:
        yield
    finally:
        lock.release()


class RunDirectory:
    """The folder of a run, locked by one process at a time, or by the processes of one launch.

    Every run has `config.json` (settings), `versions.json` (of Python and packages, when the run began), `metrics.csv`
    (step, name, value), `tensorboard/`, `checkpoint.zip`, `evaluation.json` and `report.html`. Some have more:
    `best.zip` with validation, and `replay_STEPS.safetensors` beside the checkpoint of an unfinished run that learns
    from a replay. Commands add `demonstrations_N.json` (evaluation after N demonstrations). `.lock` is empty: the
    operating system drops the lock on it when the process ends, however it ends.

    Args:
        path: The folder; made if it is missing.
        config: Settings of a new run; None opens an existing run.
        processes: Processes of a launch, which all must call this; the first locks the folder and writes. None: this
            one alone.

    Attributes:
        config: Settings of the run.
        written_steps: `total_steps` in `config.json`; after `extend` it differs from the config's until the next
            checkpoint.
        stop_signal: Signal that stops a training, see `train_run`; None before one.
        can_stop: Whether a training can be interrupted at any point without loss of what it could save.

    Raises:
        FileExistsError: A new run in a folder that has one.
        FileNotFoundError: No run to open.
        ValueError: Its config cannot be read, or the folder cannot be written.
        OSError: The file system of the folder has no locks, or refuses to write.
        InUseError: Another process is working in it.
    """

    def __init__(self, path: str | Path, config: RunConfig | None = None, processes: Processes | None = None) -> None:
        self.path = Path(path)
        self.processes = processes or Processes()
        self.stop_signal: int | None = None
        self.can_stop = True
        self._lock = ExitStack()
        with self.processes.fail_together():
            if self.processes.is_first:
                self._open(config)
        try:
            with self.processes.fail_together():
                self.config = read_config(self.path)
                self.written_steps = self.config.total_steps
        except Exception:
            self.close()
            raise

    def _open(self, config: RunConfig | None) -> None:
        """Lock the folder, and begin a new run in it if settings are given."""
        file = self.path / CONFIG
        if config is not None:
            check_new(self.path)
        else:
            read_config(self.path)  # before there is a lock file, which a folder without a run should not get
        self._lock.enter_context(lock_folder(self.path))
        remove_leftovers(self.path)
        if config is not None:
            write_file(self.path / VERSIONS, json.dumps(versions(), indent=1).encode())
            write_file(file, json.dumps(config.to_json(), indent=1).encode())  # last: with it the folder holds a run

    @classmethod
    def open_or_create(cls, path: str | Path, config: RunConfig) -> RunDirectory:
        """Open the run of these settings in a folder, or begin a new one.

        Raises:
            ValueError: The folder holds a run of other settings; the message names the first that differs.
            InUseError: Another process is working in it.
        """
        if not (Path(path) / CONFIG).exists():
            return cls(path, config)
        run = cls(path)
        differs = difference(run.config, config)
        if differs is None:
            return run
        run.close()
        raise ValueError(f"{path} holds another run: {differs}; choose another folder")

    def extend(self, total_steps: int) -> None:
        """Train the run to another length than it was begun with.

        `config.json` is written with the next checkpoint: a run that is killed before keeps its old length.

        Args:
            total_steps: New length, in the unit of the learner.
        """
        self.config = replace(self.config, total_steps=total_steps)

    def write_extension(self) -> None:
        """Write `total_steps` into `config.json` if `extend` has changed it."""
        if self.config.total_steps != self.written_steps and self.processes.is_first:
            write_file(self.path / CONFIG, json.dumps(self.config.to_json(), indent=1).encode())
        self.written_steps = self.config.total_steps

    def close(self) -> None:
        """Release the folder for other processes."""
        self._lock.close()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_checkpoint(self) -> bool:
        """True if there is a checkpoint to resume or evaluate."""
        return has_checkpoint(self.path)

    @property
    def kept(self) -> str:
        """State of the checkpoint of a training that has stopped, for messages."""
        return "the last checkpoint is kept" if self.has_checkpoint else "there is no checkpoint yet"

    def how_to_resume(self) -> str:
        """Return a message: that the run was stopped, and how it goes on."""
        return f"memenvs: stopped {self.path}: {self.kept}; the same command goes on, `train` with --resume"

    def checkpoint_path(self, name: str | None = None) -> Path:
        """Path of a checkpoint by its name; None for that of `best_checkpoint`."""
        return self.path / name if name is not None else best_checkpoint(self.path)

    def replay_path(self, step: int) -> Path:
        """Path of the replay that belongs to the checkpoint of an environment step."""
        return self.path / f"replay_{step}.safetensors"

    def check_space(self, model: nn.Module) -> None:
        """Write as much as a checkpoint of a model takes, and delete it.

        Every process must call this.

        Raises:
            OSError: The disk is too full, or a quota is used up. In processes other than the first a RuntimeError.
        """
        with self.processes.fail_together():
            if self.processes.is_first:
                self._check_space(
                    sum(parameter.nbytes * (3 if parameter.requires_grad else 1) for parameter in model.parameters())
                )

    def _check_space(self, size: int) -> None:
        """Write and delete this many bytes."""
        free = shutil.disk_usage(self.path).free
        file = self.path / f".space.{os.getpid()}"  # a name that `remove_leftovers` knows
        try:
            if free < size:  # a file system that compresses would take the zeros
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with file.open("wb") as out:
                for start in range(0, size, _CHUNK):
                    out.write(bytes(min(_CHUNK, size - start)))
        except OSError as error:
            raise OSError(
                f"{self.path} must have room for a checkpoint of {size / 1e6:.1f} MB, has {free / 1e6:.1f} MB "
                f"({error.strerror})"
            ) from None
        finally:
            file.unlink(missing_ok=True)

    def drop_replays(self, but: Path | None = None) -> None:
        """Delete the replays of earlier checkpoints."""
        for file in numbered_files(self.path, "replay_*.safetensors").values():
            if file != but:
                file.unlink()

    def drop_results(self) -> None:
        """Delete what the report shows of the agent of a checkpoint that is about to be replaced."""
        numbered = (numbered_files(self.path, pattern).values() for pattern in NUMBERED_RESULTS)
        for file in (*(self.path / name for name in RESULTS), *chain(*numbered)):
            file.unlink(missing_ok=True)

    def metrics(self) -> dict[str, list[tuple[int, float]]]:
        """Name -> (environment steps, value) in order.

        Raises:
            ValueError: A line of the file is broken; the message names it.
        """
        series: dict[str, list[tuple[int, float]]] = {}
        file = self.path / METRICS
        if file.is_file():
            # a line without its end was being written when the run was killed
            try:
                *lines, _ = file.read_text(encoding="utf-8").split("\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{file}: must be text in UTF-8 ({error})") from None
            for number, row in enumerate(csv.reader(lines), 1):
                if number == 1:
                    if row != HEADER:
                        raise ValueError(f"{file}, line 1: must be {','.join(HEADER)}, got {row}")
                    continue
                try:
                    step = int(row[0])
                    name = row[1]
                    value = float(row[2])
                except (ValueError, IndexError):
                    raise ValueError(f"{file}, line {number}: must be {','.join(HEADER)}, got {row}") from None
                series.setdefault(name, []).append((step, value))
        return series

    def open_log(self, step: int) -> Logger:
        """Return the logger of a training that goes on from a step; only the first process writes.

        Args:
            step: Step of the checkpoint from which the run resumes; what was logged after it is dropped.
        """
        writers: list[KVWriter] = []
        if self.processes.is_first:
            self.drop_metrics_after(step)
            writers = [MetricsWriter(self.path / METRICS), TensorBoardWriter(self.path / "tensorboard", step)]
        return Logger(str(self.path), writers)

    def drop_metrics_after(self, step: int) -> None:
        """Drop the log of a killed run after its last checkpoint."""
        rows = [(s, name, v) for name, points in self.metrics().items() for s, v in points if s <= step]
        lines = [",".join(HEADER), *(f"{s},{name},{v!r}" for s, name, v in sorted(rows, key=lambda row: row[0]))]
        write_file(self.path / METRICS, ("\n".join(lines) + "\n").encode())


def versions() -> dict[str, str]:
    """Versions of Python, this package and those that the numbers of a run depend on."""
    others = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "memenvs": memenvs.__version__, **others}


def find_conflict(runs: Mapping[Path, RunConfig]) -> str | None:
    """Find the first run that cannot be resumed and say why; None if all can. Makes nothing.

    Args:
        runs: Folder -> settings; folders may be missing.
    """
    try:
        for folder, config in runs.items():
            if (folder / CONFIG).exists():
                RunDirectory.open_or_create(folder, config).close()
    except (ValueError, RuntimeError, OSError) as error:
        return str(error)
    return None


class TensorBoardWriter(TensorBoardOutputFormat):
    """Log for TensorBoard; what a killed run has logged after its checkpoint is shown no more.

    Args:
        folder: The folder of event files.
        step: Step from which training goes on.
    """

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(str(folder))
        restart = Event(step=step + 1, session_log=SessionLog(status=SessionLog.START))
        file_writer: Any = self.writer.file_writer
        file_writer.add_event(restart)


class MetricsWriter(KVWriter):
    """Append every number that Stable-Baselines3 logs to a CSV file of (step, name, value).

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        is_new = not path.exists()
        self._file = path.open("a", encoding="utf-8", newline="\n")
        if is_new:
            self._file.write(",".join(HEADER) + "\n")

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...]], step: int = 0) -> None:
        """Append one dump."""
        for name, value in sorted(key_values.items()):
            if isinstance(value, (int, float)):
                self._file.write(f"{step},{name},{float(value)!r}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def best_checkpoint(path: Path) -> Path:
    """Path of the checkpoint to evaluate: the best one with validation, else the latest."""
    best = path / BEST
    return best if best.is_file() else path / CHECKPOINT


def first_stage_checkpoint(config: RunConfig, description: str) -> Path:
    """Find the checkpoint that the setting `encoder_from` names.

    Args:
        config: Settings of a run, whose `encoder_from` is not None; "{seed}" in it stands for the run's seed.
        description: What it must be, for the message.

    Raises:
        FileNotFoundError: There is no run or checkpoint of that name.
    """
    assert config.encoder_from is not None
    source = Path(config.encoder_from.replace("{seed}", str(config.seed)))
    if source.is_dir():
        source = best_checkpoint(source)
    if not source.is_file():
        raise FileNotFoundError(
            f"encoder_from must be the {description}, there is none at {source}; "
            "train it first, or name another with --encoder_from"
        )
    return source
