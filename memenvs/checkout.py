"""Import of `memenvs.agents` and `memenvs.wrappers` from the folders of a checkout."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parents[1]


class FoldersBeside:
    """Finder of packages whose folders stand beside that of `memenvs`."""

    folders = ("agents", "wrappers")

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where such a package is, None for any other module."""
        parent, _, folder = name.rpartition(".")
        if parent != "memenvs" or folder not in cls.folders:
            return None
        return spec_from_file_location(name, ROOT / folder / "__init__.py")


def find_folders_beside() -> None:
    """Make the folders importable if this is a checkout; in a wheel they are inside the package."""
    here = Path(__file__).parent
    if not (here / "agents").exists() and (ROOT / "agents" / "__init__.py").is_file():
        sys.meta_path.append(FoldersBeside)
