"""Check the built site: every local link and anchor leads somewhere, nothing is fetched.

    python .ci/check_site.py build/docs

Prints each fault and exits with 1 if there is one. Needs no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_MEGABYTES = 23
#: Attributes by which a browser fetches what it shows.
FETCHING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("video", "src"), ("source", "src"), ("link", "href")}
#: Links of a page's head that a browser does not fetch.
NOT_FETCHED = {"canonical", "next", "prev", "index", "search", "author", "copyright"}


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []  # address, and whether a browser fetches it
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag links or names."""
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        for key in ("href", "src"):
            value = values.get(key)
            if value:
                self.links.append((value, (tag, key) in FETCHING and values.get("rel") not in NOT_FETCHED))


def check(folder: Path) -> tuple[list[str], int, int]:
    """Check a folder of pages.

    Returns:
        Faults, number of pages and number of local links.
    """
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    faults = []
    num_links = 0
    for path, page in pages.items():
        for address, is_fetched in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if is_fetched and parts.scheme != "data":
                    faults.append(f"{path}: fetches {address}")
                continue
            num_links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                faults.append(f"{path}: no such file {address}")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in pages[target].anchors:
                faults.append(f"{path}: no such anchor {address}")
    return faults, len(pages), num_links


def main() -> int:
    """Check the folder that is named on the command line."""
    folder = Path(sys.argv[1]).resolve()
    faults, num_pages, num_links = check(folder)
    megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    if megabytes > MAX_MEGABYTES:
        faults.append(f"{folder}: {megabytes:.1f} MB, at most {MAX_MEGABYTES} are allowed")
    print("\n".join(faults), file=sys.stderr, end="\n" * bool(faults))
    print(f"{num_pages} pages, {num_links} local links, {megabytes:.1f} MB, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
