"""Initial weights of MTVM from PREVALENT, the pre-training that it builds on."""

from __future__ import annotations

import pickle
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from memenvs.agents.papers.mtvm.model import MTVM

#: Prefixes of tensors that are ignored: heads of the pre-training, and its pooler, which MTVM learns anew.
_IGNORED = ("pooler.", "cls.", "mlmhead.", "action.", "next_action.", "is_match.")


def prevalent_names(text_layers: int, cross_layers: int) -> dict[str, str]:
    """Map parameters of `MTVM` to their names in PREVALENT's file, without the prefix "bert."."""
    names = {
        "words.weight": "embeddings.word_embeddings.weight",
        "word_positions.weight": "embeddings.position_embeddings.weight",
        "word_types.weight": "embeddings.token_type_embeddings.weight",
    }
    layers = {
        "word_norm": "embeddings.LayerNorm",
        "see": "vision_encoder.visn_fc",
        "see_norm": "vision_encoder.visn_layer_norm",
    }
    for i in range(text_layers):
        layer = f"lalayer.{i}"
        layers |= _attention(f"text_layers.{i}.attention", f"{layer}.attention.self", f"{layer}.attention.output")
        layers |= _feed_forward(f"text_layers.{i}.feed", f"{layer}.intermediate", f"{layer}.output")
    for i in range(cross_layers):
        own, layer = f"cross_layers.{i}", f"addlayer.{i}"
        layers |= _attention(f"{own}.cross", f"{layer}.visual_attention.att", f"{layer}.visual_attention.output")
        for kind, name in (("text", "lang"), ("vision", "visn")):
            block = f"{layer}.{name}_self_att"
            layers |= _attention(f"{own}.{kind}.attention", f"{block}.self", f"{block}.output")
            layers |= _feed_forward(f"{own}.{kind}.feed", f"{layer}.{name}_inter", f"{layer}.{name}_output")
    return names | {f"{a}.{part}": f"{b}.{part}" for a, b in layers.items() for part in ("weight", "bias")}


def load_prevalent(network: MTVM, path: str | PathLike[str]) -> None:
    """Load PREVALENT's embeddings, text and cross layers and projection of views.

    All other weights stay unchanged, and so do the embeddings of words that the network's vocabulary has beyond the
    file's (the markers of dialogues).

    Args:
        network: Network with `two_way` cross layers and the sizes of the file.
        path: safetensors file (`.safetensors`), or file of torch.save, from which only tensors are read.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read, or a tensor is missing, unknown or of another shape; nothing was changed.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"no file {str(path)!r}: weights of PREVALENT are expected there (pytorch_model.bin or .safetensors)"
        )
    if not network.config.two_way:
        raise ValueError("two_way must be True for PREVALENT's weights, whose text attends to the views, got False")
    weights = {name.removeprefix("bert."): value for name, value in _read(path).items()}
    names = prevalent_names(network.config.text_layers, network.config.cross_layers)
    own = network.state_dict()
    new: dict[str, Tensor] = {}
    for name, theirs in names.items():
        if theirs not in weights:
            raise ValueError(f"{path}: {theirs!r} is missing")
        value, like = weights[theirs], own[name]
        if (
            name == "words.weight"
            and value.dim() == 2
            and value.shape[1:] == like.shape[1:]
            and len(value) <= len(like)
        ):
            value = torch.cat([value.to(like), like[len(value) :]])  # keep the words that the file does not have
        if value.shape != like.shape or not value.is_floating_point():
            raise ValueError(
                f"{path}: {theirs!r} must be of floats {tuple(like.shape)}, "
                f"got {value.dtype} {tuple(weights[theirs].shape)}"
            )
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"{path}: {theirs!r} has NaN or infinity")
        new[name] = value
    for name in sorted(weights):
        if name not in names.values() and not name.startswith(_IGNORED):
            raise ValueError(f"{path}: MTVM has no {name!r}")
    network.load_state_dict(new, strict=False)


def _read(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file without executing code in it."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: not a file of weights ({error})") from None
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path}: must hold tensors by name and nothing else")
    return content


def _attention(own: str, projections: str, output: str) -> dict[str, str]:
    """Map the modules of an `Attention` to PREVALENT's."""
    parts = {f"{own}.{name}": f"{projections}.{name}" for name in ("query", "key", "value")}
    return parts | {f"{own}.output": f"{output}.dense", f"{own}.norm": f"{output}.LayerNorm"}


def _feed_forward(own: str, inner: str, output: str) -> dict[str, str]:
    """Map the modules of a `FeedForward` to PREVALENT's."""
    return {f"{own}.inner": f"{inner}.dense", f"{own}.outer": f"{output}.dense", f"{own}.norm": f"{output}.LayerNorm"}
