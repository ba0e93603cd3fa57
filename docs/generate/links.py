"""Links from pages to files of the repository that are no pages of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/memenvs/memenvs/blob/main/"
_STUDIES = sorted(ROOT.glob("studies/*/page.md"))
#: Files outside docs/ that the site shows, and the page of each.
PROJECT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "board/README.md": "project/board.md",
    "studies/README.md": "studies/index.md",
    **{f"studies/{file.parent.name}/page.md": f"studies/{file.parent.name}.md" for file in _STUDIES},
}

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|<)([^)#\s]+)(#[^)\s]*)?(?=\))")


def relink(text: str, folder: Path, page_folder: Path | None = None) -> str:
    """Turn relative links as they work in the repository into links as they work on the site.

    Args:
        text: Markdown.
        folder: Folder of the file, from which its links start.
        page_folder: Folder of the page that shows the text; None if it is the same.

    Returns:
        The same with links to files outside docs/ replaced by their page, or by their address in the repository.
    """
    at = page_folder or folder

    def replace(match: re.Match[str]) -> str:
        target = (folder / match[1]).resolve()
        anchor = match[2] or ""
        if not target.is_relative_to(ROOT):
            return match[0]
        inside = target.relative_to(ROOT).as_posix()
        if inside in PROJECT_PAGES:
            target = DOCS / PROJECT_PAGES[inside]
            anchor = "" if inside == "README.md" else anchor
        elif not target.is_relative_to(DOCS) or target.is_dir():
            return REPOSITORY + inside + anchor
        elif at == folder:
            return match[0]
        return Path(os.path.relpath(target, at)).as_posix() + anchor

    return _LINK.sub(replace, text)
