"""Pages of the studies."""

from __future__ import annotations

from generate.project import copy_files


def make_pages() -> dict[str, str]:
    """Copy the page of each study and the list of all."""
    return copy_files("studies")
