"""Pre-training of `VisualEncoder`: it learns to classify which objects an image shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from memenvs.agents.encoders.visual import GRID, VisualEncoder, channels_first

from .epochs import EpochsConfig, train_epochs
from .presence_dataset import PRESENCE_PIXELS, PresenceDataset

#: Rows and columns of a crop, in cells of the grid.
CROP = 4
#: Share of crops that are chosen to show an object, among images that show one.
OBJECT_SHARE = 0.75


@dataclass(frozen=True, kw_only=True)
class PretrainingConfig(EpochsConfig):
    """Settings of a pre-training.

    Attributes:
        epochs: Passes over the images; >= 1.
        crop_epochs: First epochs, 0 to `epochs`, in which each image is cropped to a random quarter. Such an epoch
            takes a quarter of the time.
        batch_size: Images in a batch; >= 1.
        learning_rate: Highest rate of the one-cycle schedule; > 0.
        weight_decay: Weight decay of AdamW; >= 0.
        bfloat16: Whether to compute in bfloat16: faster on processors that support it, with other rounding.
        seed: Seed of the initial weights, the order of the images and which of them are mirrored; >= 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        ReLIC, appendix D, for the task; Smith and Topin (2018) for the one-cycle schedule.
    """

    epochs: int = 51
    crop_epochs: int = 45
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    bfloat16: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.crop_epochs <= self.epochs:
            raise ValueError(f"crop_epochs must be 0 to epochs = {self.epochs}, got {self.crop_epochs}")


def pretrain(
    data: PresenceDataset,
    config: PretrainingConfig,
    checkpoint: Path,
    *,
    on_step: Callable[[float], None] | None = None,
    on_epoch: Callable[[int, VisualEncoder], None] | None = None,
) -> VisualEncoder:
    """Train an encoder on labelled images.

    Args:
        data: Images to learn from; at least one batch.
        config: Settings.
        checkpoint: See `train_epochs`.
        on_step: See `train_epochs`.
        on_epoch: See `train_epochs`.

    Returns:
        The encoder, in evaluation mode; see `train_epochs`.

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few images.
    """
    count = len(data.images)

    def losses(
        encoder: VisualEncoder, epoch: int, batches: Iterable[np.ndarray], rng: np.random.Generator
    ) -> Iterator[Tensor]:
        mirrored = torch.from_numpy(rng.random(count) < 0.5)
        for indices in batches:
            rows = torch.from_numpy(indices)
            batch = _augmented(data, rows, mirrored[rows], epoch < config.crop_epochs, rng)
            yield _loss(encoder, *batch, bfloat16=config.bfloat16)

    return train_epochs(VisualEncoder, count, losses, config, checkpoint, on_step=on_step, on_epoch=on_epoch)


def _augmented(
    data: PresenceDataset, rows: Tensor, mirrored: Tensor, cropped: bool, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Make a batch: images uint8 (B, H, W, 3), cells uint8 (B, rows, columns, 20), targets float (B, 20)."""
    images = torch.from_numpy(data.images)[rows]
    cells = torch.from_numpy(data.cells)[rows]
    if cropped:
        images, cells = crop_quarters(images, cells, rng)
        target = cells.sum((1, 2)) > PRESENCE_PIXELS
    else:
        target = torch.from_numpy(data.pixels)[rows] > PRESENCE_PIXELS
    return flip_horizontally(images, mirrored), flip_horizontally(cells, mirrored), target.float()


def _loss(encoder: VisualEncoder, images: Tensor, cells: Tensor, target: Tensor, *, bfloat16: bool) -> Tensor:
    """Sum the loss of whole images and that of their cells, which teaches where the objects are; a scalar."""
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        features = encoder.cell_features(channels_first(images))  # (B, rows, columns, 64)
        cell_logits = encoder.presence(features)  # (B, rows, columns, 20)
        logits = encoder.presence_logits(encoder.pool_strips(features))  # (B, 20)
    loss = presence_loss(logits.float(), target)
    return loss + presence_loss(cell_logits.float().flatten(1), visible_fraction(cells).flatten(1))


def presence_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Compute Dice loss plus binary cross-entropy, a scalar.

    Args:
        logits: float, (B, K); of the 20 categories, or of each category in each cell.
        present: float, (B, K), 0 to 1; whether the category is present, or how much of it (`visible_fraction`).

    Source:
        ReLIC, appendix D, names the Dice loss. Here it is 1 - (2 sum p y + 1) / (sum p + sum y + 1) for each image,
        with p the sigmoid of the logits and y `present`.
    """
    p = torch.sigmoid(logits)
    dice = 1 - (2 * (p * present).sum(-1) + 1) / (p.sum(-1) + present.sum(-1) + 1)
    return dice.mean() + torch.nn.functional.binary_cross_entropy_with_logits(logits, present)


def crop_quarters(images: Tensor, cells: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Crop a random quarter of each image, along the lines of the grid.

    With probability `OBJECT_SHARE` the crop contains a random cell that shows an object, if there is one.

    Args:
        images: uint8, (B, 128, 128, 3).
        cells: uint8, (B, 8, 8, 20); number of pixels of each category in each cell.
        rng: Random generator.

    Returns:
        uint8, (B, 64, 64, 3) and (B, 4, 4, 20).
    """
    side = images.shape[1] // GRID  # pixels of a cell
    parts = []
    for image, pixels in zip(images, cells, strict=True):
        low = np.zeros(2, np.int64)  # bounds of the crop's first row and column, in cells
        high = np.full(2, GRID - CROP)
        with_object = np.argwhere((pixels > PRESENCE_PIXELS).any(-1).numpy())
        if len(with_object) and rng.random() < OBJECT_SHARE:
            cell = with_object[rng.integers(len(with_object))]
            low = np.maximum(low, cell - CROP + 1)
            high = np.minimum(high, cell)
        i, j = rng.integers(low, high + 1).tolist()
        end_i, end_j = i + CROP, j + CROP
        parts.append((image[i * side : end_i * side, j * side : end_j * side], pixels[i:end_i, j:end_j]))
    return torch.stack([part for part, _ in parts]), torch.stack([part for _, part in parts])


def flip_horizontally(images: Tensor, which: Tensor) -> Tensor:
    """Mirror some of the images, (B, H, W, C), left to right; `which` is bool, (B,)."""
    return torch.where(which[:, None, None, None], images.flip(2), images)


def visible_fraction(pixels: Tensor) -> Tensor:
    """Convert numbers of pixels, of any shape, to targets, float32: min(pixels / 11, 1).

    So an object that a cell shows only in part has a target between 0 and 1.
    """
    return (pixels.to(torch.float32) / (PRESENCE_PIXELS + 1)).clamp(max=1.0)


def predict_presence(encoder: VisualEncoder, images: np.ndarray, batch: int = 100) -> np.ndarray:
    """Classify the categories in images, uint8, (B, H, W, 3) -> bool, (B, 20)."""
    with torch.inference_mode():
        parts = (torch.from_numpy(images[k : k + batch]) for k in range(0, len(images), batch))
        logits = torch.cat([encoder.presence_logits(encoder(part)) for part in parts])
    return (logits > 0).numpy()


def f1_scores(predicted: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Compute F1 = 2 TP / (2 TP + FP + FN) of each category, 0 if never present nor predicted.

    Args:
        predicted: bool, (B, K); predictions.
        present: bool, (B, K); truth.

    Returns:
        float64, (K,); its mean is the macro-F1.
    """
    hits = (predicted & present).sum(0)
    total = predicted.sum(0) + present.sum(0)
    return 2 * hits / np.maximum(total, 1)
