"""PREVALENT's weights, from a random file with the same shapes."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from memenvs.agents.papers.mtvm.config import MTVMConfig
from memenvs.agents.papers.mtvm.model import MTVM
from memenvs.agents.papers.mtvm.prevalent import load_prevalent

DIM, INNER, WORDS, WIDTH = 8, 12, 10, 5 + 128


def network(**changes: Any) -> MTVM:
    sizes = {"dim": DIM, "inner": INNER, "heads": 2, "text_layers": 2, "cross_layers": 2}
    sizes |= {"text_positions": 6, "vision_positions": 9}
    torch.manual_seed(0)
    return MTVM(MTVMConfig(**{**sizes, **changes}), WORDS + 3, WIDTH - 128)


def weights() -> dict[str, Tensor]:
    """A random tensor for each name of PREVALENT's modules."""
    dense: dict[str, tuple[int, int]] = {"vision_encoder.visn_fc": (DIM, WIDTH), "pooler.dense": (DIM, DIM)}
    norms = ["embeddings.LayerNorm", "vision_encoder.visn_layer_norm"]
    blocks = [(f"lalayer.{i}.attention.self", f"lalayer.{i}.attention.output") for i in range(2)]
    feeds = [(f"lalayer.{i}.intermediate", f"lalayer.{i}.output") for i in range(2)]
    for i in range(2):
        layer = f"addlayer.{i}"
        blocks += [(f"{layer}.{kind}_self_att.self", f"{layer}.{kind}_self_att.output") for kind in ("lang", "visn")]
        blocks.append((f"{layer}.visual_attention.att", f"{layer}.visual_attention.output"))
        feeds += [(f"{layer}.{kind}_inter", f"{layer}.{kind}_output") for kind in ("lang", "visn")]
    for projections, out in blocks:
        dense |= {f"{projections}.{name}": (DIM, DIM) for name in ("query", "key", "value")}
        dense[f"{out}.dense"] = DIM, DIM
        norms.append(f"{out}.LayerNorm")
    for first, second in feeds:
        dense |= {f"{first}.dense": (INNER, DIM), f"{second}.dense": (DIM, INNER)}
        norms.append(f"{second}.LayerNorm")
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, DIM),
        "embeddings.position_embeddings.weight": (6, DIM),
        "embeddings.token_type_embeddings.weight": (2, DIM),
    }
    for name, shape in dense.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.weight": (DIM,), f"{name}.bias": (DIM,)}
    generator = torch.Generator().manual_seed(3)
    tensors = {f"bert.{name}": torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return tensors | {"mlmhead.predictions.bias": torch.zeros(WORDS), "action.linear.weight": torch.zeros(36, DIM)}


def save(folder: Path, tensors: dict[str, Any], name: str = "pytorch_model.bin") -> Path:
    path = folder / name
    save_file(tensors, path) if path.suffix == ".safetensors" else torch.save(tensors, path)
    return path


def test_every_tensor_finds_its_place(tmp_path: Path) -> None:
    net, file = network(), weights()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    load_prevalent(net, save(tmp_path, file, "weights.safetensors"))
    after = net.state_dict()
    other = network()
    load_prevalent(other, save(tmp_path, file, "pytorch_model.bin"))
    assert all(torch.equal(value, after[key]) for key, value in other.state_dict().items())
    fresh = ("view_positions", "view_types", "view_norm", "pooler", "act", "choose", "critic")
    for key, value in after.items():
        assert torch.equal(value, before[key]) == key.startswith(fresh), key
    taken = [value for key, value in after.items() if not key.startswith(fresh)]
    assert len(taken) == sum(key.startswith("bert.") for key in file) - 2  # all but its pooler
    pairs = {
        "cross_layers.1.cross.value.bias": "addlayer.1.visual_attention.att.value.bias",
        "cross_layers.0.text.attention.norm.weight": "addlayer.0.lang_self_att.output.LayerNorm.weight",
        "cross_layers.1.vision.feed.inner.weight": "addlayer.1.visn_inter.dense.weight",
        "cross_layers.0.text.feed.outer.weight": "addlayer.0.lang_output.dense.weight",
        "text_layers.1.attention.output.weight": "lalayer.1.attention.output.dense.weight",
        "text_layers.0.feed.norm.bias": "lalayer.0.output.LayerNorm.bias",
        "see.weight": "vision_encoder.visn_fc.weight",
        "word_types.weight": "embeddings.token_type_embeddings.weight",
    }
    for own, theirs in pairs.items():
        assert torch.equal(after[own], file[f"bert.{theirs}"])
    assert torch.equal(after["words.weight"][:WORDS], file["bert.embeddings.word_embeddings.weight"])
    assert torch.equal(after["words.weight"][WORDS:], before["words.weight"][WORDS:])  # the markers of dialogues


def test_wrong_files_are_named_and_change_nothing(tmp_path: Path) -> None:
    net = network()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    name = "bert.addlayer.1.visn_output.dense.weight"

    file, odd = weights(), r"'addlayer.1.visn_output.dense.weight'"
    missing = {key: value for key, value in file.items() if key != name}
    for tensors, message in (
        (missing, f"{odd} is missing"),
        (file | {name: file[name][:, 1:]}, rf"{odd} must be of floats \(8, 12\), got torch.float32 \(8, 11\)"),
        (file | {"bert.addlayer.2.lang_inter.dense.bias": torch.zeros(12)}, "MTVM has no 'addlayer.2.lang_inter.dense"),
        (file | {name: file[name] * float("nan")}, f"{odd} has NaN or infinity"),
        (file | {"epoch": 3}, "must hold tensors by name and nothing else"),
    ):
        with pytest.raises(ValueError, match=message):
            load_prevalent(net, save(tmp_path, tensors))
        assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    with pytest.raises(ValueError, match="two_way must be True"):
        load_prevalent(network(two_way=False), save(tmp_path, file))
    with pytest.raises(FileNotFoundError, match="weights of PREVALENT are expected there"):
        load_prevalent(net, tmp_path / "nothing.bin")


class _Dangerous:
    def __reduce__(self) -> Any:
        return os.mkdir, ("executed",)


def test_a_file_is_never_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (save(tmp_path, {"a": _Dangerous()}), tmp_path / "noise.safetensors", tmp_path / "noise.bin"):
        if path.name.startswith("noise"):
            path.write_bytes(b"not weights")
        with pytest.raises(ValueError, match="not a file of weights"):
            load_prevalent(network(), path)
    assert not (tmp_path / "executed").exists()
