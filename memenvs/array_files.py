"""NumPy files that anyone may have written; each error names the file and the array."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from memenvs.json_records import MAX_RATIO, MIN_UNPACKED


def map_npy(path: Path) -> np.ndarray:
    """Map the array of a .npy file into memory, read-only, in the shape and dtype of the file.

    Raises:
        ValueError: The file is broken, or has objects of Python in it.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # a broken header raises whatever Python's tokenizer, parser or integers do
        raise ValueError(f"{path}: is no .npy of a whole array ({_why(error)})") from error


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of a .npz file: name -> array.

    Raises:
        ValueError: The file or an array is broken, has objects of Python in it, or unpacks to too much.
    """
    name = None
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > max(
                MIN_UNPACKED, MAX_RATIO * path.stat().st_size
            ):
                raise ValueError(f"unpacks to more than {MAX_RATIO} times its size")
            arrays = {}
            for name in archive.namelist():
                with archive.open(name) as member:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
            return arrays
    except Exception as error:  # as above, and what a damaged archive raises
        array = "" if name is None else f": array {name.removesuffix('.npy')!r}"
        raise ValueError(f"{path}: is no .npz of whole arrays{array} ({_why(error)})") from error


def _why(error: Exception) -> str:
    is_pickled = isinstance(error, ValueError) and "allow_pickle" in str(error)
    return "pickled objects are never read" if is_pickled else str(error) or type(error).__name__
