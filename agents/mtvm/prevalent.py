"""Weights of PREVALENT, the pretraining that MTVM starts from, out of a file of the user's."""

from __future__ import annotations

import pickle
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from memenvs.agents.mtvm.network import MTVM

#: What a file may have besides: heads that only the pretraining needs, and its own pooler, which MTVM learns anew.
_OTHERS = ("pooler.", "cls.", "mlmhead.", "action.", "next_action.", "is_match.")


def prevalent_names(text_layers: int, cross_layers: int) -> dict[str, str]:
    """Parameter of `MTVM` -> its name in PREVALENT's file, without the "bert." that all names there may begin with."""
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
        layers |= _feed(f"text_layers.{i}.feed", f"{layer}.intermediate", f"{layer}.output")
    for i in range(cross_layers):
        own, layer = f"cross_layers.{i}", f"addlayer.{i}"
        layers |= _attention(f"{own}.cross", f"{layer}.visual_attention.att", f"{layer}.visual_attention.output")
        for kind, name in (("text", "lang"), ("vision", "visn")):
            block = f"{layer}.{name}_self_att"
            layers |= _attention(f"{own}.{kind}.attention", f"{block}.self", f"{block}.output")
            layers |= _feed(f"{own}.{kind}.feed", f"{layer}.{name}_inter", f"{layer}.{name}_output")
    return names | {f"{a}.{part}": f"{b}.{part}" for a, b in layers.items() for part in ("weight", "bias")}


def load_prevalent(network: MTVM, path: str | PathLike[str]) -> None:
    """Puts PREVALENT's weights into the embeddings, text and cross layers and the projection of views; the rest stays as it is.

    Words that the network's vocabulary has beyond the file's (the markers of dialogues) stay as they were drawn.

    Args:
        network: With both directions in its cross layers, and the sizes of the file.
        path: safetensors (`.safetensors`), or a file of torch, of which tensors only are read.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read, or a tensor is missing, too many or of another shape; nothing was changed.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"no file {str(path)!r}: weights of PREVALENT are expected there (pytorch_model.bin or .safetensors)"
        )
    if not network.config.two_way:
        raise ValueError("two_way must be True for PREVALENT's weights, whose text hears the views too, got False")
    found = {name.removeprefix("bert."): value for name, value in _read(path).items()}
    wanted = prevalent_names(network.config.text_layers, network.config.cross_layers)
    own = network.state_dict()
    new: dict[str, Tensor] = {}
    for name, theirs in wanted.items():
        if theirs not in found:
            raise ValueError(f"{path}: {theirs!r} is missing")
        value, like = found[theirs], own[name]
        grows = (
            name == "words.weight"
            and value.dim() == 2
            and value.shape[1:] == like.shape[1:]
            and len(value) <= len(like)
        )
        if grows:
            value = torch.cat([value.to(like), like[len(value) :]])
        if value.shape != like.shape or not value.is_floating_point():
            raise ValueError(
                f"{path}: {theirs!r} must be of floats {tuple(like.shape)}, got {value.dtype} {tuple(found[theirs].shape)}"
            )
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"{path}: {theirs!r} has NaN or infinity")
        new[name] = value
    for name in sorted(found):
        if name not in wanted.values() and not name.startswith(_OTHERS):
            raise ValueError(f"{path}: MTVM has no {name!r}")
    network.load_state_dict(new, strict=False)


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: not a file of weights ({error})") from None
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{path}: must hold tensors by name and nothing else")
    return found


def _attention(own: str, asks: str, output: str) -> dict[str, str]:
    parts = {f"{own}.{name}": f"{asks}.{name}" for name in ("query", "key", "value")}
    return parts | {f"{own}.output": f"{output}.dense", f"{own}.norm": f"{output}.LayerNorm"}


def _feed(own: str, inner: str, output: str) -> dict[str, str]:
    return {f"{own}.inner": f"{inner}.dense", f"{own}.outer": f"{output}.dense", f"{own}.norm": f"{output}.LayerNorm"}
