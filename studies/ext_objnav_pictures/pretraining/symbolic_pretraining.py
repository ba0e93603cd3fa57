"""Training of `SymbolicEncoder` on pictures whose classes and distances the renderer knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from memenvs.agents.encoders.symbolic_encoder import SymbolicEncoder, area_of

from .epochs import EpochsConfig, train_epochs
from .presence_pretraining import presence_loss
from .symbolic_dataset import SymbolicDataset

#: Weights of the parts of the loss beside that of whole pictures: cells, areas and distances.
CELL_WEIGHT, AREA_WEIGHT, RAY_WEIGHT = 20.0, 2.0, 3.0


@dataclass(frozen=True, kw_only=True)
class SymbolicPretrainingConfig(EpochsConfig):
    """Settings of a training; see `EpochsConfig`."""

    epochs: int = 14
    batch_size: int = 128
    learning_rate: float = 4e-3
    weight_decay: float = 1e-4


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
        checkpoint: See `train_epochs`.
        on_step: See `train_epochs`.
        on_epoch: See `train_epochs`.

    Returns:
        The encoder, in evaluation mode; see `train_epochs`.

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few pictures.
    """

    def losses(
        encoder: SymbolicEncoder, epoch: int, batches: Iterable[np.ndarray], rng: np.random.Generator
    ) -> Iterator[Tensor]:
        for rows in batches:
            yield _loss(encoder, data, rows, mirrored=rng.random() < 0.5)

    return train_epochs(
        SymbolicEncoder, len(data.images), losses, config, checkpoint, on_step=on_step, on_epoch=on_epoch
    )


def _loss(encoder: SymbolicEncoder, data: SymbolicDataset, rows: np.ndarray, *, mirrored: bool) -> Tensor:
    """Compute the loss of some pictures, or of their mirror images; a scalar."""
    images, cells, pixels, rays = (torch.from_numpy(array[rows]) for array in data)
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
