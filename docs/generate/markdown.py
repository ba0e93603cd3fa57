"""Markdown of tables, code and settings, shared by the generated pages."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from memenvs.docstrings import setting_rows


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a table.

    Args:
        columns: Names of the columns.
        rows: Cells of each row; None for an empty cell.
    """
    lines = [_row(columns), "|---" * len(columns) + "|"]
    return "\n".join([*lines, *(_row(["" if cell is None else cell for cell in row]) for row in rows)])


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def code(text: str, language: str = "python") -> str:
    """Format a block of code."""
    return f"```{language}\n{text.strip()}\n```"


def page(title: str, *parts: str) -> str:
    """Join a title and the parts of a page that are not empty."""
    return "\n\n".join([f"# {title}", *(part.strip() for part in parts if part.strip())]) + "\n"


def section(title: str, text: str, level: int = 2) -> str:
    """Format a section; an empty text gives nothing."""
    return f"{'#' * level} {title}\n\n{text.strip()}" if text.strip() else ""


def settings_table(config_type: type) -> str:
    """Tabulate the fields of a settings dataclass: name, default, meaning.

    Args:
        config_type: A dataclass whose docstring, or that of the class it extends, has each field under `Attributes:`.

    Raises:
        ValueError: A field has no description.
    """
    rows = []
    for name, default, meaning in setting_rows(config_type):
        if not meaning:
            raise ValueError(f"{config_type.__name__}.{name} has no description under Attributes")
        rows.append((f"`{name}`", f"`{default}`", meaning))
    return table(("setting", "default", "meaning"), rows)


def summary(of: object) -> str:
    """First line of a docstring, with links of code as code."""
    return (inspect.getdoc(of) or "").partition("\n")[0]
