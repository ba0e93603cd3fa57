"""Files that other readers see whole or not at all, and what was read from a folder as long as that stays as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` with the same ending; it takes the place of `path` if all went well and is deleted if not."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file, and the folders it is in, so that it is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replace(path) as temporary:
        temporary.write_bytes(data)


def cached_until_changed(
    most: int, *inner: str
) -> Callable[[Callable[Concatenate[Path, P], T]], Callable[Concatenate[Path, P], T]]:
    """Decorates what reads files of a folder: what was read is given again until a file there is added, removed or changed.

    Args:
        most: How many results are kept.
        inner: Folders in the folder that are read too.
    """

    def decorate(read: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
        @lru_cache(maxsize=most)
        def of_state(state: tuple[object, ...], folder: Path, *args: P.args, **kwargs: P.kwargs) -> T:
            return read(folder, *args, **kwargs)

        @wraps(read)
        def now(folder: Path, *args: P.args, **kwargs: P.kwargs) -> T:
            return of_state(_state(folder, *inner), folder, *args, **kwargs)  # type: ignore[arg-type]  # lru_cache checks

        return now

    return decorate


def _state(folder: Path, *inner: str) -> tuple[object, ...]:
    """What changes with the files in a folder: their names, sizes and times."""
    places = [place for place in (folder, *(folder / name for name in inner)) if place.is_dir()]
    entries = sorted((entry.path, entry.stat()) for place in places for entry in os.scandir(place) if entry.is_file())
    return tuple((path, found.st_size, found.st_mtime_ns) for path, found in entries)
