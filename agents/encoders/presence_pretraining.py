"""Pre-training of `VisualEncoder`: it learns to classify which objects an image shows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from memenvs.agents.encoders.presence_dataset import PRESENCE_PIXELS, PresenceDataset
from memenvs.agents.encoders.visual import GRID, VisualEncoder, channels_first
from memenvs.files import write_file
from memenvs.json_records import parse_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Share of the steps in which the learning rate rises.
WARM_UP = 0.1
#: Rows and columns of a crop, in cells of the grid.
CROP = 4
#: Share of crops that are chosen to show an object, among images that show one.
OBJECT_SHARE = 0.75


@dataclass(frozen=True, kw_only=True)
class PretrainingConfig:
    """Settings of a pre-training.

    Attributes:
        epochs: Passes over the images; >= 1.
        crop_epochs: First epochs, 0 to `epochs`, in which each image is cropped to a random quarter. Such an epoch
            takes a quarter of the time.
        batch_size: Images in a batch; >= 1.
        learning_rate: Highest rate of the one-cycle schedule; > 0.
        weight_decay: Weight decay of AdamW; >= 0.
        bfloat16: Whether to compute in bfloat16: faster on processors that support it, with other rounding.
        seed: Seed of the initial weights, the order of the images and which of them are mirrored.

    Raises:
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
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.crop_epochs <= self.epochs:
            raise ValueError(f"crop_epochs must be 0 to epochs = {self.epochs}, got {self.crop_epochs}")
        if self.learning_rate <= 0 or self.weight_decay < 0:
            raise ValueError(
                f"learning_rate must be > 0 and weight_decay >= 0, got {self.learning_rate} and {self.weight_decay}"
            )


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
        checkpoint: File that is written after each epoch; training resumes from it if it exists.
        on_step: Called after each step with its loss.
        on_epoch: Called after each epoch with the number of epochs so far and the encoder, in evaluation mode.

    Returns:
        The encoder, in evaluation mode. A training that was killed and called again ends with the same bits as one that
        was not (same machine, same number of threads).

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few images.
    """
    count = len(data.images)
    steps = count // config.batch_size
    if steps == 0:
        raise ValueError(f"images must be at least batch_size = {config.batch_size}, got {count}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        encoder = VisualEncoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=config.weight_decay)
    for epoch in range(load_checkpoint(encoder, optimizer, config, checkpoint), config.epochs):
        rng = np.random.default_rng([config.seed, epoch])
        order = rng.permutation(count)
        mirrored = torch.from_numpy(rng.random(count) < 0.5)
        encoder.train()
        for k in range(steps):
            rows = torch.from_numpy(order[k * config.batch_size : (k + 1) * config.batch_size])
            batch = _augmented(data, rows, mirrored[rows], epoch < config.crop_epochs, rng)
            rate = one_cycle((epoch * steps + k) / (config.epochs * steps))
            optimizer.param_groups[0]["lr"] = config.learning_rate * rate
            loss = _loss(encoder, *batch, bfloat16=config.bfloat16)
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


def one_cycle(done: float) -> float:
    """Share of the highest learning rate: linear from 0, then half a cosine to 0.

    Args:
        done: Share of the steps that are over, 0 to 1.
    """
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


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


def macro_f1(encoder: VisualEncoder, data: PresenceDataset) -> float:
    """Compute the mean F1 score of the 20 categories; the encoder is in evaluation mode."""
    return float(f1_scores(predict_presence(encoder, data.images), data.present).mean())


def save_checkpoint(
    encoder: nn.Module, optimizer: torch.optim.Optimizer, config: DataclassInstance, epoch: int, path: Path
) -> None:
    """Write encoder, optimizer, settings and the number of epochs to a file."""
    tensors = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    write_file(path, save_tensors(tensors, {"config": json.dumps(asdict(config)), "epoch": str(epoch)}))


def load_checkpoint(encoder: nn.Module, optimizer: torch.optim.Optimizer, config: DataclassInstance, path: Path) -> int:
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
