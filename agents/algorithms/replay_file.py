"""File of a replay buffer: safetensors with a checksum."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from memenvs.files import atomic_replace


@dataclass(frozen=True)
class ReplayContent:
    """Content of a file.

    Attributes:
        tensors: "lengths" int64 (capacity,), "terminated" bool (capacity,), and each store at all steps of its
            episodes, (positions, ...).
        next: Row that the next episode is written to.
        stamp: A number that `load` must be given again, such as the environment steps of the learner.
    """

    tensors: dict[str, Tensor]
    next: int
    stamp: int

    def write(self, path: Path) -> None:
        """Write the file, which is complete or not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"stamp": str(self.stamp), "next": str(self.next), "checksum": self._checksum()}
        with atomic_replace(path) as temporary:
            try:
                save_file(self.tensors, temporary, metadata)
            except SafetensorError as error:  # such as a full disk
                raise OSError(f"{path}: cannot be written ({error})") from None

    @classmethod
    def read(cls, path: Path, stamp: int) -> ReplayContent:
        """Read a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is damaged, not a replay, or of another stamp.
        """
        if not path.is_file():
            raise FileNotFoundError(f"no file {str(path)!r} with a replay")
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
                metadata = file.metadata() or {}
        except (SafetensorError, RuntimeError, LookupError) as error:  # an unknown dtype is a KeyError
            raise ValueError(f"{path}: not a whole replay ({error}); was it cut short?") from None
        if not metadata.keys() <= {"stamp", "next", "checksum"}:
            raise ValueError(f"{path}: must have the entries stamp, next and checksum, got {sorted(metadata)}")
        if metadata.get("stamp") != str(stamp):
            raise ValueError(
                f"{path}: must be the replay of environment step {stamp}, got that of {metadata.get('stamp')}"
            )
        row = metadata.get("next", "")
        if not (row.isascii() and row.isdigit() and len(row) < 19):
            raise ValueError(f"{path}: 'next' must be the number of a row, got {row!r}")
        content = cls(tensors, int(row), stamp)
        if metadata.get("checksum") not in (None, content._checksum()):  # files of early versions have none
            raise ValueError(f"{path}: does not have the checksum that it was written with, so it is damaged")
        return content

    def check(self, path: Path, capacity: int, max_steps: int, stores: Mapping[str, Tensor]) -> None:
        """Check that this is the content of a certain buffer.

        Args:
            path: The file, for messages.
            capacity: Number of episodes.
            max_steps: Largest number of steps of an episode.
            stores: Tensors of the buffer by name, (capacity, max_steps + 1, ...).

        Raises:
            ValueError: It is of another buffer.
        """
        names = {"lengths", "terminated", *stores}
        if self.tensors.keys() != names:
            raise ValueError(f"{path}: a replay of this learner must have {sorted(names)}, got {sorted(self.tensors)}")
        for name, dtype in (("lengths", torch.int64), ("terminated", torch.bool)):
            tensor = self.tensors[name]
            if tensor.dtype != dtype or tensor.ndim != 1:
                raise ValueError(f"{path}: {name!r} must be {dtype} with one axis, got {tensor.dtype} {tensor.shape}")
        lengths = self.tensors["lengths"]
        sizes = {len(lengths), len(self.tensors["terminated"])}
        low, high = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        if sizes != {capacity} or low < 0 or high > max_steps or self.next >= capacity:
            raise ValueError(
                f"{path}: is of another replay: must be of {capacity} episodes of at most {max_steps} steps, got "
                f"{len(lengths)} of at most {high}"
            )
        positions = int((lengths[lengths > 0] + 1).sum())
        for name, store in stores.items():
            expected = ((positions, *store.shape[2:]), store.dtype)
            got = (tuple(self.tensors[name].shape), self.tensors[name].dtype)
            if expected != got:
                raise ValueError(f"{path}: is of another replay: {name!r} must be {expected}, got {got}")

    def _checksum(self) -> str:
        """Checksum of all tensors and numbers, CRC-32."""
        crc = zlib.crc32(f"{self.stamp} {self.next}".encode())
        for name, tensor in sorted(self.tensors.items()):
            crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), crc)
            crc = zlib.crc32(tensor.contiguous().flatten().view(torch.uint8).numpy().data, crc)
        return str(crc)
