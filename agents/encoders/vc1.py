"""Visual encoder `vc1`: VC-1 from a local file of its weights; needs the extra `vc1`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.visual import channels_first, load_weights, read_tensors

#: Short side to which images are resized, in pixels.
RESIZE = 256
#: Side of the central square that is then cropped, the network's input, in pixels.
CROP = 224
#: Mean and standard deviation of ImageNet's red, green and blue, 0 to 1.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
#: Prefixes of tensors in the file that only its own pre-training used.
UNUSED = ("decoder", "mask_token")


class VC1Encoder(nn.Module):
    """Vision transformer ViT-B/16, 86 million parameters; its features are the class token.

    An image takes 35 GFLOP.

    Args:
        full_frame: Whether to resize the whole image to 224 x 224. Otherwise the short side is resized to 256 and the
            central 224 x 224 are taken, which leaves out 23 percent of a square image.

    Raises:
        ImportError: The extra `vc1` is not installed.

    Source:
        Majumdar et al. (2023), Where are we in the search for an artificial visual cortex for embodied intelligence?
        Resizing and cropping as in ReLIC's release.
    """

    features_dim = 768
    feature_key = "visual"
    image_size: tuple[int, int] | None = None  # images of any size are resized
    mean: Tensor
    std: Tensor

    def __init__(self, *, full_frame: bool = False) -> None:
        try:
            import timm
        except ImportError as error:
            raise ImportError('VC-1 needs timm: pip install "memenvs[vc1]"') from error
        super().__init__()
        self.full_frame = full_frame
        self.transformer: nn.Module = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=0)
        for name, channels in (("mean", MEAN), ("std", STD)):
            self.register_buffer(name, torch.tensor(channels).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Encode images.

        Args:
            images: uint8, (B, H, W, 3), sRGB; resized bicubically.

        Returns:
            float, (B, 768).

        Raises:
            ValueError: The images have another shape or type.
        """
        return self.transformer((self.crop(channels_first(images)) - self.mean) / self.std)

    def crop(self, pixels: Tensor) -> Tensor:
        """Resize and crop to the network's input, float, (B, 3, H, W) -> (B, 3, 224, 224), 0 to 1."""
        height, width = pixels.shape[2:]
        scale = RESIZE / min(height, width)
        size = (CROP, CROP) if self.full_frame else (round(height * scale), round(width * scale))
        if (height, width) != size:
            pixels = functional.interpolate(pixels, size, mode="bicubic", antialias=True).clamp(0.0, 1.0)
        top, left = ((side - CROP) // 2 for side in size)
        return pixels[:, :, top : top + CROP, left : left + CROP]


def load_vc1(weights: str | Path, *, full_frame: bool = False) -> VC1Encoder:
    """Load a frozen VC-1 in evaluation mode.

    Args:
        weights: `vc1_vitb.pth`, or a safetensors file (`.safetensors`) of the same tensors. A `.pth` file is read with
            `weights_only=True`: no code in it is executed.
        full_frame: See `VC1Encoder`.

    Raises:
        ImportError: The extra `vc1` is not installed.
        FileNotFoundError: There is no such file.
        ValueError: The file is incomplete, has more than tensors in it, or is of another network.
    """
    path = Path(weights)
    content: Any = read_tensors(path) if path.suffix == ".safetensors" else _read_pth(path)
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        content = content["model"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path}: must hold tensors by name, alone or under 'model', got {_describe(content)}")
    encoder = VC1Encoder(full_frame=full_frame)
    tensors = {name: value for name, value in content.items() if not name.startswith(UNUSED)}
    load_weights(encoder.transformer, tensors, path)
    return encoder.eval().requires_grad_(False)


def _read_pth(path: Path) -> Any:
    """Read a file of torch.save without executing code in it."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{path}: must be a whole file of nothing but tensors ({reason}); others can be saved as safetensors first"
        ) from None


def _describe(content: Any) -> str:
    """Describe the content of a file in a few words, for a message."""
    return f"a dict with {list(content)[:5]}" if isinstance(content, dict) else type(content).__name__
