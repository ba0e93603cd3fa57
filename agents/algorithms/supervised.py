"""Learning to predict: batches made as they are needed, one step of Adam each, in as many processes as are launched."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.supervised_config import SupervisedConfig

MEMBERS = ("config.json", "state.json", "model.safetensors", "optimizer.safetensors")
#: First numbers of the seeds of batches to learn from and of those to evaluate on, so that they are never the same.
LEARNING, EVALUATION = 0, 1
EVALUATION_BATCH = 250
"""Episodes that are evaluated together."""


class PredictionModel(nn.Module, abc.ABC):
    """What `SupervisedLearner` trains: it makes the batches of its task, answers, and says how wrong it was."""

    @abc.abstractmethod
    def sample(self, count: int, rng: np.random.Generator, step: int | None) -> Any:
        """A batch of episodes.

        Args:
            count: How many.
            rng: Where everything random in it comes from.
            step: Batches that were learned from before; None for one to evaluate on, in which nothing is explored.
        """

    @abc.abstractmethod
    def shard(self, batch: Any, rank: int, count: int) -> Any:
        """Every `count`-th episode of a batch, from number `rank` on."""

    @abc.abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, dict[str, float]]:
        """What is minimised, the mean over a batch, and numbers for the log."""

    @abc.abstractmethod
    def scores(self, batch: Any) -> dict[str, np.ndarray]:
        """Metric -> its value in each episode of a batch that it is about; "accuracy" is among them."""

    def ideal(self, batch: Any) -> dict[str, np.ndarray]:
        """What the best answers from the same memory would score on average; the form of `scores`. Empty where it is not known."""
        return {}

    def inputs(self) -> dict[str, Any]:
        """What it was trained on besides the task, such as a frozen encoder, as JSON for the checkpoint."""
        return {}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Raises a ValueError if it was trained on something else.

        Args:
            saved: What `inputs` gave.
            where: The checkpoint's path.
        """

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Parameters, each in one group, and what the learning rate is multiplied with for them."""
        return [(list(self.parameters()), 1.0)]


class SupervisedLearner:
    """Adam on batches that are made one after the other.

    The batch of a step follows from the seed and the step's number alone. All processes make the same batch and each takes its share of it, so
    that several learn what one would, up to rounding; gradients are averaged before the clip.

    Args:
        model: Of the task; all processes begin with the first one's weights.
        config: Settings.
        total_steps: Batches of the whole run, for the fall of the learning rate.
        seed: Of the batches; >= 0.
        device: Where it computes.
        processes: Those that learn together; None: this one alone.

    Attributes:
        num_timesteps: Batches learned from.

    Raises:
        ValueError: The batch cannot be split over the processes.
    """

    def __init__(
        self,
        model: PredictionModel,
        config: SupervisedConfig,
        total_steps: int,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        processes: Processes | None = None,
    ) -> None:
        self.model, self.config, self.total_steps, self.seed = model.to(device), config, total_steps, seed
        self.device, self.processes = torch.device(device), processes or Processes()
        self.processes.split_evenly("supervised.batch_size", config.batch_size)
        self.processes.broadcast(list(model.state_dict().values()))
        self.num_timesteps = 0
        groups = model.parameter_groups()
        self._factors = [factor for _, factor in groups]
        self.optimizer = torch.optim.Adam([{"params": each} for each, _ in groups], config.learning_rate, fused=True)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """In the order of the optimiser."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def step(self) -> dict[str, float]:
        """Learns from one batch; returns numbers for the log.

        Raises:
            ValueError: Loss or gradient is not finite; the weights are as they were.
            RuntimeError: Another process has failed.
        """
        config, step = self.config, self.num_timesteps
        rate = config.learning_rate_at(step, self.total_steps)
        for group, factor in zip(self.optimizer.param_groups, self._factors, strict=True):
            group["lr"] = rate * factor
        if not self.model.training:  # going through all its parts takes time
            self.model.train()
        with self.processes.fail_together():
            rng = np.random.default_rng([LEARNING, self.seed, step])
            batch = self.model.sample(config.batch_size, rng, step)
            batch = self.model.shard(batch, self.processes.rank, self.processes.count)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
                loss, log = self.model.loss(batch)
            if not bool(loss.isfinite()):
                raise ValueError(f"loss must be finite, got {loss.item()} in step {step}")
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        self.processes.average(gradients)
        norm = nn.utils.clip_grad_norm_(self.parameters, config.max_grad_norm)
        if not bool(norm.isfinite()):
            raise ValueError(f"gradient must be finite, got a norm of {norm.item()} in step {step}")
        self.optimizer.step()
        self.num_timesteps += 1
        return {"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate, **log}

    def learn(self, steps: int, after: Callable[[dict[str, float]], None] | None = None) -> None:
        """Learns from so many batches.

        Args:
            steps: How many.
            after: Called after each with its numbers.

        Raises:
            ValueError: As `step`.
            RuntimeError: As `step`.
        """
        for _ in range(steps):
            log = self.step()
            if after is not None:
                after(log)

    def save(self, path: str | PathLike[str], settings: dict[str, Any]) -> None:
        """Writes weights, optimiser and the number of the step to one file, without pickle; every process must call this.

        Args:
            path: The file; replaced if it is there.
            settings: What made the model and the batches, as JSON; the file can go on with equal ones only.

        Raises:
            ValueError: A weight is NaN or infinite; what the file held stays.
            OSError: The file cannot be written. In other processes than the first a RuntimeError.
        """
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise ValueError(
                    f"{path}: not written, weights must be finite, got NaN or infinity in {name!r} after {self.num_timesteps} steps"
                )
        config = {
            "format": archive.FORMAT,
            "algorithm": type(self).__name__,
            "config": asdict(self.config),
            "inputs": self.model.inputs(),
            **settings,
        }
        with self.processes.fail_together():
            if self.processes.is_first:
                parts = (
                    json.dumps(config, indent=1).encode(),
                    json.dumps({"num_timesteps": self.num_timesteps}).encode(),
                    save_tensors(archive.cpu_copies(self.model.state_dict())),
                    save_tensors(archive.cpu_copies(archive.optimizer_tensors(self.optimizer))),
                )
                archive.write(path, dict(zip(MEMBERS, parts, strict=True)))

    def load(self, path: str | PathLike[str], settings: dict[str, Any]) -> None:
        """Goes on where a file was written: weights, optimiser, number of the step.

        Args:
            path: The file.
            settings: As in `save`.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is cut short, not ours, of other settings or another model.
        """
        members = archive.read(path, MEMBERS)
        saved = archive.read_json_member(path, members, "config.json", ("algorithm", "config", *settings))
        wanted = json.loads(json.dumps({"algorithm": type(self).__name__, **settings, "config": asdict(self.config)}))
        found = asdict(archive.parse_config(path, saved["config"], SupervisedConfig))
        _compare(path, {**saved, "config": json.loads(json.dumps(found))}, wanted)
        load_model(self.model, path, members)
        state = archive.read_json_member(path, members, "state.json", ("num_timesteps",))
        try:
            moments = load_tensors(members["optimizer.safetensors"])
            archive.load_optimizer(self.optimizer, self.parameters, moments)
        except (SafetensorError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        self.num_timesteps = state["num_timesteps"]


def load_model(model: PredictionModel, path: str | PathLike[str], members: dict[str, bytes] | None = None) -> None:
    """Puts the weights of a checkpoint into a model.

    Args:
        model: The model.
        path: The file.
        members: What is in it, if it was read already.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short, not ours or of another model, for instance of another width of the encoder.
    """
    members = archive.read(path, MEMBERS) if members is None else members
    saved = archive.read_json_member(path, members, "config.json", ("inputs",))
    model.check_inputs(saved["inputs"], str(path))
    try:
        weights = load_tensors(members["model.safetensors"])
        archive.check_tensors("model.safetensors", weights, model.state_dict())
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    model.load_state_dict(weights)


@torch.no_grad()
def evaluate_model(
    model: PredictionModel, episodes: int, seed: int = 0, *, ideal: bool = False
) -> dict[str, np.ndarray]:
    """What a model scores in episodes that follow from the seed alone.

    Args:
        model: The model.
        episodes: How many; >= 1.
        seed: Of the episodes; >= 0.
        ideal: Whether to give what the best answers would score instead.

    Returns:
        Metric -> its value in each episode that it is about.
    """
    model.eval()
    found: dict[str, list[np.ndarray]] = {}
    for begin in range(0, episodes, EVALUATION_BATCH):
        rng = np.random.default_rng([EVALUATION, seed, begin])
        batch = model.sample(min(EVALUATION_BATCH, episodes - begin), rng, None)
        for name, values in (model.ideal(batch) if ideal else model.scores(batch)).items():
            found.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in found.items()}


def _compare(path: str | PathLike[str], saved: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> None:
    """Raises a ValueError that names the first setting that a file has otherwise."""
    for key, value in wanted.items():
        if isinstance(value, dict) and isinstance(saved.get(key), dict):
            _compare(path, saved[key], value, f"{prefix}{key}.")
        elif saved.get(key) != value:
            raise ValueError(f"{path}: is of another run: {prefix}{key} must be {value}, got {saved.get(key)}")
