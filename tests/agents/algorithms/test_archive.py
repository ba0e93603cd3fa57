"""Archives by themselves: names, limits, tensors."""

from __future__ import annotations

import io
import warnings
import zipfile

import pytest
import torch
from torch import nn

from memenvs.agents.algorithms import archive
from memenvs.json_records import MAX_RATIO, MIN_UNPACKED

MEMBERS = {"config.json": b'{"format": 1}', "a.json": b'{"x": 2}', "b": b"\x00\x01"}


def test_members() -> None:
    file = io.BytesIO()
    archive.write(file, MEMBERS)
    assert archive.read(file, ("config.json",)) == {"config.json": MEMBERS["config.json"]}
    texts = archive.read(file, ("config.json",), lambda name: name.endswith("json"))
    assert sorted(texts) == ["a.json", "config.json"]
    with pytest.raises(ValueError, match=r"must have \['config.json', 'c'\], 'c' is missing"):
        archive.read(file, ("config.json", "c"))
    for content, message in ((b'{"format": 2}', "format must be 1, got 2"), (b"{}", "format must be 1, got None")):
        other = io.BytesIO()
        archive.write(other, {"config.json": content})
        with pytest.raises(ValueError, match=message):
            archive.read(other, ("config.json",))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as written, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            written.writestr("config.json", MEMBERS["config.json"])
    with pytest.raises(ValueError, match="has two members of one name, so it is no checkpoint"):
        archive.read(twice, ("config.json",))
    assert archive.FORMAT == 1


def test_packed_members_are_bounded() -> None:
    """By MAX_RATIO times the size of the file, and MIN_UNPACKED in any case; members that are not read do not count."""

    def packed(size: int, ballast: int) -> io.BytesIO:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
            written.writestr("config.json", b'{"format": 1}' + b" " * (size - 13))
            written.writestr("ballast", bytes(ballast), zipfile.ZIP_STORED)
        return file

    assert len(archive.read(packed(MIN_UNPACKED, 0), ("config.json",))["config.json"]) == MIN_UNPACKED
    with pytest.raises(ValueError, match=f"unpacks to more than {MAX_RATIO} times its size"):
        archive.read(packed(MIN_UNPACKED + 1, 0), ("config.json",))
    larger = 2 * MIN_UNPACKED
    archive.read(packed(larger, larger // MAX_RATIO), ("config.json",))
    with pytest.raises(ValueError, match=f"unpacks to more than {MAX_RATIO} times its size"):
        archive.read(packed(larger, larger // MAX_RATIO // 2), ("config.json",))


def test_copies() -> None:
    whole = torch.arange(6.0, requires_grad=True)
    copies = archive.cpu_copies({"whole": whole, "part": whole[2:], "turned": whole.view(2, 3).T})
    assert copies["turned"].is_contiguous() and copies["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not any(value.requires_grad for value in copies.values())
    copies["whole"].zero_()
    assert copies["part"].tolist() == [2, 3, 4, 5] and whole.sum() == 15


def stepped(seed: int) -> tuple[list[nn.Parameter], torch.optim.Adam]:
    """Two parameters, of which only the first has had a gradient."""
    generator = torch.Generator().manual_seed(seed)
    trained = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4))]
    optimizer = torch.optim.Adam(trained, lr=0.1 * seed)
    for _ in range(3):
        trained[0].grad = torch.randn(2, 3, generator=generator)
        optimizer.step()
    return trained, optimizer


def test_optimizer() -> None:
    (_, first), (trained, second) = stepped(1), stepped(2)
    tensors = archive.optimizer_tensors(first)
    assert sorted(tensors) == ["0.exp_avg", "0.exp_avg_sq", "0.step"] and tensors["0.step"] == 3
    archive.load_optimizer(second, trained, tensors)
    restored = archive.optimizer_tensors(second)
    assert restored.keys() == tensors.keys() and all(torch.equal(restored[name], tensors[name]) for name in tensors)
    assert second.param_groups[0]["lr"] == 0.2  # not of the file
    archive.load_optimizer(second, trained, {})
    assert archive.optimizer_tensors(second) == {}
    for change, message in (
        ({"0.step": None}, "'0.step' is missing"),
        ({"1.step": torch.tensor(1.0)}, "'1.exp_avg' is missing"),
        ({"2.step": torch.tensor(1.0)}, "has no '2.step'"),
        ({"0.more": torch.tensor(1.0)}, "has no '0.more'"),
        ({"0.exp_avg": torch.zeros(3, 2)}, r"'0.exp_avg' must be torch.float32 \(2, 3\), got torch.float32 \(3, 2\)"),
        ({"0.step": torch.tensor(3)}, r"'0.step' must be torch.float32 \(\), got torch.int64 \(\)"),
    ):
        changed = {name: value for name, value in (tensors | change).items() if value is not None}
        with pytest.raises(ValueError, match=rf"^optimizer\.safetensors: does not fit the policy, .*{message}"):
            archive.load_optimizer(second, trained, changed)
