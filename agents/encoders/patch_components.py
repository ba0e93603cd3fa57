"""Principal components as the initial weights of a patch encoder and decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.pictures import PatchDecoder, PatchEncoder, as_channels
from memenvs.agents.encoders.principal_components import REGULARISATION

MARGIN = 0.5
"""Smallest value of a component, after the shift, over the pictures that it was found with; its rms is about 1."""
TANH_GAIN = 1.2
"""Factor on pixels, -1 to 1, before the decoder's last function, Tanh, which makes large ones smaller.

Errors of patches of other faces (width 256): 0.0023 with 1, 0.0016 with 1.2, 0.0033 with 1.5.
"""
SMALLEST = 1e-4
"""Smallest variance that is divided by; pictures that are all alike have none but that of rounding."""


@torch.no_grad()
def start_with_components(encoder: PatchEncoder, decoder: PatchDecoder, pictures: Tensor, added: Tensor) -> None:
    """Let an encoder and a decoder of patches start as principal components.

    Each convolution maps blocks of 2 x 2 to their principal components, and the linear layer does so with patches. The
    decoder's layers do the opposite. Components are shifted above 0, so that ReLUs leave them as they are. What varies
    little, such as small and rare objects, has about as much weight in a code as what varies most, as in
    `PrincipalComponents`.

    A memory adds codes of time and place to what the encoder gives. So the components of largest variance lie along
    directions in which the added vectors vary least, and the decoder scales each component as a linear regression does.
    Directions in which the added vectors have a mean square above 1, that of codes, are left to them.

    Args:
        encoder: Encoder of a width D of at least 8.
        decoder: Decoder of the same width.
        pictures: uint8, (P, H, W, 3); typical ones. There are fewer components than patches.
        added: float, (D, D); second moments of the vectors that are added to codes.
    """
    values = as_channels(pictures, encoder.linear.weight.dtype)
    convolutions = [layer for layer in encoder.convolutions if isinstance(layer, nn.Conv2d)]
    opposites = [layer for layer in decoder.layers if isinstance(layer, nn.ConvTranspose2d)][::-1]
    for convolution, opposite in zip(convolutions, opposites, strict=True):
        values = _reduce_blocks(convolution, opposite, values)
    last = opposites[0]
    assert last.bias is not None
    last.weight.mul_(2 * TANH_GAIN)  # from 0 to 1 to -1 to 1
    last.bias.mul_(2 * TANH_GAIN).sub_(TANH_GAIN)

    patches = _blocks(values, stride=1)
    inputs = patches.shape[1]
    noise, directions = torch.linalg.eigh(added.double())  # ascending
    mean, axes, variances = _components(patches, max(1, int((noise < 1).sum())))
    scale = (variances + REGULARISATION * variances[0].clamp(min=SMALLEST)).rsqrt()
    scale *= (len(added) / (variances * scale**2).sum().clamp(min=SMALLEST)).sqrt()  # codes have mean square 1
    noise, directions = noise[: len(scale)].clamp(min=0), directions.T[: len(scale)]
    signal = variances * scale**2
    weight = (axes * scale) @ directions  # (inputs, D)
    encoder.linear.weight.zero_()[:, :inputs] = weight.T
    encoder.linear.bias.copy_(-mean @ weight)
    first = decoder.layers[0]
    assert isinstance(first, nn.Linear)
    first.weight[:inputs] = (axes * (signal / (signal + noise).clamp(min=SMALLEST) / scale)) @ directions
    first.bias[:inputs] = mean
    first.weight[inputs : inputs + 4] = 0  # the constant channel, at the four positions
    first.bias[inputs : inputs + 4] = 1


def _reduce_blocks(convolution: nn.Conv2d, opposite: nn.ConvTranspose2d, values: Tensor) -> Tensor:
    """Let a convolution find the components of blocks, and a transposed one make blocks of components.

    A transposed convolution has one bias for all four positions of a block, which need different ones. So the channel
    after the components is constant, 1, and its weights are these biases.

    Args:
        convolution: Kernel and stride are 2.
        opposite: Kernel and stride are 2; it has as many inputs as the convolution has outputs, and the reverse.
        values: float, (P, C, h, w); C may be less than the convolution's inputs, as others are then left out.

    Returns:
        Components, shifted above 0, float, (P, K, h / 2, w / 2); K is less than the convolution's outputs.
    """
    used = values.shape[1]
    blocks = _blocks(values, stride=2)  # (P h/2 w/2, 4 C)
    mean, axes, variances = _components(blocks, convolution.out_channels - 1)
    size, count = variances.mean().clamp(min=SMALLEST).sqrt(), len(variances)
    outputs = (blocks - mean) @ axes / size
    shift = MARGIN - outputs.amin(0)
    convolution.weight[:count] = 0
    convolution.weight[:count, :used] = (axes / size).T.unflatten(1, (used, 2, 2))
    assert convolution.bias is not None and opposite.bias is not None
    convolution.bias[:count] = shift - mean @ axes / size
    back = (axes * size).T  # (K, 4 C)
    opposite.weight[:, :used] = 0
    opposite.weight[:count, :used] = back.unflatten(1, (used, 2, 2))
    opposite.weight[count, :used] = (mean - shift @ back).unflatten(0, (used, 2, 2))
    opposite.bias[:used] = 0
    if opposite.out_channels > used:  # a hidden layer: its own constant channel
        opposite.weight[:, used] = 0
        opposite.bias[used] = 1
    pictures, _, height, width = values.shape
    return (outputs + shift).view(pictures, height // 2, width // 2, count).movedim(3, 1).to(values.dtype)


def _blocks(values: Tensor, stride: int) -> Tensor:
    """Blocks of 2 x 2 of float, (P, C, h, w); float64, (blocks, 4 C), in the order of a kernel's weights."""
    return functional.unfold(values, 2, stride=stride).movedim(1, 2).flatten(0, 1).double()


def _components(vectors: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, axes and variances of the principal components, largest first; (n,), (n, K) and (K,), K <= `most`.

    There are far more vectors than numbers in each, unlike in `PrincipalComponents.fit`.
    """
    most = min(most, len(vectors) - 1)  # others would be of rounding
    mean = vectors.mean(0)
    centred = vectors - mean
    variances, axes = torch.linalg.eigh(centred.T @ centred / len(centred))
    return mean, axes.flip(1)[:, :most], variances.flip(0)[:most].clamp(min=0)
