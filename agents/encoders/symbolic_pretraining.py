"""Training of `SymbolicEncoder` on pictures whose classes and distances the renderer knows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from memenvs.agents.encoders.presence_pretraining import (
    f1_scores,
    load_checkpoint,
    one_cycle,
    presence_loss,
    save_checkpoint,
)
from memenvs.agents.encoders.symbolic_dataset import SymbolicDataset
from memenvs.agents.encoders.symbolic_encoder import SymbolicEncoder, area_of
from memenvs.checks import check_int
from memenvs.houses.classes import YCB_CLASSES

#: Weights of the parts of the loss beside that of whole pictures: cells, areas and distances.
CELL_WEIGHT, AREA_WEIGHT, RAY_WEIGHT = 20.0, 2.0, 3.0


@dataclass(frozen=True, kw_only=True)
class SymbolicPretrainingConfig:
    """Settings of a training.

    Attributes:
        epochs: Passes over the pictures; >= 1.
        batch_size: Pictures in a batch; >= 1.
        learning_rate: Highest rate of the one-cycle schedule; > 0.
        weight_decay: Weight decay of AdamW; >= 0.
        seed: Seed of the initial weights, the order of the pictures and which of them are mirrored.

    Raises:
        ValueError: A value out of range.
    """

    epochs: int = 14
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        check_int("epochs", self.epochs)
        check_int("batch_size", self.batch_size)
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be > 0 and finite, got {self.learning_rate}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be >= 0 and finite, got {self.weight_decay}")


def pretrain_symbolic(
    data: SymbolicDataset,
    config: SymbolicPretrainingConfig,
    checkpoint: Path,
    *,
    on_step: Callable[[float], None] | None = None,
    on_epoch: Callable[[int, SymbolicEncoder], None] | None = None,
) -> SymbolicEncoder:
    """Train an encoder on labelled pictures.

    Args:
        data: The pictures.
        config: Settings.
        checkpoint: File that is written after each epoch; a training that was stopped goes on from it.
        on_step: Called with the loss of each batch.
        on_epoch: Called after each epoch with the number of epochs and the encoder, in evaluation mode.

    Returns:
        The encoder, in evaluation mode. The result is the same bits whether or not the training was stopped (on one
        CPU, with the same number of threads).

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few pictures.
    """
    count = len(data.images)
    steps = count // config.batch_size
    if steps == 0:
        raise ValueError(f"images must be at least batch_size = {config.batch_size}, got {count}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        encoder = SymbolicEncoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=config.weight_decay)
    for epoch in range(load_checkpoint(encoder, optimizer, config, checkpoint), config.epochs):
        rng = np.random.default_rng([config.seed, epoch])
        order = rng.permutation(count)
        encoder.train()
        for k in range(steps):
            rows = order[k * config.batch_size : (k + 1) * config.batch_size]
            rate = one_cycle((epoch * steps + k) / (config.epochs * steps))
            optimizer.param_groups[0]["lr"] = config.learning_rate * rate
            loss = _loss(encoder, data, rows, mirrored=rng.random() < 0.5)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if on_step is not None:
                on_step(loss.item())
        encoder.eval()
        save_checkpoint(encoder, optimizer, config, epoch + 1, checkpoint)
        if on_epoch is not None:
            on_epoch(epoch + 1, encoder)
    return encoder.eval()


def _loss(encoder: SymbolicEncoder, data: SymbolicDataset, rows: np.ndarray, *, mirrored: bool) -> Tensor:
    """Compute the loss of some pictures, or of their mirror images; a scalar."""
    images, cells, pixels, rays = (torch.from_numpy(each[rows]) for each in data)
    if mirrored:
        images, cells, rays = images.flip(2), cells.flip(2), rays.flip(1)
    seen = encoder.see(images)
    present = (pixels.to(torch.int32) > 0).float()
    areas = functional.mse_loss(seen.areas, area_of(pixels), reduction="none")
    return (
        presence_loss(seen.logits, present)
        + CELL_WEIGHT * functional.binary_cross_entropy_with_logits(seen.cell_logits, cells.permute(0, 3, 1, 2).float())
        + AREA_WEIGHT * (areas * present).sum() / present.sum().clamp(min=1)
        + RAY_WEIGHT * functional.l1_loss(seen.rays, rays.float())
    )


def predict(encoder: SymbolicEncoder, images: np.ndarray, batch: int = 256) -> np.ndarray:
    """Estimate symbolic observations of pictures, uint8 (B, 48, 64, 3); float32, (B, 52)."""
    with torch.inference_mode():
        parts = [encoder(torch.from_numpy(images[k : k + batch])) for k in range(0, len(images), batch)]
    return torch.cat(parts).numpy()


def symbolic_f1(encoder: SymbolicEncoder, data: SymbolicDataset) -> float:
    """Compute the mean F1 of the 20 categories, each present if it has a pixel."""
    return float(f1_scores(predict(encoder, data.images)[:, : len(YCB_CLASSES)] > 0, data.pixels > 0).mean())
