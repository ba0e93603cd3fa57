"""VC-1 from a local file, on random weights of its shape."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from memenvs.agents.encoders import make_encoder
from memenvs.agents.encoders.vc1 import VC1Encoder, load_vc1
from tests.agents.pictures import noise


def test_vc1_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"memenvs\[vc1\]"):
        VC1Encoder()


def test_vc1_files_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError, match="no weights at"):
        load_vc1(tmp_path / "vc1.pth")
    with pytest.raises(FileNotFoundError, match="no weights at"):
        make_encoder("vc1", weights=str(tmp_path / "vc1.safetensors"))
    path = tmp_path / "vc1.pth"
    torch.save({"model": {"norm.weight": torch.zeros(768)}}, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="must be a whole file of nothing but tensors"):
        load_vc1(path)
    path.write_bytes(pickle.dumps(Path("executed"), protocol=2))
    with pytest.raises(ValueError, match="must be a whole file of nothing but tensors"):
        load_vc1(path)
    torch.save({"epoch": 3, "state": {}}, path)
    with pytest.raises(
        ValueError, match=r"must hold tensors by name, alone or under 'model', got a dict with \['epoch', 'state'\]"
    ):
        load_vc1(path)


@pytest.fixture(scope="module")
def vit() -> nn.Module:
    timm = pytest.importorskip("timm", reason="VC-1 needs the extra vc1")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model("vit_base_patch16_224", num_classes=0).eval()


def test_vc1_features(tmp_path, vit):
    tensors = {name: value.to(torch.float16) for name, value in vit.state_dict().items()}
    vit.load_state_dict(tensors)
    path = tmp_path / "vc1_vitb.pth"
    torch.save({"model": {**tensors, "mask_token": torch.zeros(1), "decoder_norm.bias": torch.zeros(1)}}, path)
    save_file(tensors, tmp_path / "vc1.safetensors")
    images = noise(2, 256)
    middle = images[:, 16:240, 16:240].numpy() / 255.0
    normal = (middle - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    with torch.no_grad():
        expected = vit.forward_features(torch.tensor(normal, dtype=torch.float32).permute(0, 3, 1, 2))[:, 0]
    for file in (path, tmp_path / "vc1.safetensors"):
        encoder = load_vc1(file)
        assert not any(parameter.requires_grad for parameter in encoder.parameters())
        torch.testing.assert_close(encoder(images), expected, atol=1e-4, rtol=1e-4)
    frozen = make_encoder("vc1", weights=str(path), device="cpu")
    assert frozen.features_dim == 768
    np.testing.assert_allclose(frozen(images.numpy()), expected.numpy(), atol=1e-2, rtol=1e-2)
    del tensors["cls_token"], tensors["blocks.3.mlp.fc1.bias"]
    torch.save({"model": tensors}, path)
    with pytest.raises(
        ValueError,
        match=r"vc1_vitb.pth: must have the \d+ tensors .* 2 are missing \['blocks.3.mlp.fc1.bias', 'cls_token'\]",
    ):
        load_vc1(path)


@pytest.mark.usefixtures("vit")
def test_resizing_and_cropping():
    ramp = torch.linspace(0, 1, 512).view(1, 1, 1, 512).expand(1, 3, 256, 512)  # twice as wide as high, dark to bright
    central = VC1Encoder().crop(ramp)
    assert central.shape == (1, 3, 224, 224)
    torch.testing.assert_close(central, ramp[:, :, 16:240, 144:368])
    whole = VC1Encoder(full_frame=True).crop(ramp)
    assert whole.shape == (1, 3, 224, 224)
    assert whole[..., 0].max() < 0.01 < 0.99 < whole[..., -1].min()
    assert 0 <= whole.min() <= whole.max() <= 1
