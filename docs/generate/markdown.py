"""Markdown of tables, code and settings, shared by the generated pages."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any


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
    meanings = attributes(config_type)
    rows = []
    for field in fields(config_type):
        if field.name not in meanings:
            raise ValueError(f"{config_type.__name__}.{field.name} has no description under Attributes")
        rows.append((f"`{field.name}`", f"`{field_default(field)}`", meanings[field.name]))
    return table(("setting", "default", "meaning"), rows)


def field_default(field: Field[Any]) -> str:
    """Format the default of a field."""
    if field.default is not MISSING:
        return repr(field.default)
    if field.default_factory is not MISSING:
        return repr(field.default_factory())
    return "required"


def attributes(config_type: type) -> Mapping[str, str]:
    """Meaning of each attribute; a subclass replaces those of its bases, unless by "See ..."."""
    found: dict[str, str] = {}
    for each in reversed(config_type.__mro__):
        if each.__dict__.get("__doc__"):
            own = items(docstring_sections(each).get("Attributes", ""))
            found |= {name: text for name, text in own.items() if name not in found or not text.startswith("See ")}
    return found


def summary(of: object) -> str:
    """First line of a docstring, with links of code as code."""
    return (inspect.getdoc(of) or "").partition("\n")[0]


def docstring_sections(of: object) -> dict[str, str]:
    """Split a docstring into its sections.

    Args:
        of: A class, function or module.

    Returns:
        Title -> text, dedented. What is outside of all sections has the title "". A section begins with a line such as
        "Reward:" at the left margin, and its text is indented.
    """
    found: dict[str, list[str]] = {"": []}
    title = ""
    for line in (inspect.getdoc(of) or "").splitlines():
        begin = re.fullmatch(r"([A-Z]\w+(?: \w+){0,3}):", line)
        if begin:
            title = begin[1]
            found[title] = []
            continue
        if line and not line.startswith(" "):
            title = ""
        found[title].append(line)
    return {title: textwrap.dedent("\n".join(lines)).strip() for title, lines in found.items()}


def items(text: str) -> dict[str, str]:
    """Split lines such as "name: meaning", with indented lines that continue them."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        begin = re.match(r"([\w.*]+(?:, [\w.*]+)*): *(.*)$", line)
        if begin:
            names = begin[1].split(", ")
            found |= dict.fromkeys(names, begin[2])
        elif line.strip() and names:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found
