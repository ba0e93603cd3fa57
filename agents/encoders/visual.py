"""Frozen encoders of pictures: the network that comes with this package, and VC-1 for those who have its weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from memenvs.files import write_file
from memenvs.houses.classes import YCB_CLASSES

#: Weights that `examples/pretrain_encoder.py` wrote.
WEIGHTS = Path(__file__).with_name("visual.safetensors")
#: Rows and columns of what the network sees, of its last map, and into how many strips from left to right its features are divided.
IMAGE_SIDE, GRID, STRIPS = 128, 8, 4
#: Features of each strip.
STRIP_FEATURES = 64


class ConvNorm(nn.Sequential):
    """Convolution without bias, then batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """Two convolutions beside a shortcut.

    Source:
        He et al. (2016), Deep Residual Learning; where the stride is 2 the shortcut averages first (He et al., 2019, Bag of Tricks).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride)
        self.second = ConvNorm(outputs, outputs, 3)
        self.shortcut = (
            nn.Identity()
            if inputs == outputs and stride == 1
            else nn.Sequential(nn.AvgPool2d(stride), ConvNorm(inputs, outputs, 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        """float, (B, C, H, W) -> (B, outputs, H / stride, W / stride)."""
        return functional.relu(self.shortcut(x) + self.second(functional.relu(self.first(x))))


class VisualEncoder(nn.Module):
    """Residual network for pictures of homes, 1.7 million parameters, 0.3 GFLOP a picture.

    The features are 4 strips of the picture, from left to right, of 64 numbers >= 0 each, the largest in any cell of the strip: they tell
    what is seen and roughly where. One linear layer, the same everywhere, says of a cell or a strip which of the 20 categories it shows.

    Source:
        ReLIC, appendix D, in small: a network pre-trained to say which objects are present, then frozen.
    """

    features_dim = STRIPS * STRIP_FEATURES

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, 16, 3, stride=2)
        self.stages = nn.Sequential(
            Residual(16, 32, 2),
            Residual(32, 64, 2),
            Residual(64, 64, 1),
            Residual(64, 176, 2),
            Residual(176, 176, 1),
            Residual(176, 176, 1),
        )
        self.project = ConvNorm(176, STRIP_FEATURES, 1)
        self.presence = nn.Linear(STRIP_FEATURES, len(YCB_CLASSES))
        nn.init.constant_(self.presence.bias, -3.0)  # most things are not there
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Features of pictures.

        Args:
            images: uint8, (B, H, W, 3), sRGB; resized to 128 x 128 by averaging.

        Returns:
            float, (B, 256).

        Raises:
            ValueError: The pictures have another shape or type.
        """
        pictures = channels_first(images)
        if pictures.shape[2:] != (IMAGE_SIDE, IMAGE_SIDE):
            pictures = functional.adaptive_avg_pool2d(pictures, IMAGE_SIDE)
        return self.pool_strips(self.cell_features(pictures))

    def cell_features(self, pictures: Tensor) -> Tensor:
        """Features of each cell of 16 x 16 pixels, float, (B, H / 16, W / 16, 64), of pictures (B, 3, H, W), 0 ... 1."""
        x = functional.relu(self.stem((pictures - 0.5) * 4.0))
        return functional.relu(self.project(self.stages(x))).permute(0, 2, 3, 1)

    @staticmethod
    def pool_strips(cells: Tensor) -> Tensor:
        """The features of the pictures, (B, 256), from those of their cells."""
        return cells.unflatten(2, (STRIPS, -1)).amax((1, 3)).flatten(1)

    def presence_logits(self, features: Tensor) -> Tensor:
        """Logits of the 20 categories being in the picture, float, (B, 20), from its features: those of the strip that shows most of it."""
        return self.presence(features.unflatten(1, (STRIPS, STRIP_FEATURES))).amax(1)


def channels_first(images: Tensor) -> Tensor:
    """Pictures as networks take them: float32, (B, 3, H, W), 0 ... 1, in channels-last memory.

    Raises:
        ValueError: They are not uint8 (B, H, W, 3).
    """
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise ValueError(f"images must be uint8 (B, H, W, 3), got {images.dtype} {tuple(images.shape)}")
    return images.permute(0, 3, 1, 2).to(torch.float32) / 255.0


def save_encoder(encoder: VisualEncoder, path: Path) -> None:
    """Writes the weights of an encoder as `load_encoder` reads them: float16, with the normalisation multiplied into the convolutions."""
    fused = _fuse(copy.deepcopy(encoder))
    tensors = {name: value.to(torch.float16).contiguous() for name, value in fused.state_dict().items()}
    write_file(path, save(tensors))


def load_encoder(weights: str | Path | None = None) -> VisualEncoder:
    """A frozen encoder in evaluation mode, its normalisation multiplied into the convolutions, float32.

    Args:
        weights: File of `save_encoder`; None for the weights that come with this package.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not whole, or of another network.
    """
    encoder = _fuse(VisualEncoder())
    path = WEIGHTS if weights is None else Path(weights)
    load_weights(encoder, read_tensors(path), path)
    return encoder.requires_grad_(False)


def _fuse(encoder: VisualEncoder) -> VisualEncoder:
    """The encoder itself, in evaluation mode for good: each convolution does the normalisation after it too."""
    encoder.eval()
    for module in encoder.modules():
        if isinstance(module, ConvNorm):
            convolution, norm = module
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            module[0], module[1] = fuse_conv_bn_eval(convolution, norm), nn.Identity()
    return encoder


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not whole.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    try:
        return load(path.read_bytes())  # not load_file: its tensors stay tied to the file
    except SafetensorError as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error}); was it cut short?") from None


def load_weights(network: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Puts tensors into a network that they must fit exactly; they become float32.

    Raises:
        ValueError: A tensor is missing, is of another shape or belongs to nothing; the message names some and the file.
    """
    own = network.state_dict()
    missing, unknown = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or unknown:
        raise ValueError(
            f"{path}: must have the {len(own)} tensors of a {type(network).__name__}; "
            f"{len(missing)} are missing {missing[:3]}, {len(unknown)} are unknown {unknown[:3]}"
        )
    for name, value in own.items():
        if tensors[name].shape != value.shape:
            raise ValueError(f"{path}: {name} must be {tuple(value.shape)}, got {tuple(tensors[name].shape)}")
    network.load_state_dict(tensors)
