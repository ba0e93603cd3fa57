"""Atomic writing of files and folders, and a cache of what was read from a folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path, PurePath
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same suffix that replaces `path` at the end.

    After an exception the temporary file is deleted and `path` stays as it was. Readers see the old file or the
    new one, never a part. An OSError that names no file, such as that of a full disk, is raised anew with `path`.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a new folder that becomes `path` at the end.

    A folder that is at `path` already is replaced. After an exception the temporary folder is deleted and `path` stays
    as it was. Folders that `path` is in are made at the end.
    """
    above = next(parent for parent in path.absolute().parents if parent.is_dir())
    temporary, old = (above / f".{path.name}.{os.getpid()}{suffix}" for suffix in ("", ".old"))
    try:
        yield temporary
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.rename(old)
        temporary.rename(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        for folder in (temporary, old):
            shutil.rmtree(folder, ignore_errors=True)


def check_writable(path: Path, *, is_folder: bool = False) -> None:
    """Check that a file or folder, which may not exist yet, can be written.

    Raises:
        ValueError: The path is not UTF-8, has a file where it needs a folder or a folder where it needs a file, or is
            in a folder that is not writable.
    """
    problem = ""
    above = next(parent for parent in ((path,) * is_folder + tuple(path.absolute().parents)) if os.path.exists(parent))
    try:
        str(path).encode()
    except UnicodeEncodeError:
        problem = "a path must be UTF-8"
    if not above.is_dir():
        problem = f"{str(above)!r} is no folder"
    elif not is_folder and os.path.isdir(path):
        problem = "it is a folder"
    elif not os.access(above, os.W_OK):
        problem = f"the folder {str(above)!r} is not writable"
    if problem:
        raise ValueError(f"cannot write {str(path)!r}: {problem}")


def is_side_file(path: PurePath) -> bool:
    """True for a file that macOS, Windows or an editor has put beside others.

    Files in a folder of such a name count too.
    """
    return any(
        part in ("__MACOSX", "Thumbs.db", "desktop.ini")
        or part.endswith("~")
        or (part.startswith((".", "#")) and part not in (".", ".."))
        for part in path.parts
    )


def list_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Sorted paths in a folder that match a glob, without side files."""
    return sorted(path for path in folder.glob(pattern) if not is_side_file(path.relative_to(folder)))


def numbered_files(folder: Path, pattern: str) -> dict[int, Path]:
    """Number -> file of a folder, in order; `pattern` has a `*` where names have the number.

    Other names, such as that of the copy `episode_1 (1).png`, are left out.
    """
    form = re.compile(re.escape(pattern).replace(r"\*", "(0|[1-9][0-9]*)"))
    numbers = {int(match[1]): path for path in folder.glob(pattern) if (match := form.fullmatch(path.name))}
    return dict(sorted(numbers.items()))


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of `atomic_replace` that killed processes left in a folder.

    Call this only where no other process writes.
    """
    for file in folder.iterdir():
        if re.fullmatch(r"\..+\.\d+(\.\w+)?", file.name) and file.is_file():
            file.unlink()


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically; create the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replace(path) as temporary:
        temporary.write_bytes(data)


def cached_until_changed(
    max_results: int, *subfolders: str
) -> Callable[[Callable[Concatenate[Path, P], T]], Callable[Concatenate[Path, P], T]]:
    """Cache the results of a function that reads files of a folder, its first argument.

    A result is valid until a file there is added, removed or changed.

    Args:
        max_results: Number of results to keep.
        subfolders: Folders in the folder that are read too.
    """

    def decorate(read: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
        @lru_cache(maxsize=max_results)
        def read_cached(state: tuple[object, ...], folder: Path, *args: P.args, **kwargs: P.kwargs) -> T:
            return read(folder, *args, **kwargs)

        @wraps(read)
        def wrapper(folder: Path, *args: P.args, **kwargs: P.kwargs) -> T:
            state = _folder_state(folder, *subfolders)
            return read_cached(state, folder, *args, **kwargs)  # type: ignore[arg-type]  # lru_cache takes hashables

        return wrapper

    return decorate


def _folder_state(folder: Path, *subfolders: str) -> tuple[object, ...]:
    """Names, sizes and modification times of the files in a folder: they change when the files do."""
    folders = [inner for inner in (folder, *(folder / name for name in subfolders)) if inner.is_dir()]
    entries = sorted((entry.path, entry.stat()) for inner in folders for entry in os.scandir(inner) if entry.is_file())
    return tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in entries)
