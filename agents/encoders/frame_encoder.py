"""Encoder of Room Ballet's frames, which convolves each distinct cell of a frame only once."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from memenvs.checks import choices_for
from memenvs.room_ballet.episodes import NUM_CELLS, NUM_DANCERS
from memenvs.room_ballet.frames import CELL_PIXELS, FLOOR, WALL, sprites

Initialisation = Literal["calibrated", "release"]


class FrameEncoder(nn.Module):
    """Maps images of 45 x 45 pixels to vectors: two convolutions and a linear layer.

    A frame is 5 x 5 cells of 9 x 9 pixels: a border of wall around 3 x 3 cells of floor, one of which shows a dancer.
    The first convolution has kernel and stride 9, so each of its outputs depends on one cell. A cell shows one of only
    287 images: one of 285 dancers, the floor or the wall. `table` therefore convolves these 287 images once. It
    computes the second convolution for an empty room and adds, for each frame, the difference that its dancer makes.
    The result is that of `forward` on the rendered frames, up to rounding.

    Args:
        dim: Width D of the vectors.
        initialisation: "calibrated" scales and shifts the last layer once so that each of the D numbers has mean 0 and
            mean square 1 over the 2565 frames. "release" keeps PyTorch's own weights. The vector of a frame is then
            about 1 % of its token (frame + time + place), so that tokens of different frames hardly differ.

    Raises:
        ValueError: There is no such initialisation.

    Source:
        SAT's release: kernels 9 (stride 9) and 3, 16 and 32 channels, width 128; 45,536 parameters.
    """

    cells: Tensor
    floor_mask: Tensor
    offset: Tensor

    def __init__(self, dim: int = 128, initialisation: Initialisation = "calibrated") -> None:
        super().__init__()
        if initialisation not in get_args(Initialisation):
            raise ValueError(
                f"unknown initialisation {initialisation!r}; {choices_for(initialisation, get_args(Initialisation))}"
            )
        self.conv1 = nn.Conv2d(3, 16, CELL_PIXELS, CELL_PIXELS)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.linear = nn.Linear(32 * 3 * 3, dim)
        empty = [np.full((CELL_PIXELS, CELL_PIXELS, 3), colour, np.uint8) for colour in (FLOOR, WALL)]
        cells = torch.from_numpy(np.stack([*sprites(), *empty])).permute(0, 3, 1, 2).flatten(1)
        self.register_buffer("cells", cells, persistent=False)  # uint8, (287, 243): dancers, floor, wall
        self.register_buffer("floor_mask", _floor_mask(), persistent=False)
        self.register_buffer("offset", _dancer_offsets(), persistent=False)
        if initialisation == "calibrated":
            self.calibrate()

    def forward(self, images: Tensor) -> Tensor:
        """Encode any images.

        Args:
            images: uint8, (B, 45, 45, 3).

        Returns:
            float, (B, D).
        """
        pixels = images.permute(0, 3, 1, 2).to(self.linear.weight.dtype) / 255
        features = F.relu(self.conv2(F.relu(self.conv1(pixels))))  # (B, 32, 3, 3)
        return self.linear(features.flatten(1))

    def table(self, rows: Tensor) -> Tensor:
        """Encode frames by their rows in `memenvs.room_ballet.frames.frame_table()`.

        Args:
            rows: int64, (U,), 0 to 2564; U frames.

        Returns:
            float, (U, D).
        """
        pixels = self.cells.to(self.linear.weight.dtype) / 255
        cell_features = F.relu(F.linear(pixels, self.conv1.weight.flatten(1), self.conv1.bias))  # (287, 16)
        # contribution of each cell image to an output of conv2, at each of the 9 positions under the kernel
        kernel = self.conv2.weight.permute(1, 2, 3, 0).flatten(1)  # (16, 9 * 32)
        contribution = (cell_features @ kernel).view(-1, 9, 32)  # (287, 9, 32)
        floor, wall = contribution[-2], contribution[-1]  # (9, 32) each
        assert self.conv2.bias is not None
        empty_room = self.floor_mask @ (floor - wall) + (wall.sum(0) + self.conv2.bias)  # (9, 32), one row per output
        added = F.pad(
            contribution[:-2] - floor, (0, 0, 0, 1)
        )  # (285, 10, 32); the tenth row, 0, is for outputs whose kernel does not cover the dancer
        dancer = rows // NUM_CELLS
        cell = rows % NUM_CELLS
        index = dancer[:, None] * 10 + self.offset[cell]  # (U, 9), one position per output
        # the gradient of index_select is much faster than that of an embedding
        difference = added.view(-1, 32).index_select(0, index.flatten()).view(-1, 9, 32)  # (U, 9, 32)
        features = F.relu(empty_room + difference)
        weight = (
            self.linear.weight.view(-1, 32, 9).transpose(1, 2).flatten(1)
        )  # as the features: outputs, then channels
        return F.linear(features.flatten(1), weight, self.linear.bias)

    @torch.no_grad()
    def calibrate(self) -> None:
        """Scale and shift the last layer to mean 0 and mean square 1 over all frames."""
        vectors = self.table(torch.arange(NUM_DANCERS * NUM_CELLS))
        scale = vectors.std(0, correction=0)
        self.linear.weight /= scale[:, None]
        self.linear.bias.copy_((self.linear.bias - vectors.mean(0)) / scale)


def _floor_mask() -> Tensor:
    """Mask of floor under the 3 x 3 kernel, float, (9, 9): output, position in the kernel; 1 floor, 0 wall."""
    room = F.pad(torch.ones(3, 3), (1, 1, 1, 1))
    return room.unfold(0, 3, 1).unfold(1, 3, 1).reshape(9, 9)


def _dancer_offsets() -> Tensor:
    """Position of a dancer in the 3 x 3 kernel, int64, (9, 9): cell of the dancer, output; 9 if not covered."""
    offset = torch.full((3, 3, 3, 3), 9)
    for row in range(3):
        for column in range(3):
            for top in range(3):
                for left in range(3):
                    down = row + 1 - top
                    right = column + 1 - left
                    if 0 <= down < 3 and 0 <= right < 3:
                        offset[row, column, top, left] = 3 * down + right
    return offset.view(9, 9)
