"""The convolutions of Room Ballet, and the same for all of its few distinct frames at a fraction of the cost."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from memenvs.checks import choices_for
from memenvs.room_ballet.episodes import CELLS, DANCERS
from memenvs.room_ballet.frames import CELL, FLOOR, WALL, sprites

Initialisation = Literal["calibrated", "release"]


class FrameEncoder(nn.Module):
    """Images of 45 x 45 pixels to vectors: two convolutions and a linear layer.

    The first convolution looks at whole cells of the room, and cells show nothing but the floor, the wall or one of 285 dancers. So `table` sends
    these 287 pictures through it once; of the second convolution's outputs it computes those of an empty room and what a dancer adds.
    It gives what `forward` gives for rendered frames, up to rounding.

    Args:
        dim: Width of the vectors, D.
        initialisation: "calibrated" scales and shifts the last layer once so that each of the D numbers has mean 0 and mean square 1 over the
            2565 frames; "release" leaves PyTorch's own weights, with which a frame is about 1 % of its token.

    Raises:
        ValueError: There is no such initialisation.

    Source:
        SAT's release: kernels 9 (stride 9) and 3, 16 and 32 channels, 128 numbers; 45,536 parameters.
    """

    cells: Tensor
    floor: Tensor
    offset: Tensor

    def __init__(self, dim: int = 128, initialisation: Initialisation = "calibrated") -> None:
        super().__init__()
        if initialisation not in get_args(Initialisation):
            raise ValueError(
                f"unknown initialisation {initialisation!r}; {choices_for(initialisation, get_args(Initialisation))}"
            )
        self.conv1 = nn.Conv2d(3, 16, CELL, CELL)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.linear = nn.Linear(288, dim)
        empty = [np.full((CELL, CELL, 3), colour, np.uint8) for colour in (FLOOR, WALL)]
        cells = torch.from_numpy(np.stack([*sprites(), *empty])).permute(0, 3, 1, 2).flatten(1)
        self.register_buffer("cells", cells, persistent=False)  # uint8, (287, 243): dancers, floor, wall
        self.register_buffer("floor", _floor(), persistent=False)
        self.register_buffer("offset", _offsets(), persistent=False)
        if initialisation == "calibrated":
            self.calibrate()

    def forward(self, images: Tensor) -> Tensor:
        """Vectors of any images.

        Args:
            images: uint8, (B, 45, 45, 3).

        Returns:
            float, (B, D).
        """
        pixels = images.permute(0, 3, 1, 2).to(self.linear.weight.dtype) / 255
        features = F.relu(self.conv2(F.relu(self.conv1(pixels))))
        return self.linear(features.flatten(1))

    def table(self, rows: Tensor) -> Tensor:
        """Vectors of frames by their rows in the table of all frames.

        Args:
            rows: int64, (U,), in 0 ... 2564.

        Returns:
            float, (U, D).
        """
        pixels = self.cells.to(self.linear.weight.dtype) / 255
        cells = F.relu(F.linear(pixels, self.conv1.weight.flatten(1), self.conv1.bias))  # (287, 16)
        kernel = self.conv2.weight.permute(1, 2, 3, 0).flatten(1)  # (16, 9 x 32)
        under = (cells @ kernel).view(-1, 9, 32)  # what each picture gives at each place under the kernel
        floor, wall = under[-2], under[-1]
        assert self.conv2.bias is not None
        base = self.floor @ (floor - wall) + (wall.sum(0) + self.conv2.bias)  # (9, 32): each output where nobody is
        added = F.pad(under[:-2] - floor, (0, 0, 0, 1))  # one more: not under the kernel
        appearance, cell = rows // CELLS, rows % CELLS
        index = appearance[:, None] * 10 + self.offset[cell]  # (U, 9)
        beside = added.view(-1, 32).index_select(
            0, index.flatten()
        )  # its gradient is much faster than that of an embedding
        features = F.relu(base + beside.view(-1, 9, 32))
        weight = self.linear.weight.view(-1, 32, 9).transpose(1, 2).flatten(1)
        return F.linear(features.flatten(1), weight, self.linear.bias)

    @torch.no_grad()
    def calibrate(self) -> None:
        """Scales and shifts the last layer so that each output has mean 0 and mean square 1 over all frames."""
        vectors = self.table(torch.arange(DANCERS * CELLS))
        scale = vectors.std(0, correction=0)
        self.linear.weight /= scale[:, None]
        self.linear.bias.copy_((self.linear.bias - vectors.mean(0)) / scale)


def _floor() -> Tensor:
    """1 where there is floor and 0 where there is wall, for each of 3 x 3 outputs at each place under the kernel, float, (9, 9)."""
    room = F.pad(torch.ones(3, 3), (1, 1, 1, 1))
    return room.unfold(0, 3, 1).unfold(1, 3, 1).reshape(9, 9)


def _offsets() -> Tensor:
    """Where under the kernel at each of 3 x 3 places a dancer in each of 3 x 3 cells is, 9 for nowhere, int64, (9, 9)."""
    offset = torch.full((3, 3, 3, 3), 9)
    for row in range(3):
        for column in range(3):
            for top in range(3):
                for left in range(3):
                    down, right = row + 1 - top, column + 1 - left
                    if 0 <= down < 3 and 0 <= right < 3:
                        offset[row, column, top, left] = 3 * down + right
    return offset.view(9, 9)
