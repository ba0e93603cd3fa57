"""Pre-trains the visual encoder to say what is in a picture; a killed training goes on after its last whole epoch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor

from memenvs.agents.encoders.presence_dataset import PRESENCE_PIXELS, PresenceDataset, f1_scores, presence_loss
from memenvs.agents.encoders.visual import GRID, VisualEncoder, channels_first
from memenvs.files import write_file

#: Share of the steps in which the learning rate rises.
WARM_UP = 0.1
#: Rows and columns of a cut-out, in cells of the grid; this share of the cut-outs shows a thing if the picture does.
CUT_OUT, SHARE_WITH_THING = 4, 0.75


@dataclass(frozen=True, kw_only=True)
class PretrainingConfig:
    """Settings of a pre-training.

    Attributes:
        epochs: Passes over the pictures; >= 1.
        cut_out_epochs: So many of them, the first, see a quarter of each picture, in a quarter of the time; 0 ... epochs.
        batch_size: Pictures of a step; >= 1.
        learning_rate: Highest of the one-cycle schedule; > 0.
        weight_decay: Of AdamW; >= 0.
        bfloat16: Whether to compute in bfloat16; faster where the processor can, with other rounding.
        seed: Of the first weights, the order of the pictures and which of them are mirrored.

    Source:
        ReLIC, appendix D, for the task; one-cycle schedule: Smith and Topin (2018).
    """

    epochs: int = 51
    cut_out_epochs: int = 45
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    bfloat16: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.cut_out_epochs <= self.epochs:
            raise ValueError(f"cut_out_epochs must be 0 to epochs = {self.epochs}, got {self.cut_out_epochs}")
        if self.learning_rate <= 0 or self.weight_decay < 0:
            raise ValueError(
                f"learning_rate must be > 0 and weight_decay >= 0, got {self.learning_rate} and {self.weight_decay}"
            )


def pretrain(
    pictures: PresenceDataset,
    config: PretrainingConfig,
    checkpoint: Path,
    *,
    on_step: Callable[[float], None] | None = None,
    on_epoch: Callable[[int, VisualEncoder], None] | None = None,
) -> VisualEncoder:
    """An encoder that was trained on pictures.

    Args:
        pictures: What to learn from; a batch at least.
        config: How.
        checkpoint: File that is written after each epoch, and gone on from if it is there.
        on_step: Called after each step with its loss.
        on_epoch: Called after each epoch with the number of epochs so far and the encoder, in evaluation mode.

    Returns:
        The encoder, in evaluation mode. A training that was killed and called again ends with the same bits as one that was not
        (same machine, same number of threads).

    Raises:
        ValueError: The checkpoint is of other settings, or there are too few pictures.
    """
    count, batch = len(pictures.images), config.batch_size
    steps = count // batch
    if steps == 0:
        raise ValueError(f"pictures must be at least batch_size = {batch}, got {count}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        encoder = VisualEncoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=config.weight_decay)
    images, cells = torch.from_numpy(pictures.images), torch.from_numpy(pictures.cells)
    present = torch.from_numpy(pictures.present.astype(np.float32))
    for epoch in range(_resume(encoder, optimizer, config, checkpoint), config.epochs):
        rng = np.random.default_rng([config.seed, epoch])
        order, mirrored = rng.permutation(count), torch.from_numpy(rng.random(count) < 0.5)
        encoder.train()
        for k in range(steps):
            rows = torch.from_numpy(order[k * batch : (k + 1) * batch])
            seen, in_cells, target = images[rows], cells[rows], present[rows]
            if epoch < config.cut_out_epochs:
                seen, in_cells = crop_quarters(seen, in_cells, rng)
                target = (in_cells.sum((1, 2)) > PRESENCE_PIXELS).float()
            seen, in_cells = flip_horizontally(seen, mirrored[rows]), flip_horizontally(in_cells, mirrored[rows])
            optimizer.param_groups[0]["lr"] = config.learning_rate * one_cycle(
                (epoch * steps + k) / (config.epochs * steps)
            )
            with torch.autocast("cpu", torch.bfloat16, enabled=config.bfloat16):
                features = encoder.cell_features(channels_first(seen))
                cell_logits = encoder.presence(features)
                logits = encoder.presence_logits(encoder.pool_strips(features))
            loss = presence_loss(logits.float(), target)
            loss = loss + presence_loss(cell_logits.float().flatten(1), visible_fraction(in_cells).flatten(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if on_step is not None:
                on_step(loss.item())
        encoder.eval()
        _save(encoder, optimizer, config, epoch + 1, checkpoint)
        if on_epoch is not None:
            on_epoch(epoch + 1, encoder)
    return encoder.eval()


def crop_quarters(images: Tensor, cells: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """A random quarter of each picture, along the lines of the grid; `SHARE_WITH_THING` of them have a thing in them if there is one.

    Args:
        images: uint8, (B, 128, 128, 3).
        cells: uint8, (B, 8, 8, 20); pixels of each category in each cell.
        rng: Source of chance.

    Returns:
        uint8, (B, 64, 64, 3) and (B, 4, 4, 20).
    """
    side = images.shape[1] // GRID
    parts = []
    for image, pixels in zip(images, cells, strict=True):
        low, high = np.zeros(2, np.int64), np.full(2, GRID - CUT_OUT)
        with_thing = np.argwhere((pixels > PRESENCE_PIXELS).any(-1).numpy())
        if len(with_thing) and rng.random() < SHARE_WITH_THING:
            cell = with_thing[rng.integers(len(with_thing))]
            low, high = np.maximum(low, cell - CUT_OUT + 1), np.minimum(high, cell)
        i, j = rng.integers(low, high + 1).tolist()
        end_i, end_j = i + CUT_OUT, j + CUT_OUT
        parts.append((image[i * side : end_i * side, j * side : end_j * side], pixels[i:end_i, j:end_j]))
    return torch.stack([part for part, _ in parts]), torch.stack([part for _, part in parts])


def flip_horizontally(images: Tensor, which: Tensor) -> Tensor:
    """Some of the images (B, H, W, C), bool (B,), with left and right changed over."""
    return torch.where(which[:, None, None, None], images.flip(2), images)


def one_cycle(done: float) -> float:
    """Learning rate as a share of its highest: a line up from 0, then half a cosine down to 0; `done` is the share of the steps, 0 ... 1."""
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def visible_fraction(pixels: Tensor) -> Tensor:
    """How much of what counts as present is there, float32, 0 ... 1, for numbers of pixels: a thing on the edge of a cell is half in it."""
    return (pixels.to(torch.float32) / (PRESENCE_PIXELS + 1)).clamp(max=1.0)


def predict_presence(encoder: VisualEncoder, images: np.ndarray, batch: int = 100) -> np.ndarray:
    """What the encoder says is in pictures (uint8, (B, H, W, 3)): bool, (B, 20)."""
    with torch.inference_mode():
        parts = (torch.from_numpy(images[k : k + batch]) for k in range(0, len(images), batch))
        logits = torch.cat([encoder.presence_logits(encoder(part)) for part in parts])
    return (logits > 0).numpy()


def macro_f1(encoder: VisualEncoder, pictures: PresenceDataset) -> float:
    """Mean of the F1 scores of the 20 categories, of an encoder in evaluation mode."""
    return float(f1_scores(predict_presence(encoder, pictures.images), pictures.present).mean())


def _save(
    encoder: VisualEncoder, optimizer: torch.optim.Optimizer, config: PretrainingConfig, epoch: int, path: Path
) -> None:
    tensors = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    write_file(path, save_tensors(tensors, {"config": json.dumps(asdict(config)), "epoch": str(epoch)}))


def _resume(encoder: VisualEncoder, optimizer: torch.optim.Optimizer, config: PretrainingConfig, path: Path) -> int:
    """Epochs that a checkpoint has done, 0 if there is none; puts its tensors into encoder and optimiser."""
    if not path.exists():
        return 0
    with safe_open(path, "pt") as file:
        notes = file.metadata()
        if json.loads(notes["config"]) != asdict(config):
            raise ValueError(
                f"{path}: is of a training with other settings, {notes['config']}; delete it to start anew"
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
    return int(notes["epoch"])
