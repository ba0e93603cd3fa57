"""VC-1, the encoder of the ReLIC article, from a local file of its weights; needs the extra `vc1`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.visual import channels_first, load_weights, read_tensors

#: Short side that pictures are resized to, and side of the square in their middle that the network sees.
RESIZED, SEEN = 256, 224
#: Of ImageNet's colours, red, green and blue, 0 ... 1.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Parts of the file that only its own pre-training used.
UNUSED = ("decoder", "mask_token")


class VC1Encoder(nn.Module):
    """Vision transformer ViT-B/16, 86 million parameters, 35 GFLOP a picture; the features are its class token after the last norm.

    Args:
        full_frame: The network sees the whole picture, resized to 224 x 224, and not the middle 224 x 224 of 256 x 256, which leaves out
            23 percent of it.

    Raises:
        ImportError: The extra `vc1` is not installed.

    Source:
        Majumdar et al. (2023), Where are we in the search for an artificial visual cortex for embodied intelligence?; resizing and
        cropping as in ReLIC's release.
    """

    features_dim = 768
    mean: Tensor
    deviation: Tensor

    def __init__(self, *, full_frame: bool = False) -> None:
        try:
            import timm
        except ImportError as error:
            raise ImportError('VC-1 needs timm: pip install "memenvs[vc1]"') from error
        super().__init__()
        self.full_frame = full_frame
        self.transformer: nn.Module = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=0)
        for name, colours in (("mean", MEAN), ("deviation", DEVIATION)):
            self.register_buffer(name, torch.tensor(colours).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Features of pictures.

        Args:
            images: uint8, (B, H, W, 3), sRGB; resized with cubic splines.

        Returns:
            float, (B, 768).

        Raises:
            ValueError: The pictures have another shape or type.
        """
        return self.transformer((self.crop(channels_first(images)) - self.mean) / self.deviation)

    def crop(self, pictures: Tensor) -> Tensor:
        """What the network sees, float, (B, 3, 224, 224), of pictures (B, 3, H, W)."""
        height, width = pictures.shape[2:]
        scale = RESIZED / min(height, width)
        size = (SEEN, SEEN) if self.full_frame else (round(height * scale), round(width * scale))
        if (height, width) != size:
            pictures = functional.interpolate(pictures, size, mode="bicubic", antialias=True).clamp(0.0, 1.0)
        top, left = ((side - SEEN) // 2 for side in size)
        return pictures[:, :, top : top + SEEN, left : left + SEEN]


def load_vc1(weights: str | Path, *, full_frame: bool = False) -> VC1Encoder:
    """A frozen VC-1 in evaluation mode.

    Args:
        weights: `vc1_vitb.pth`, or a safetensors file (`.safetensors`) of the same tensors. A `.pth` file is read with `weights_only=True`:
            nothing in it is executed.
        full_frame: See `VC1Encoder`.

    Raises:
        ImportError: The extra `vc1` is not installed.
        FileNotFoundError: There is no such file.
        ValueError: It is not whole, holds more than tensors, or is of another network.
    """
    path = Path(weights)
    content: Any = read_tensors(path) if path.suffix == ".safetensors" else _read_pth(path)
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        content = content["model"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path}: must hold tensors by name, alone or under 'model', got {_outline(content)}")
    encoder = VC1Encoder(full_frame=full_frame)
    tensors = {name: value for name, value in content.items() if not name.startswith(UNUSED)}
    load_weights(encoder.transformer, tensors, path)
    return encoder.eval().requires_grad_(False)


def _read_pth(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{path}: must be a whole file of nothing but tensors ({reason}); others can be saved as safetensors first"
        ) from None


def _outline(content: Any) -> str:
    return f"a dict with {list(content)[:5]}" if isinstance(content, dict) else type(content).__name__
