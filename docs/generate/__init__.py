"""Pages of the documentation that are written from the code whenever the site is built.

Each module named in `FOLDERS` writes the folder of pages of its name. It has one function, `make_pages() ->
dict[str, str]`, which returns the MyST Markdown of each page by its file name below that folder, `index.md` among them.
A module that draws pictures has `draw_pictures(folder: Path) -> None` too, which is called only when the site is built.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

#: Folders of generated pages below docs/. They are not committed: .gitignore names them.
FOLDERS = ("environments", "memories", "algorithms", "presets", "command_line", "api", "studies", "project")


def make_folder(folder: str) -> dict[str, str]:
    """Make the pages of one folder: file name -> Markdown."""
    return import_module(f"generate.{folder}").make_pages()


def write_folders(source: Path) -> None:
    """Write all generated pages and pictures.

    Args:
        source: Folder of the documentation.
    """
    for folder in FOLDERS:
        (source / folder).mkdir(exist_ok=True)
        pages = make_folder(folder)
        for old in (source / folder).iterdir():
            if old.suffix in (".md", ".rst") and old.name not in pages:
                old.unlink()
        for name, text in pages.items():
            path = source / folder / name
            if not path.exists() or path.read_text() != text:  # Sphinx reads again what is newer
                path.write_text(text)
        draw_pictures = getattr(import_module(f"generate.{folder}"), "draw_pictures", None)
        if draw_pictures is not None:
            draw_pictures(source / folder)
