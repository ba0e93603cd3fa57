"""Pictures of FFHQ-world: drawn faces, or files of a folder; each has a number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from memenvs.faces.drawing import draw_face
from memenvs.faces.episodes import PICTURE_PIXELS
from memenvs.files import list_files

Split = Literal["train", "validation", "test", "all"]
#: Number of pictures, and numbers of each split: those of FFHQ.
NUM_PICTURES = 70_000
SPLITS = {
    "train": range(62_000),
    "validation": range(62_000, 69_000),
    "test": range(69_000, NUM_PICTURES),
    "all": range(NUM_PICTURES),
}
#: Suffixes of files that are pictures.
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
#: Folder of FFHQ's thumbnails. It has a folder for each thousand, 00000/00000.png to 69000/69999.png.
FFHQ_FOLDER = "thumbnails128x128"
#: Pictures that are kept once they were drawn or read, 95 MB.
_KEPT = 4096


class Pictures(ABC):
    """Pictures by number.

    Attributes:
        numbers: int32, (P,), read-only; numbers of the pictures to draw from, in order.
    """

    def __init__(self, numbers: Sequence[int] | np.ndarray) -> None:
        self.numbers = np.asarray(numbers, np.int32)
        self.numbers.flags.writeable = False

    @abstractmethod
    def read(self, number: int) -> np.ndarray:
        """Return a picture, uint8, (88, 88, 3), read-only.

        Args:
            number: Its number, one of `numbers`.

        Raises:
            ValueError: It cannot be read; the message names its file.
        """


class DrawnFaces(Pictures):
    """Faces that are drawn from their numbers; nothing to download."""

    def read(self, number: int) -> np.ndarray:
        """Draw a face, or return it as it was drawn before."""
        return _drawn(number)


class PictureFolder(Pictures):
    """Pictures in the files of a folder.

    Args:
        files: Number -> file of each picture.
    """

    def __init__(self, files: dict[int, Path]) -> None:
        super().__init__(list(files))
        self._files = files
        for file in files.values():
            _check_header(file, _state(file))

    def read(self, number: int) -> np.ndarray:
        """Read a file, or return what was read before if the file has not changed since."""
        file = self._files[number]
        state = _state(file)
        _check_header(file, state)
        return _read(file, state)


def open_pictures(folder: str | None, split: Split, num_images: int | None = None) -> Pictures:
    """Find the pictures of a split.

    Args:
        folder: Folder with pictures; None for drawn faces.
        split: "train", "validation", "test" or "all".
        num_images: Use the first ones alone; None for all.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: The folder has no pictures or none of this split, or fewer than `num_images`, or one of them is
            broken, too small or not RGB; the message names the file.
    """
    if folder is None:
        numbers = SPLITS[split]
        _check_count(num_images, len(numbers), split)
        return DrawnFaces(np.arange(numbers.start, numbers.stop)[:num_images])
    files = _files_of(Path(folder), split)
    if not files:
        count = len(_files_of(Path(folder), "all"))
        raise ValueError(f"split {split!r} of images={folder!r} has none of its {count} pictures; split 'all' has all")
    _check_count(num_images, len(files), split)
    return PictureFolder(dict(list(files.items())[:num_images]))


def _check_count(num_images: int | None, available: int, split: str) -> None:
    """Raise a ValueError if a split has fewer pictures than `num_images`."""
    if num_images is not None and num_images > available:
        raise ValueError(f"num_images must be at most {available}, the pictures of split {split!r}, got {num_images}")


def _files_of(folder: Path, split: Split) -> dict[int, Path]:
    """Number -> file of the pictures of a split; empty if the split has none."""
    if not folder.is_dir():
        raise FileNotFoundError(f"images must be a folder of pictures, there is none at {str(folder)!r}")
    for root in (folder, folder / FFHQ_FOLDER):
        thousands = [part for part in root.glob("[0-9]" * 5) if part.is_dir()]
        if thousands:
            paths = [file for part in thousands for file in part.glob("[0-9]" * 5 + ".png")]
            numbered = {int(file.stem): file for file in sorted(paths, key=lambda file: file.name)}
            _check_not_empty(numbered, folder)
            return {number: file for number, file in numbered.items() if number in SPLITS[split]}
    files = [file for file in list_files(folder, "**/*") if file.suffix.lower() in SUFFIXES and file.is_file()]
    _check_not_empty(files, folder)
    first, end = (len(files) * edge // NUM_PICTURES for edge in (SPLITS[split].start, SPLITS[split].stop))
    return dict(list(enumerate(files))[first:end])


def _check_not_empty(files: object, folder: Path) -> None:
    if not files:
        raise ValueError(f"images={str(folder)!r} has no pictures ({', '.join(SUFFIXES)})")


@lru_cache(_KEPT)
def _drawn(number: int) -> np.ndarray:
    picture = draw_face(number)
    picture.flags.writeable = False
    return picture


def _state(file: Path) -> tuple[int, int]:
    """Modification time (ns) and size (bytes) of a file, by which a changed one is noticed."""
    try:
        stat = file.stat()
    except OSError as error:
        raise ValueError(f"picture {str(file)!r} cannot be read: {error}") from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(NUM_PICTURES)
def _check_header(file: Path, state: tuple[int, int]) -> None:
    """Check form and size of a picture, again only when the file has changed."""
    try:
        with Image.open(file) as image:
            mode, size = image.mode, image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"picture {str(file)!r} cannot be read: {error}") from None
    if mode != "RGB":
        raise ValueError(f"picture {str(file)!r} must be RGB, got one of mode {mode!r}; convert it")
    if min(size) < PICTURE_PIXELS:
        least = f"{PICTURE_PIXELS} x {PICTURE_PIXELS}"
        raise ValueError(f"picture {str(file)!r} must be at least {least} pixels, got {size[0]} x {size[1]}")


@lru_cache(_KEPT)
def _read(file: Path, state: tuple[int, int]) -> np.ndarray:
    """Read the centre square of a picture, resized to 88 x 88, again only when the file has changed."""
    try:
        with Image.open(file) as image:
            side = min(image.size)
            left, top = ((length - side) // 2 for length in image.size)
            square = image.crop((left, top, left + side, top + side))
            # Pillow's filter spans all pixels that become one, which is antialiasing.
            resized = square.resize((PICTURE_PIXELS, PICTURE_PIXELS), Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"picture {str(file)!r} cannot be read: {error}") from None
    picture = np.array(resized)
    picture.flags.writeable = False
    return picture
