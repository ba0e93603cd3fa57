"""Runs: a folder with everything about one training, which a killed run goes on in bit by bit."""

from __future__ import annotations

import csv
import fcntl
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import torch
from rich.progress import Progress
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv

from agents import checkpoint
from agents.distributed import Processes
from agents.evaluation import Policy, TrialEvaluator, TrialResults
from agents.policies import MemoryPolicy
from agents.ppo import PartialUpdatePPO
from agents.progress import progress_bar
from agents.run_config import RunConfig
from agents.vec_env import check_encoder, make_vec_env
from memenvs.files import write_file

CONFIG, CHECKPOINT, METRICS = "config.json", "checkpoint.zip", "metrics.csv"


class RunDirectory:
    """The folder of a run, held by one process at a time, or by the processes of one launch.

    `config.json` (settings), `metrics.csv` (step, name, value), `tensorboard/`, `checkpoint.zip`, `evaluation.json`, `report.html`; on
    request `demonstrations_N.json` (evaluated after N of them), `attention.json` and `attention.png`.

    Args:
        path: The folder; made if it is not there.
        config: Settings of a new run; None opens a run that is there.
        processes: Those of a launch, which all must call this; the first holds the folder and writes. None: this one alone.

    Raises:
        FileExistsError: A new run in a folder that has one.
        FileNotFoundError: No run to open.
        ValueError: Its config cannot be read.
        RuntimeError: Another process is working in it.
    """

    def __init__(self, path: str | Path, config: RunConfig | None = None, processes: Processes | None = None) -> None:
        self.path = Path(path)
        self.processes = processes or Processes()
        self._lock: IO[str] | None = None
        with self.processes.agreed():
            if self.processes.is_first:
                self._take(config)
        try:
            with self.processes.agreed():
                self.config = read_config(self.path)
        except Exception:
            self.close()
            raise

    def _take(self, config: RunConfig | None) -> None:
        """Locks the folder, and begins a new run in it if settings are given."""
        file = self.path / CONFIG
        if config is not None:
            if file.exists():
                raise FileExistsError(
                    f"{self.path} already holds a run; choose another folder, or resume it with --resume"
                )
            self.path.mkdir(parents=True, exist_ok=True)
        else:
            read_config(self.path)  # there is no lock to leave behind where there is no run
        lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise RuntimeError(f"{self.path} is in use by another process") from None
        self._lock = lock
        if config is not None:
            write_file(file, json.dumps(config.to_json(), indent=1).encode())

    def close(self) -> None:
        """Lets another process have the folder."""
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to resume or evaluate."""
        return (self.path / CHECKPOINT).is_file()

    def metrics(self) -> dict[str, list[tuple[int, float]]]:
        """Name -> (environment steps, value) in order.

        Raises:
            ValueError: A line of the file is broken; the message names it.
        """
        series: dict[str, list[tuple[int, float]]] = {}
        file = self.path / METRICS
        if file.is_file():
            *lines, _ = file.read_text().split("\n")  # a line without its end was being written when the run was killed
            for number, row in enumerate(csv.reader(lines), 1):
                if number == 1:
                    continue
                try:
                    step, name, value = int(row[0]), row[1], float(row[2])
                except (ValueError, IndexError):
                    raise ValueError(f"{file}, line {number}: must be step,name,value, got {row}") from None
                series.setdefault(name, []).append((step, value))
        return series

    def drop_metrics_after(self, step: int) -> None:
        """Forgets what a killed run logged after its last checkpoint."""
        kept = [(s, name, v) for name, points in self.metrics().items() for s, v in points if s <= step]
        lines = ["step,name,value", *(f"{s},{name},{v!r}" for s, name, v in sorted(kept, key=lambda row: row[0]))]
        write_file(self.path / METRICS, ("\n".join(lines) + "\n").encode())


def read_config(path: Path) -> RunConfig:
    """The settings of the run in a folder.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: They cannot be read.
    """
    file = path / CONFIG
    if not file.is_file():
        raise FileNotFoundError(f"no run in {path}: {CONFIG} is missing")
    try:
        return RunConfig.from_json(json.loads(file.read_text()))
    except (json.JSONDecodeError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{file}: not the settings of a run ({error})") from None


class MetricsWriter(KVWriter):
    """Appends every number that Stable-Baselines3 logs to a CSV file of (step, name, value).

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        is_new = not path.exists()
        self._file = path.open("a", newline="")
        if is_new:
            self._file.write("step,name,value\n")

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...]], step: int = 0) -> None:
        """Appends one dump."""
        for name, value in sorted(key_values.items()):
            if isinstance(value, (int, float)):
                self._file.write(f"{step},{name},{float(value)!r}\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class RunCallback(BaseCallback):
    """Writes checkpoints between rollouts, keeps those at milestones, and shows progress.

    Args:
        run: The folder.
        progress: What to advance; None for silence.
    """

    def __init__(self, run: RunDirectory, progress: Progress | None) -> None:
        super().__init__()
        self._run, self._progress = run, progress
        self._rollouts = 0
        self._shown = 0

    def _on_training_start(self) -> None:
        self._shown = self.model.num_timesteps
        self._passed = self._milestones_passed()
        if self._progress is not None:
            total = self._run.config.total_steps
            self._task = self._progress.add_task("training", total=total, completed=self._shown, score=float("nan"))

    def _on_rollout_start(self) -> None:
        model = self.model
        assert isinstance(model, PartialUpdatePPO)
        self._advance()
        if model.num_timesteps > 0 and model.rollout_buffer.pos == 0:
            self._rollouts += 1
            if self._rollouts % self._run.config.checkpoint_rollouts == 0:
                model.save(self._run.path / CHECKPOINT)
            if self._milestones_passed() > self._passed:
                self._passed = self._milestones_passed()
                model.save(self._run.path / f"checkpoint_{model.num_timesteps}.zip")

    def _milestones_passed(self) -> int:
        config = self._run.config
        return (config.milestones + 1) * self.model.num_timesteps // config.total_steps

    def _on_step(self) -> bool:
        if self._progress is not None and self.model.num_timesteps - self._shown >= 64 * self.model.n_envs:
            self._advance()
        return True

    def _on_training_end(self) -> None:
        self._advance()

    def _advance(self) -> None:
        if self._progress is not None:
            recent = [info["r"] for info in self.model.ep_info_buffer or []]
            score = sum(recent) / len(recent) if recent else float("nan")
            self._shown = self.model.num_timesteps
            self._progress.update(self._task, completed=self._shown, score=score)


def check_config(config: RunConfig, processes: Processes | None = None) -> None:
    """Makes one environment for training, one for evaluation and the learner, so that a wrong setting is known before a run begins.

    Args:
        config: The settings.
        processes: Those that are to train together; None: this one alone.

    Raises:
        ValueError: A setting of the environment, the policy or the learner is not allowed, or cannot be split over the processes.
        TypeError: It does not exist.
    """
    if processes is not None:
        processes.share("n_envs", config.n_envs)
        processes.share("ppo.batch_size", config.ppo.batch_size)
    rollout = config.n_envs * config.ppo.n_steps
    if config.total_steps < rollout:  # whole rollouts are played
        raise ValueError(
            f"total_steps must be at least {rollout}, one rollout (n_envs {config.n_envs} x ppo.n_steps {config.ppo.n_steps}), "
            f"got {config.total_steps}"
        )
    make_vec_env(config.env, 1, **{**config.env_kwargs, **config.eval_kwargs}).close()
    env = make_vec_env(config.env, 1, **config.env_kwargs)
    short = replace(config.ppo, n_steps=2 * config.ppo.n_updates)  # no buffer worth mentioning
    try:
        PartialUpdatePPO("MemoryPolicy", env, short, policy_kwargs=config.policy, device=config.device)
    finally:
        env.close()


def train_run(run: RunDirectory, *, quiet: bool = False) -> PartialUpdatePPO:
    """Trains a run to its end, from its checkpoint if it has one.

    A killed run that is called again ends with the same bits as one that was not killed (CPU, same number of threads). Of several processes
    all must call this; each has its share of the environments.

    Args:
        run: The folder.
        quiet: No progress bar.

    Returns:
        The learner.

    Raises:
        ValueError: The run's checkpoint is not whole, of other settings or of another number of processes, or the environments cannot be
            split over the processes.
        RuntimeError: Another process has failed.
    """
    config, processes = run.config, run.processes
    n_envs, device = processes.share("n_envs", config.n_envs), processes.device or config.device
    if run.has_checkpoint:
        checkpoint.check_run(run.path / CHECKPOINT, config.ppo, config.policy, config.n_envs)
    if config.threads > 0:
        torch.set_num_threads(config.threads)
    with processes.agreed():
        env = make_vec_env(config.env, n_envs, seed=config.seed + processes.rank * n_envs, **config.env_kwargs)
    file = run.path / CHECKPOINT
    if run.has_checkpoint:
        model = PartialUpdatePPO.load(file, env, device, processes=processes)
    else:
        model = PartialUpdatePPO(
            "MemoryPolicy",
            env,
            config.ppo,
            policy_kwargs=config.policy,
            seed=config.seed,
            device=device,
            processes=processes,
        )
    writers: list[KVWriter] = []
    if processes.is_first:
        run.drop_metrics_after(model.num_timesteps)
        writers = [MetricsWriter(run.path / METRICS), TensorBoardOutputFormat(str(run.path / "tensorboard"))]
    model.set_logger(Logger(str(run.path), writers))
    remaining = config.total_steps - model.num_timesteps
    progress = progress_bar() if processes.is_first and not quiet else None
    try:
        if remaining > 0:
            if progress is not None:
                progress.start()
            model.learn(remaining, RunCallback(run, progress), reset_num_timesteps=model.num_timesteps == 0)
            model.save(file)
    finally:
        if progress is not None:
            progress.stop()
        model.logger.close()
        env.close()
    return model


def trained_policy(run: RunDirectory, seed: int, name: str = CHECKPOINT) -> MemoryPolicy:
    """The policy of a run's checkpoint, whose actions are drawn from `seed` on.

    Args:
        run: The folder.
        seed: Of the actions.
        name: File of the checkpoint in the folder; `checkpoint_STEPS.zip` where the run has milestones.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is not whole, or of other settings.
    """
    return load_policy(run.path / name, run.config, seed)


def load_policy(file: Path, config: RunConfig, seed: int) -> MemoryPolicy:
    """The policy of a checkpoint of a run with these settings, whose actions are drawn from `seed` on.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not whole, or of other settings.
    """
    checkpoint.check_run(file, config.ppo, config.policy, config.n_envs)
    policy = PartialUpdatePPO.load(file, device=config.device).policy
    policy.generator.manual_seed(seed)
    return policy


def evaluation_env(config: RunConfig, count: int, seed: int) -> VecEnv:
    """Copies of the environment that a run is evaluated in, seeded apart from those of its training."""
    return make_vec_env(config.env, count, seed=1_000_000 + seed, **{**config.env_kwargs, **config.eval_kwargs})


def evaluate_run(
    run: RunDirectory,
    policy: Policy | None = None,
    *,
    pictures: bool = False,
    seed: int = 1,
    demonstrations: int = 0,
    **changes: Any,
) -> TrialResults:
    """Plays the evaluation trials of a run.

    Args:
        run: The folder.
        policy: What plays; None: the run's checkpoint (`trained_policy` gives that of a milestone).
        pictures: Whether to keep maps of an early and a late episode.
        seed: Of the evaluation environments and of the actions drawn.
        demonstrations: Episodes of the oracle at the start of each trial, see `TrialEvaluator`; `eval_steps` come after them.
        **changes: Fields of the config to change, such as `eval_steps` or `eval_kwargs`.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        TypeError: A field of `changes` does not exist.
        ValueError: Its checkpoint is not whole, of other settings, or of a policy that has learned with another frozen encoder; or the
            environment has no oracle to demonstrate.
    """
    config = replace(run.config, **changes)
    if policy is None:
        policy = trained_policy(run, seed)
    env = evaluation_env(config, min(config.n_envs, config.eval_trials), seed)
    layouts = None
    if config.eval_all_layouts:
        layouts = range(env.get_attr("task")[0].num_layouts)
    try:
        if isinstance(policy, MemoryPolicy):
            check_encoder(policy.encoder_fingerprint, env)
        evaluator = TrialEvaluator(
            env,
            config.eval_steps,
            config.eval_trials,
            layouts=layouts,
            pictures=pictures,
            demonstrations=demonstrations,
        )
        return evaluator.run(policy)
    finally:
        env.close()
