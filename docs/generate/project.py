"""Pages for files outside docs/: architecture, contributing, changelog, studies."""

from __future__ import annotations

from generate.links import DOCS, PROJECT_PAGES, ROOT, relink


def make_pages() -> dict[str, str]:
    """Copy each file, with links that work from its page."""
    pages = {}
    for file, page in PROJECT_PAGES.items():
        folder, _, name = page.rpartition("/")
        if folder == "project":
            pages[name] = relink((ROOT / file).read_text(), (ROOT / file).parent, DOCS / folder)
    return pages
