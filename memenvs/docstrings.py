"""Sections of docstrings: what the site and `memenvs list ID` say about a task."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from memenvs.task import BatchTask

#: Sections of a task's docstring whose text is a list of names and meanings; those of a subclass are added to its
#: base's.
LISTS = ("Observation", "Options", "Info")


def docstring_sections(of: object) -> dict[str, str]:
    """Split a docstring into its sections.

    Args:
        of: A class, function or module; a class without a docstring does not have that of its base.

    Returns:
        Title -> text, dedented. What is outside of all sections has the title "". A section begins with a line such as
        "Reward:" at the left margin, and its text is indented.
    """
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in inspect.cleandoc(of.__doc__ or "").splitlines():
        begin = re.fullmatch(r"([A-Z]\w+(?: \w+){0,3}):", line)
        if begin:
            title = begin[1]
            sections[title] = []
            continue
        if line and not line.startswith(" "):
            title = ""
        sections[title].append(line)
    return {title: textwrap.dedent("\n".join(lines)).strip() for title, lines in sections.items()}


def items(text: str) -> dict[str, str]:
    """Split lines such as "name: meaning", with indented lines that continue them."""
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        begin = re.match(r"([\w.*]+(?:, [\w.*]+)*): *(.*)$", line)
        if begin:
            names = begin[1].split(", ")
            meanings |= dict.fromkeys(names, begin[2])
        elif line.strip() and names:
            meanings |= {name: f"{meanings[name]} {line.strip()}".strip() for name in names}
    return meanings


def task_sections(task: type[BatchTask]) -> dict[str, str]:
    """Sections of a task's docstring, together with those of the classes that it extends.

    Returns:
        Title -> text. Lists are one item a line.
    """
    merged: dict[str, str] = {}
    lists: dict[str, dict[str, str]] = {title: {} for title in LISTS}
    for base in reversed(task.__mro__):
        if not issubclass(base, BatchTask) or base is BatchTask:
            continue
        sections = docstring_sections(base)
        for title in LISTS:
            lists[title] |= items(sections.get(title, ""))
        merged |= sections
    return merged | {
        title: "\n".join(f"{name}: {text}" for name, text in entries.items()) for title, entries in lists.items()
    }


def attributes(config_type: type) -> Mapping[str, str]:
    """Meaning of each attribute; a subclass replaces those of its bases, unless by "See ..."."""
    meanings: dict[str, str] = {}
    for base in reversed(config_type.__mro__):
        own = items(docstring_sections(base).get("Attributes", ""))
        meanings |= {name: text for name, text in own.items() if name not in meanings or not text.startswith("See ")}
    return meanings


def field_default(field: Field[Any]) -> str:
    """Format the default of a field."""
    if field.default is not MISSING:
        return repr(field.default)
    if field.default_factory is not MISSING:
        return repr(field.default_factory())
    return "required"


def setting_rows(config_type: type) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each field of a settings dataclass.

    The meaning is "" where the section `Attributes` has none.
    """
    meanings = attributes(config_type)
    return [(field.name, field_default(field), meanings.get(field.name, "")) for field in fields(config_type)]
