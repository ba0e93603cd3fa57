"""Supervised learning of prediction tasks, from batches that are generated on the fly."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.finite import check_finite, check_finite_weights
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.devices import torch_device
from memenvs.agents.memory import Memory
from memenvs.query_task import Episodes, Split

MEMBERS = ("config.json", "state.json", "model.safetensors", "optimizer.safetensors")
MODEL_ONLY = (MEMBERS[0], MEMBERS[2])
"""Members that answering needs."""
TRAINING = 0
"""First entry of the seed sequence of each training batch."""
EVALUATION = 1
"""First entry of the seed sequence of each evaluation batch, so that none equals a training batch."""
EVALUATION_BATCH = 250
"""Episodes that are evaluated together."""


class PredictionModel(nn.Module, abc.ABC):
    """Base of the models that `SupervisedLearner` trains, with the batches of their task.

    Attributes:
        score: Metric of `scores` that says how good the answers are.
        uses_place: Whether it reads places, which observations do not show.
    """

    score: str = "accuracy"
    uses_place: bool = False

    @abc.abstractmethod
    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> Any:
        """Generate a batch of episodes.

        Args:
            count: Number of episodes.
            rng: Generator of everything random in the batch.
            split: "train"; or "validation" or "test" for a batch to evaluate on, without exploration.
            step: Number of batches learned from before; it counts in training alone.
        """

    @abc.abstractmethod
    def shard(self, batch: Any, rank: int, count: int) -> Any:
        """Return every `count`-th episode of a batch, from number `rank` on."""

    @abc.abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean loss of a batch, and numbers for the log."""

    @abc.abstractmethod
    def scores(self, batch: Any) -> dict[str, np.ndarray]:
        """Compute metrics; one is `score`.

        Returns:
            Name -> value in each episode that the metric applies to, float64, (E,). With A answers in an episode
            (E, A), NaN where it does not apply.
        """

    def query_actions(self, episodes: Episodes, rng: np.random.Generator) -> list[np.ndarray]:
        """Answer queries by actions of their environment.

        Args:
            episodes: B episodes, as `QueryTask.episodes_of` returns them.
            rng: Generator of what is drawn to answer.

        Returns:
            For each episode int64, (A,): its actions from the query on.

        Raises:
            NotImplementedError: The model has no such answers.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define query_actions, its answers as actions")

    def ideal(self, batch: Any) -> dict[str, np.ndarray]:
        """Compute the expected metrics of the best answers from the same memory.

        Returns:
            As `scores`; empty if it is not known.
        """
        return {}

    def inputs(self) -> dict[str, Any]:
        """Return what the model was trained on besides the task, such as a frozen encoder, as JSON."""
        return {}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Raise a ValueError if a checkpoint was trained on other inputs.

        Args:
            saved: `inputs` of the saved model.
            where: Path of the checkpoint.
        """

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return groups of parameters, each with the factor of its learning rate."""
        return [(list(self.parameters()), 1.0)]


class SupervisedLearner:
    """Adam on batches that are generated one after the other.

    The batch of a step depends on the seed and the number of the step alone. All processes generate the same batch, and
    each takes its share of it. Gradients are averaged before they are clipped. So several processes learn the same as
    one would, up to rounding, if the loss is a mean over episodes. A mean over tokens, key frames or compressed blocks
    weighs the share of each process alike, however many of them it has.

    Difference from the paper:
        The release stores 108,000 episodes and passes over them up to 101 times; here no batch is seen twice. Presets
        for one core use larger batches, a larger learning rate that decays, and calibrated initial weights, with which
        the four tasks are learned in minutes. The study `room_ballet` has the recipe of the release.

    Args:
        model: Model of the task; all processes start with the weights of the first.
        config: Settings.
        total_steps: Number of batches of the whole run, for the schedule of the learning rate.
        seed: Seed of the batches; >= 0.
        device: Device of the model.
        processes: Processes that learn together; None: this one alone.

    Attributes:
        num_timesteps: Number of batches learned from.

    Raises:
        ValueError: The batch cannot be split evenly over the processes.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), and its
        release.
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
        self.device = torch_device(device)
        self.model = model.to(self.device)
        self.config = config
        self.total_steps = total_steps
        self.seed = seed
        self.processes = processes or Processes()
        self.processes.split_evenly("supervised.batch_size", config.batch_size)
        self.processes.broadcast(list(model.state_dict().values()))
        self.num_timesteps = 0
        groups = model.parameter_groups()
        self._rate_factors = [factor for _, factor in groups]
        parameters = [{"params": weights} for weights, _ in groups]
        self.optimizer = torch.optim.Adam(parameters, config.learning_rate, fused=True)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Trained parameters, in the order of the optimizer."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def step(self) -> dict[str, float]:
        """Learn from one batch.

        Returns:
            Numbers for the log.

        Raises:
            ValueError: Loss or gradient is not finite; the weights are as they were.
            RuntimeError: Another process has failed.
        """
        config = self.config
        step = self.num_timesteps
        learning_rate = config.learning_rate_at(step, self.total_steps)
        for group, factor in zip(self.optimizer.param_groups, self._rate_factors, strict=True):
            group["lr"] = learning_rate * factor
        if not self.model.training:  # `train` visits all modules, which takes time
            self.model.train()
        with self.processes.fail_together():
            rng = np.random.default_rng([TRAINING, self.seed, step])
            batch = self.model.sample(config.batch_size, rng, "train", step)
            batch = self.model.shard(batch, self.processes.rank, self.processes.count)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
                loss, log = self.model.loss(batch)
            check_finite({"loss": loss.item()}, f"in step {step}")
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        self.processes.average([parameter.grad for parameter in self.parameters if parameter.grad is not None])
        grad_norm = nn.utils.clip_grad_norm_(self.parameters, config.max_grad_norm).item()
        check_finite({"grad_norm": grad_norm}, f"in step {step}")
        self.optimizer.step()
        self.num_timesteps += 1
        return {"loss": loss.item(), "grad_norm": grad_norm, "learning_rate": learning_rate, **log}

    def learn(self, steps: int, on_step: Callable[[dict[str, float]], bool | None] | None = None) -> None:
        """Learn from a number of batches.

        Args:
            steps: Number of batches.
            on_step: Called after each with its numbers for the log; learning ends if it returns False.

        Raises:
            ValueError: As `step`.
            RuntimeError: As `step`.
        """
        for _ in range(steps):
            log = self.step()
            if on_step is not None and on_step(log) is False:
                return

    def save(self, path: archive.File, settings: dict[str, Any]) -> None:
        """Write weights, optimizer and step number to one file; every process must call this.

        Args:
            path: The file; replaced if it is there.
            settings: Settings of model and batches, as JSON; `load` needs equal ones.

        Raises:
            ValueError: A weight is NaN or infinite; a file that is there stays.
            OSError: The file cannot be written. In processes other than the first a RuntimeError.
        """
        check_finite_weights(self.model, path, f"after {self.num_timesteps} steps")
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

    def load(self, path: archive.File, settings: dict[str, Any]) -> None:
        """Go on from a file: restore weights, optimizer and step number.

        Args:
            path: The file.
            settings: As in `save`.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is cut short, not a checkpoint, or of other settings or another model.
        """
        members = archive.read(path, MODEL_ONLY, MEMBERS.__contains__)
        saved = archive.parse_json(path, members, "config.json", ("algorithm", "config", *settings))
        if saved.get("policy_only"):
            raise ValueError(
                f"{path}: holds a model without the state of its optimizer: it can answer, but training cannot resume "
                "from it"
            )
        archive.require(path, members, MEMBERS)
        saved["config"] = asdict(archive.parse_config(path, saved["config"], SupervisedConfig))  # adds defaults
        expected = {"algorithm": type(self).__name__, **settings, "config": asdict(self.config)}
        _check_equal(path, json.loads(json.dumps(saved)), json.loads(json.dumps(expected)))
        load_model(self.model, path, members)
        state = archive.parse_json(path, members, "state.json", ("num_timesteps",))
        try:
            archive.load_optimizer(self.optimizer, self.parameters, load_tensors(members["optimizer.safetensors"]))
        except (SafetensorError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        self.num_timesteps = state["num_timesteps"]


def seed_memory(memory: Memory, seed: int) -> None:
    """Seed what a memory draws in learning, such as dropout.

    Args:
        memory: The memory; many draw nothing.
        seed: A number that is drawn with the batch, which then decides all draws.
    """
    generator = getattr(memory, "generator", None)
    if generator is not None:
        generator.manual_seed(seed)


def load_model(model: PredictionModel, path: archive.File, members: dict[str, bytes] | None = None) -> None:
    """Load the weights of a checkpoint into a model.

    Args:
        model: The model.
        path: The file.
        members: Content of the file, if it was read already.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short, not a checkpoint, or of another model, for instance of another encoder width.
    """
    members = archive.read(path, MODEL_ONLY) if members is None else members
    saved = archive.parse_json(path, members, "config.json", ("inputs",))
    model.check_inputs(saved["inputs"], str(path))
    try:
        weights = load_tensors(members["model.safetensors"])
        # the package keeps weights in bfloat16, to be small
        weights = {name: value.float() if value.dtype == torch.bfloat16 else value for name, value in weights.items()}
        archive.check_tensors("model.safetensors", weights, model.state_dict())
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    model.load_state_dict(weights)


@torch.no_grad()
def evaluate_model(
    model: PredictionModel,
    episodes: int,
    seed: int = 0,
    *,
    split: Split = "test",
    ideal: bool = False,
    progress: Callable[[float], None] | None = None,
) -> dict[str, np.ndarray]:
    """Score a model in episodes that depend on the seed alone.

    Args:
        model: The model.
        episodes: Number of episodes; >= 1.
        seed: Seed of the episodes; >= 0.
        split: "test"; or "validation" for scores during a training, or to choose settings by.
        ideal: If True, give the expected metrics of the best answers instead.
        progress: Called after each batch with the share of episodes that are done; None for nothing.

    Returns:
        Metric -> value in each episode that it applies to, as `PredictionModel.scores`.
    """
    model.eval()
    scores: dict[str, list[np.ndarray]] = {}
    for begin in range(0, episodes, EVALUATION_BATCH):
        rng = np.random.default_rng([EVALUATION, seed, begin])
        batch = model.sample(min(EVALUATION_BATCH, episodes - begin), rng, split)
        for name, values in (model.ideal(batch) if ideal else model.scores(batch)).items():
            scores.setdefault(name, []).append(values)
        if progress is not None:
            progress(min(1.0, (begin + EVALUATION_BATCH) / episodes))
    return {name: np.concatenate(values) for name, values in scores.items()}


def _check_equal(path: archive.File, saved: dict[str, Any], expected: dict[str, Any], prefix: str = "") -> None:
    """Raise a ValueError that names the first setting in which a file differs."""
    for key, value in expected.items():
        if isinstance(value, dict) and isinstance(saved.get(key), dict):
            _check_equal(path, saved[key], value, f"{prefix}{key}.")
        elif saved.get(key) != value:
            raise ValueError(f"{path}: is of another run: {prefix}{key} must be {value}, got {saved.get(key)}")
