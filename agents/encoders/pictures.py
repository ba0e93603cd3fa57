"""Encoders and decoders of pictures: patches of 16 x 16 pixels, and views of 84 x 84."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.principal_components import PrincipalComponents

PATCH_PIXELS = 16
"""Side of a patch."""
PATCH_STRIDE = 8
"""Distance between neighbouring patches, which overlap by half."""
VIEW_PIXELS = 84
"""Side of a view."""
CALIBRATION_VECTORS = 256
"""Random vectors that a decoder is calibrated with."""
LEAK = 0.01
"""Slope of the leaky ReLUs below 0."""


def as_channels(pictures: Tensor, dtype: torch.dtype) -> Tensor:
    """Bring pictures, uint8, (..., H, W, C), to float, (..., C, H, W), 0 to 1."""
    return pictures.movedim(-1, -3).to(dtype) / 255


class PictureEncoder(nn.Module):
    """Base of the encoders: pictures in, rows of a table of vectors out.

    Attributes:
        convolutions: Layers before `linear`.
        linear: Last layer, to width D.
        rows_per_picture: Rows that a picture has in the table.
    """

    convolutions: nn.Sequential
    linear: nn.Linear
    rows_per_picture: int

    def table(self, pictures: Tensor) -> Tensor:
        """Encode P pictures.

        Args:
            pictures: uint8, (P, H, W, 3).

        Returns:
            float, (P * rows_per_picture, D).
        """
        return self.codes(self.features(pictures))

    def features(self, pictures: Tensor) -> Tensor:
        """Convolve P pictures.

        Args:
            pictures: uint8, (P, H, W, 3).

        Returns:
            float, (P, channels, rows, columns); with principal components, (P, K).
        """
        return self.convolutions(as_channels(pictures, self.linear.weight.dtype))

    def codes(self, features: Tensor) -> Tensor:
        """Bring features of P pictures to width D, float, (P * rows_per_picture, D)."""
        return self.linear(features.flatten(1))

    @torch.no_grad()
    def calibrate(self, pictures: Tensor) -> None:
        """Scale and shift each layer so that its outputs have mean 0 and mean square 1.

        With PyTorch's own weights the vectors of different pictures hardly differ beside the codes of time and place.
        Scaling the last layer alone would make them change too fast when those before it learn.

        Args:
            pictures: uint8, (P, H, W, 3); typical ones.

        Source:
            Mishkin and Matas, "All you need is a good init", ICLR 2016; here the means are shifted too.
        """
        values = as_channels(pictures, self.linear.weight.dtype)
        for layer in self.convolutions:
            if isinstance(layer, nn.Conv2d):
                _standardise(layer, layer(values).transpose(0, 1).flatten(1))
            elif isinstance(layer, PrincipalComponents):
                layer.fit(values)
            values = layer(values)
        _standardise(self.linear, self.table(pictures).T)


def _standardise(layer: nn.Conv2d | nn.ConvTranspose2d | nn.Linear, outputs: Tensor) -> None:
    """Scale and shift a layer by its outputs, float, (channels, values)."""
    scale = outputs.std(1, correction=0)
    scale = scale.where(scale > 1e-5, 1.0)  # pictures of one colour differ by rounding alone
    axis = 1 if isinstance(layer, nn.ConvTranspose2d) else 0  # of output channels
    layer.weight /= scale.view([-1 if k == axis else 1 for k in range(layer.weight.ndim)])
    assert layer.bias is not None
    layer.bias.copy_((layer.bias - outputs.mean(1)) / scale)


class PatchEncoder(PictureEncoder):
    """Encodes all patches of a picture: three convolutions and a linear layer.

    Kernels and strides are 2, so an output of the last convolution depends on 8 x 8 pixels, and four neighbours make a
    patch. `table` therefore convolves the whole picture once, although patches overlap. The result is that of `forward`
    on the patches cut out, up to rounding.

    A layer reads each pixel once. So a convolution is computed as a product of matrices, after pixels are put in order
    once. This takes three quarters of the time of PyTorch's convolutions on a CPU.

    Args:
        dim: Width D.
        cells: Patches along each side of a picture, whose sides are `8 * (cells + 1)` pixels.

    Source:
        SAT's release: 64, 64 and 32 channels, width 128; 42,016 parameters. With another width the last convolution has
        D / 4 channels, rounded down, so that the linear layer has about as many inputs as outputs.
    """

    def __init__(self, dim: int = 128, cells: int = 10) -> None:
        super().__init__()
        last = max(dim // 4, 1)
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 64), (64, 64), (64, last)):
            layers += [nn.Conv2d(inputs, outputs, 2, 2), nn.ReLU(inplace=True)]
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(last * 2 * 2, dim)
        self.rows_per_picture = cells**2

    def forward(self, patches: Tensor) -> Tensor:
        """Encode single patches, uint8, (P, 16, 16, 3), to float, (P, D)."""
        return super().codes(self.features(patches))

    def features(self, pictures: Tensor) -> Tensor:
        """Convolve P pictures, whose sides are multiples of 8 pixels; see `PictureEncoder`."""
        rows, columns = (side // PATCH_STRIDE for side in pictures.shape[1:3])
        # Row y of a square of 8 x 8 pixels has the bits y0 y1 y2; so has column x. Each layer sums over the last bits.
        bits = pictures.view(len(pictures), rows, 2, 2, 2, columns, 2, 2, 2, 3).permute(0, 1, 5, 2, 6, 3, 7, 4, 8, 9)
        values = bits.to(self.linear.weight.dtype) / 255  # (P, rows, columns, y0, x0, y1, x1, y2, x2, 3)
        for layer in self.convolutions:
            if isinstance(layer, nn.Conv2d):
                assert layer.bias is not None
                weight = layer.weight.permute(2, 3, 1, 0).flatten(0, 2)  # (2 * 2 * inputs, outputs)
                values = torch.addmm(layer.bias, values.reshape(-1, len(weight)), weight)
            else:
                values = layer(values)
        return values.view(len(pictures), rows, columns, -1).movedim(3, 1)

    def codes(self, features: Tensor) -> Tensor:
        """Bring features of whole pictures to width D, patches row by row; see `PictureEncoder`."""
        kernel = self.linear.weight.unflatten(1, (-1, 2, 2))  # features: (P, channels, cells + 1, cells + 1)
        return functional.conv2d(features, kernel, self.linear.bias).flatten(2).transpose(1, 2).flatten(0, 1)


class ViewEncoder(PictureEncoder):
    """Encodes views: three convolutions and a linear layer.

    Args:
        dim: Width D.
        components: If not 0, this number of principal components takes the place of the third convolution. They are
            found by `calibrate`, with more views than components.

    Source:
        SAT, appendix on MiniWorld: 64, 64 and 16 channels, width 128; 105,744 parameters.
    """

    rows_per_picture = 1

    def __init__(self, dim: int = 128, components: int = 0) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs, kernel, stride in ((3, 64, 8, 4), (64, 64, 4, 2)):
            layers += [nn.Conv2d(inputs, outputs, kernel, stride), nn.LeakyReLU(LEAK)]
        if components:
            layers += [nn.Flatten(), PrincipalComponents(64 * 9 * 9, components)]
        else:
            layers += [nn.Conv2d(64, 16, 3, 3), nn.LeakyReLU(LEAK)]
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(components or 16 * 3 * 3, dim)


class PatchDecoder(nn.Module):
    """Maps vectors to patches: a linear layer and three transposed convolutions.

    Kernels and strides are 2, so a transposed convolution maps each pixel to 2 x 2 pixels that no other pixel reaches.
    It is therefore computed as a product of matrices, and pixels are put in order after the last one. This takes half
    of the time of PyTorch's transposed convolutions on a CPU.

    Args:
        dim: Width D.

    Source:
        SAT's release: 32, 64 and 64 channels, width 128; 41,987 parameters. With another width the first convolution
        has as many channels as the last one of `PatchEncoder`.
    """

    def __init__(self, dim: int = 128) -> None:
        super().__init__()
        first = max(dim // 4, 1)
        self.layers = nn.Sequential(
            nn.Linear(dim, first * 2 * 2),
            nn.ReLU(),
            nn.Unflatten(1, (first, 2, 2)),
            nn.ConvTranspose2d(first, 64, 2, 2),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(64, 64, 2, 2),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(64, 3, 2, 2),
            nn.Tanh(),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Decode float, (P, D), to float, (P, 16, 16, 3), 0 to 1."""
        pixels = self.layers[:3](vectors).movedim(1, 3)  # (P, 2, 2, channels)
        for layer in list(self.layers)[3:]:
            if isinstance(layer, nn.ConvTranspose2d):
                assert layer.bias is not None
                weight = layer.weight.permute(0, 2, 3, 1).flatten(1)  # (inputs, 2 * 2 * outputs)
                pixels = torch.addmm(layer.bias.repeat(4), pixels.reshape(-1, layer.in_channels), weight)
            else:
                pixels = layer(pixels)
        # Row y of a patch has the bits y0 y1 y2 y3, of which each layer has added one; so has column x.
        bits = pixels.view(len(vectors), *[2] * 8, 3)  # (P, y0, x0, y1, x1, y2, x2, y3, x3, 3)
        ordered = bits.permute(0, 1, 3, 5, 7, 2, 4, 6, 8, 9).reshape(len(vectors), PATCH_PIXELS, PATCH_PIXELS, 3)
        return (ordered + 1) / 2


