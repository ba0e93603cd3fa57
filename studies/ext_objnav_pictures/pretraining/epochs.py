"""Pre-training of an encoder on labelled images, which resumes after its last epoch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from memenvs.checks import check_fields, check_int
from memenvs.files import write_file
from memenvs.json_records import parse_json

#: Share of the steps in which the learning rate rises.
WARM_UP = 0.1

E = TypeVar("E", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class EpochsConfig:
    """Settings that pre-trainings share.

    Attributes:
        epochs: Passes over the images; >= 1.
        batch_size: Images in a batch; >= 1.
        learning_rate: Highest rate of the one-cycle schedule; > 0.
        weight_decay: Weight decay of AdamW; >= 0.
        seed: Seed of the initial weights, the order of the images and which of them are mirrored; >= 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_int("epochs", self.epochs)
        check_int("batch_size", self.batch_size)
        check_int("seed", self.seed, 0)
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate must be > 0, got {self.learning_rate}")
        if self.weight_decay < 0:
            raise ValueError(f"weight_decay must be >= 0, got {self.weight_decay}")


def train_epochs(
    make_encoder: Callable[[], E],
    count: int,
    losses: Callable[[E, int, Iterable[np.ndarray], np.random.Generator], Iterator[Tensor]],
    config: EpochsConfig,
    checkpoint: Path,
    *,
    on_step: Callable[[float], None] | None,
    on_epoch: Callable[[int, E], None] | None,
) -> E:
    """Train an encoder by AdamW with a one-cycle schedule.

    Args:
        make_encoder: Makes the encoder; draws its weights from PyTorch's generator.
        count: Number of images.
        losses: Called with the encoder, the number of finished epochs, the epoch's batches as numbers of images,
            int64, (batch_size,), and the epoch's generator. Yields the loss of each batch, a scalar, as the weights are
            at that moment.
        config: Settings.
        checkpoint: File that is written after each epoch; training resumes from it if it exists.
        on_step: Called after each step with its loss.
        on_epoch: Called after each epoch with the number of epochs so far and the encoder, in evaluation mode.

    Returns:
        The encoder, in evaluation mode. A training that was killed and called again ends with the same bits as one that
        was not (same machine, same number of threads).

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few images.
    """
    steps = count // config.batch_size
    if steps == 0:
        raise ValueError(f"images must be at least batch_size = {config.batch_size}, got {count}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        encoder = make_encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=config.weight_decay)
    for epoch in range(_load_checkpoint(encoder, optimizer, config, checkpoint), config.epochs):
        rng = np.random.default_rng([config.seed, epoch])
        batches = rng.permutation(count)[: steps * config.batch_size].reshape(steps, config.batch_size)
        encoder.train()
        for step, loss in enumerate(losses(encoder, epoch, batches, rng), start=epoch * steps):
            optimizer.param_groups[0]["lr"] = config.learning_rate * one_cycle(step / (config.epochs * steps))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if on_step is not None:
                on_step(loss.item())
        encoder.eval()
        _save_checkpoint(encoder, optimizer, config, epoch + 1, checkpoint)
        if on_epoch is not None:
            on_epoch(epoch + 1, encoder)
    return encoder.eval()


def one_cycle(done: float) -> float:
    """Share of the highest learning rate: linear from 0, then half a cosine to 0.

    Args:
        done: Share of the steps that are over, 0 to 1.

    Source:
        Smith and Topin (2018).
    """
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def _save_checkpoint(
    encoder: nn.Module, optimizer: torch.optim.Optimizer, config: EpochsConfig, epoch: int, path: Path
) -> None:
    """Write encoder, optimizer, settings and the number of epochs to a file."""
    tensors = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    write_file(path, save_tensors(tensors, {"config": json.dumps(asdict(config)), "epoch": str(epoch)}))


def _load_checkpoint(encoder: nn.Module, optimizer: torch.optim.Optimizer, config: EpochsConfig, path: Path) -> int:
    """Load a checkpoint; return its number of epochs, 0 if there is none.

    Raises:
        ValueError: The checkpoint is of other settings.
    """
    if not path.exists():
        return 0
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        if parse_json(metadata["config"], str(path)) != asdict(config):
            raise ValueError(
                f"{path}: is of a training with other settings, {metadata['config']}; delete it to start anew"
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    weights = {name.removeprefix("encoder."): value for name, value in tensors.items() if name.startswith("encoder.")}
    encoder.load_state_dict(weights)
    groups = optimizer.state_dict()["param_groups"]
    state: dict[int, dict[str, Tensor]] = {index: {} for index in groups[0]["params"]}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, moment = name.split(".")
            state[int(index)][moment] = value
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    return int(metadata["epoch"])
