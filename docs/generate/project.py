"""Pages for files of the project: architecture, contributing, changelog, board."""

from __future__ import annotations

from generate.links import DOCS, PROJECT_PAGES, ROOT, relink


def make_pages() -> dict[str, str]:
    """Copy each file, with links that work from its page."""
    return copy_files("project")


def copy_files(folder: str) -> dict[str, str]:
    """Copy each file outside docs/ that has a page in a folder of it."""
    pages = {}
    for file, page in PROJECT_PAGES.items():
        own, _, name = page.rpartition("/")
        if own == folder:
            pages[name] = relink((ROOT / file).read_text(), (ROOT / file).parent, DOCS / folder)
    return pages