class ViewDecoder(nn.Module):
    """Maps vectors to one view or several: a linear layer and three transposed convolutions.

    Args:
        dim: Width D.
        views: Views that are generated at once.
        background: Whether a learned view is added to all of them before the last function, Tanh.

    Source:
        SAT, appendix on MiniWorld: 64 and 64 channels; 167,202 parameters with six views. It names four transposed
        convolutions and lists three.
    """

    def __init__(self, dim: int = 128, views: int = 6, background: bool = False) -> None:
        super().__init__()
        self.views = views
        self.background = nn.Parameter(torch.zeros(3, VIEW_PIXELS, VIEW_PIXELS)) if background else None
        self.layers = nn.Sequential(
            nn.Linear(dim, 144),
            nn.ReLU(),
            nn.Unflatten(1, (16, 3, 3)),
            nn.ConvTranspose2d(16, 64, 3, 3),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 64, 4, 2),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 3 * views, 8, 4),
            nn.Tanh(),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Decode float, (P, D), to float, (P, views, 84, 84, 3), 0 to 1."""
        channels = self.layers[:-1](vectors).unflatten(1, (self.views, 3))
        if self.background is not None:
            channels = channels + self.background
        return (self.layers[-1](channels).movedim(2, 4) + 1) / 2

    @torch.no_grad()
    def calibrate(self, pictures: Tensor) -> None:
        """Start with the mean view as the background, and with layers that let vectors through.

        With PyTorch's own weights all layers learn to draw the background first. Their ReLUs are then below 0 for most
        vectors and stay there, and what differs between views is not learned.

        Args:
            pictures: uint8, (P, 84, 84, 3); typical ones.
        """
        assert self.background is not None
        self.background.copy_(torch.atanh(2 * as_channels(pictures, self.background.dtype).mean(0) - 1).clamp(-3, 3))
        linear = self.layers[0]
        assert isinstance(linear, nn.Linear)
        values = torch.randn(CALIBRATION_VECTORS, linear.in_features, generator=torch.Generator().manual_seed(0))
        *layers, last, _ = self.layers
        for layer in layers:
            if isinstance(layer, (nn.Linear, nn.ConvTranspose2d)):
                _standardise(layer, layer(values).transpose(0, 1).flatten(1))
            values = layer(values)
        assert isinstance(last, nn.ConvTranspose2d)
        last.weight.mul_(0.1)
