"""The file of a replay buffer: what it must hold, at the edges."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from memenvs.agents.algorithms.replay_file import ReplayContent


def content(lengths: list[int], next: int = 0) -> ReplayContent:
    """Episodes of some lengths, 0 for none; each has one position more than steps."""
    positions = sum(length + 1 for length in lengths if length > 0)
    tensors = {
        "lengths": torch.tensor(lengths, dtype=torch.int64),
        "terminated": torch.zeros(len(lengths), dtype=torch.bool),
        "action": torch.arange(positions) % 2,
        "reward": torch.arange(float(positions)),
    }
    return ReplayContent(tensors, next, 5)


def test_wrong_numbers_are_named() -> None:
    for lengths, next, message in (
        (torch.tensor([2.0, 1.0, 0.0]), 0, r"'lengths' must be torch\.int64 with one axis, got torch\.float32"),
        (torch.tensor([2, -1, 0]), 0, "is of another replay"),
        (torch.tensor([2, 1, 0]), 3, "is of another replay"),
    ):
        forged = content([2, 1, 0], next)
        forged.tensors["lengths"] = lengths
        with pytest.raises(ValueError, match=f"^file: {message}"):
            forged.check(Path("file"), 3, 2, {name: forged.tensors[name] for name in ("action", "reward")})


def test_entries_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "very" / "deep" / "replay"
    good = content([2, 1, 0], next=2)
    good.write(path)
    assert ReplayContent.read(path, 5).next == 2
    tensors = {name: value.contiguous() for name, value in good.tensors.items()}
    entries = {"stamp": "5", "next": "2", "checksum": good._checksum()}
    largest = 10**18 - 1
    save_file(tensors, path, {"stamp": "5", "next": str(largest)})
    assert ReplayContent.read(path, 5).next == largest
    for change, message in (
        ({"next": str(largest + 1)}, "'next' must be the number of a row, got '1000000000000000000'"),
        ({"next": "-1"}, "'next' must be the number of a row, got '-1'"),
        ({"next": ""}, "'next' must be the number of a row, got ''"),
        ({"next": "\u0662"}, "'next' must be the number of a row"),  # a digit of another script
        ({"stamp": "6"}, "must be the replay of environment step 5, got that of 6"),
        ({"next": "1"}, "does not have the checksum"),
        ({"more": "1"}, r"must have the entries stamp, next and checksum, got \['checksum', 'more', 'next', 'stamp'\]"),
    ):
        save_file(tensors, path, entries | change)
        with pytest.raises(ValueError, match=f"replay: {message}"):
            ReplayContent.read(path, 5)
    for name, value in (("reward", good.tensors["reward"] + 1), ("terminated", ~good.tensors["terminated"])):
        save_file(tensors | {name: value}, path, entries)
        with pytest.raises(ValueError, match="does not have the checksum"):
            ReplayContent.read(path, 5)
    save_file(tensors, path)
    with pytest.raises(ValueError, match="must be the replay of environment step 5, got that of None"):
        ReplayContent.read(path, 5)
