"""Archives by themselves: names, limits, tensors."""

from __future__ import annotations

import io
import warnings
import zipfile

import pytest
import torch

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
