"""Visual encoder `cnn`: a residual network whose weights come with this package."""

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

#: Weights that `studies/ext_objnav_pictures/pretrain_encoder.py cnn` wrote.
WEIGHTS = Path(__file__).with_name("visual.safetensors")
#: Rows and columns of the input image.
IMAGE_SIDE = 128
#: Rows and columns of the last feature map; a cell is 16 x 16 pixels.
GRID = 8
#: Vertical strips over which the last feature map is max-pooled.
STRIPS = 4
#: Channels of the last feature map, and so features of each strip.
STRIP_FEATURES = 64


class ConvNorm(nn.Sequential):
    """Convolution without bias, followed by batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """Two 3 x 3 convolutions with a shortcut.

    Source:
        He et al. (2016), Deep Residual Learning. With stride 2 the shortcut is average pooling and a 1 x 1 convolution
        (He et al., 2019, Bag of Tricks).
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
        """Apply the block; float, (B, inputs, H, W) -> (B, outputs, H / stride, W / stride)."""
        return functional.relu(self.shortcut(x) + self.second(functional.relu(self.first(x))))


class VisualEncoder(nn.Module):
    """Residual network for images of homes: 1.7 million parameters, 0.3 GFLOP an image.

    It max-pools 64 feature maps over four vertical strips. Pooling per strip, not globally, keeps the coarse position
    of an object. One linear layer (`presence`) maps the 64 features of any cell or strip to logits of the 20 object
    categories; only pre-training needs it.

    Source:
        ReLIC, appendix D, with a smaller network: pre-trained to classify which objects are present, then frozen.
    """

    features_dim = STRIPS * STRIP_FEATURES
    feature_key = "visual"
    image_size: tuple[int, int] | None = None  # images of any size are resized

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
        nn.init.constant_(self.presence.bias, -3.0)  # most categories are absent from most images
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Encode images.

        Args:
            images: uint8, (B, H, W, 3), sRGB; resized to 128 x 128 by averaging.

        Returns:
            float, (B, 256); 64 features >= 0 of each strip, from left to right.

        Raises:
            ValueError: The images have another shape or type.
        """
        pixels = channels_first(images)
        if pixels.shape[2:] != (IMAGE_SIDE, IMAGE_SIDE):
            pixels = functional.adaptive_avg_pool2d(pixels, IMAGE_SIDE)
        return self.pool_strips(self.cell_features(pixels))

    def cell_features(self, pixels: Tensor) -> Tensor:
        """Compute the last feature map; a cell of it is 16 x 16 pixels.

        Args:
            pixels: float, (B, 3, H, W), 0 to 1; H and W multiples of 16.

        Returns:
            float, (B, H / 16, W / 16, 64), >= 0.
        """
        pixels = (pixels - 0.5) * 4.0  # 0 to 1 -> -2 to 2
        x = functional.relu(self.stem(pixels))  # (B, 16, H / 2, W / 2)
        x = functional.relu(self.project(self.stages(x)))  # (B, 64, H / 16, W / 16)
        return x.permute(0, 2, 3, 1)

    @staticmethod
    def pool_strips(cells: Tensor) -> Tensor:
        """Max-pool cells over each strip, float, (B, rows, columns, 64) -> (B, 256)."""
        strips = cells.unflatten(2, (STRIPS, -1))  # (B, rows, STRIPS, columns / STRIPS, 64)
        return strips.amax((1, 3)).flatten(1)

    def presence_logits(self, features: Tensor) -> Tensor:
        """Compute logits of each category being in the image, float, (B, 256) -> (B, 20)."""
        logits = self.presence(features.unflatten(1, (STRIPS, STRIP_FEATURES)))  # (B, STRIPS, 20)
        return logits.amax(1)  # an object is in the image if it is in any strip


def channels_first(images: Tensor) -> Tensor:
    """Convert uint8 (B, H, W, 3) to float32 (B, 3, H, W), 0 to 1, in channels-last memory.

    Raises:
        ValueError: The images have another shape or type.
    """
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise ValueError(f"images must be uint8 (B, H, W, 3), got {images.dtype} {tuple(images.shape)}")
    return images.permute(0, 3, 1, 2).to(torch.float32) / 255.0


def save_encoder(encoder: VisualEncoder, path: Path) -> None:
    """Write an encoder's weights to a file for `load_encoder`.

    Batch normalisation is fused into the convolutions, and the weights are rounded to float16. `encoder` is unchanged.
    """
    fused = _fuse(copy.deepcopy(encoder))
    tensors = {name: value.to(torch.float16).contiguous() for name, value in fused.state_dict().items()}
    write_file(path, save(tensors))


def load_encoder(weights: str | Path | None = None) -> VisualEncoder:
    """Load a frozen encoder, float32, in evaluation mode.

    Its batch normalisation is fused into the convolutions.

    Args:
        weights: File of `save_encoder`. None takes the weights that come with this package.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is incomplete, or of another network.
    """
    encoder = _fuse(VisualEncoder())
    path = WEIGHTS if weights is None else Path(weights)
    load_weights(encoder, read_tensors(path), path)
    return encoder.requires_grad_(False)


def _fuse(encoder: VisualEncoder) -> VisualEncoder:
    """Fuse batch normalisation into the convolutions, in place; the encoder can then not be trained."""
    encoder.eval()
    for module in encoder.modules():
        if isinstance(module, ConvNorm):
            convolution, norm = module
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.BatchNorm2d)
            module[0] = fuse_conv_bn_eval(convolution, norm)
            module[1] = nn.Identity()
    return encoder


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a complete safetensors file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    try:
        return load(path.read_bytes())  # not load_file: its tensors stay tied to the file
    except SafetensorError as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error}); was it cut short?") from None


def load_weights(network: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors into a network, in its dtype; names and shapes must match exactly.

    Args:
        network: The network.
        tensors: Name of a parameter or buffer -> tensor.
        path: File that they were read from, for errors.

    Raises:
        ValueError: A tensor is missing, has another shape or fits no parameter. The message names the file and some
            tensors.
    """
    own = network.state_dict()
    missing = sorted(own.keys() - tensors.keys())
    unknown = sorted(tensors.keys() - own.keys())
    if missing or unknown:
        raise ValueError(
            f"{path}: must have the {len(own)} tensors of a {type(network).__name__}; "
            f"{len(missing)} are missing {missing[:3]}, {len(unknown)} are unknown {unknown[:3]}"
        )
    for name, value in own.items():
        if tensors[name].shape != value.shape:
            raise ValueError(f"{path}: {name} must be {tuple(value.shape)}, got {tuple(tensors[name].shape)}")
    network.load_state_dict(tensors)
