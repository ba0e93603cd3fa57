"""Visual encoder `symbolic`: a small network that estimates symbolic observations."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.visual import channels_first, load_weights, read_tensors
from memenvs.files import write_file
from memenvs.houses.classes import YCB_CLASSES

#: Weights that `studies/ext_objnav_pictures/pretrain_encoder.py symbolic` wrote.
WEIGHTS = Path(__file__).with_name("symbolic.safetensors")
#: Rows and columns of a picture.
PICTURE_SIZE = (48, 64)
#: Rows and columns of cells; a cell is 4 x 4 pixels.
CELLS = (12, 16)
#: Distances of obstacles, from left to right; a column of cells has two.
NUM_RAYS = 2 * CELLS[1]
#: Area that the symbolic observation gives to one pixel of a picture, in pixels of an image of 256 x 256.
PIXEL_AREA = 16
_FULL_AREA = 1 + 256 * 256


class Seen(NamedTuple):
    """Estimates of what a picture shows.

    Attributes:
        cell_logits: float, (B, 20, 12, 16); of each category being in each cell.
        logits: float, (B, 20); of each category being in the picture: the largest of its cells.
        areas: float, (B, 20); area of each category if it is there, as in the symbolic observation.
        rays: float, (B, 32); distances of obstacles, as there.
    """

    cell_logits: Tensor
    logits: Tensor
    areas: Tensor
    rays: Tensor


class SymbolicEncoder(nn.Module):
    """Estimates the 52 numbers of a symbolic observation: 1.6 million multiply-adds a picture.

    A layer over the three colours of each pixel and two strided convolutions lead to 12 x 16 cells. Each cell has
    logits of the 20 categories. A category is in the picture if it is in a cell; its area follows from the largest
    logit and the number of cells. A column of cells gives two distances of obstacles, with the mean of all columns as
    context.

    Attributes:
        features_dim: 52.
        feature_key: Key of the observation that it estimates, "symbolic".
        image_size: Rows and columns that it needs.
    """

    features_dim = len(YCB_CLASSES) + NUM_RAYS
    feature_key = "symbolic"
    image_size: tuple[int, int] | None = PICTURE_SIZE

    def __init__(self) -> None:
        super().__init__()
        self.pixel = nn.Linear(3, 8)
        self.first = nn.Conv2d(8, 16, 2, 2)
        self.second = nn.Conv2d(16, 40, 2, 2)
        self.around = nn.Conv2d(40, 40, 3, padding=1, groups=40)
        self.mix = nn.Conv2d(40, 40, 1)
        self.presence = nn.Conv2d(40, len(YCB_CLASSES), 1)
        self.squeeze = nn.Conv2d(40, 8, 1)
        self.column = nn.Linear(8 * CELLS[0], 64)
        self.context = nn.Linear(8 * CELLS[0], 64)
        self.rays = nn.Linear(64, 2)
        self.area_scale = nn.Parameter(torch.zeros(len(YCB_CLASSES), 2))
        self.area_offset = nn.Parameter(torch.full((len(YCB_CLASSES),), 0.3))
        assert self.presence.bias is not None
        nn.init.constant_(self.presence.bias, -5.0)  # most categories are absent from most cells
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Estimate symbolic observations.

        Args:
            images: uint8, (B, 48, 64, 3), sRGB.

        Returns:
            float, (B, 52), 0 to 1: areas of the 20 categories, 0 if one is not seen, and 32 distances; see
            `memenvs.objectnav.symbolic`.

        Raises:
            ValueError: The images have another shape or type.
        """
        seen = self.see(images)
        areas = torch.where(seen.logits > 0, seen.areas, 0.0)
        return torch.cat([areas, seen.rays], 1).clamp(0.0, 1.0)

    def see(self, images: Tensor) -> Seen:
        """Compute all outputs; arguments and errors as in `forward`."""
        if images.shape[1:3] != PICTURE_SIZE:
            height, width = PICTURE_SIZE
            raise ValueError(
                f"images must have {height} rows and {width} columns for this encoder, got {tuple(images.shape)}"
            )
        pixels = channels_first(images).permute(0, 2, 3, 1)  # a view: (B, 48, 64, 3)
        x = functional.relu(self.pixel((pixels - 0.5) * 4.0)).permute(0, 3, 1, 2)  # 0 to 1 -> -2 to 2; (B, 8, 48, 64)
        x = functional.relu(self.first(x))  # (B, 16, 24, 32)
        x = functional.relu(self.second(x))  # (B, 40, 12, 16)
        x = functional.relu(x + self.around(x))
        x = functional.relu(self.mix(x))
        cell_logits = self.presence(x)
        logits = cell_logits.amax((2, 3))
        count = torch.log1p(torch.sigmoid(cell_logits).sum((2, 3)))
        areas = (self.area_scale * torch.stack([logits, count], -1)).sum(-1) + self.area_offset
        columns = functional.relu(self.squeeze(x)).flatten(1, 2).transpose(1, 2)  # (B, 16, 8 * 12)
        hidden = functional.relu(self.column(columns) + self.context(columns.mean(1, keepdim=True)))
        return Seen(cell_logits, logits, areas, self.rays(hidden).flatten(1))


def area_of(pixels: Tensor) -> Tensor:
    """Convert numbers of pixels, of any shape, to areas of the symbolic observation, float."""
    return torch.log1p(PIXEL_AREA * pixels.to(torch.float32)) / math.log(_FULL_AREA)


def pixels_of(areas: np.ndarray) -> np.ndarray:
    """Convert areas of the symbolic observation to numbers of pixels."""
    return (np.exp(areas * math.log(_FULL_AREA)) - 1) / PIXEL_AREA


def save_symbolic_encoder(encoder: SymbolicEncoder, path: Path) -> None:
    """Write the weights for `load_symbolic_encoder`, rounded to float16."""
    tensors = {name: value.to(torch.float16).contiguous() for name, value in encoder.state_dict().items()}
    write_file(path, save(tensors))


def load_symbolic_encoder(weights: str | Path | None = None) -> SymbolicEncoder:
    """Load a frozen encoder, float32, in evaluation mode.

    Args:
        weights: File of `save_symbolic_encoder`. None takes the weights that come with this package.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is incomplete, or of another network.
    """
    encoder = SymbolicEncoder().eval()
    path = WEIGHTS if weights is None else Path(weights)
    load_weights(encoder, read_tensors(path), path)
    return encoder.requires_grad_(False)
