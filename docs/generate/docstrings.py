"""Docstrings: plain text with sections and code in backticks."""

from __future__ import annotations

import re

_CODE = re.compile(r"(`+[^`]+`+)")
_GLUED = re.compile(r"(?<=[^`\s])``(?=\w)")  # the plural of a name in code
_MARKUP = re.compile(r"[\\*|]|(?<=\w)_(?!\w)")


def to_restructured_text(lines: list[str]) -> list[str]:
    """Escape what reStructuredText would take for markup; code in backticks stays.

    Args:
        lines: Lines of a docstring.
    """
    escaped = ("".join(_escape(part) for part in _CODE.split(line)) for line in lines)
    return [_GLUED.sub(r"``\\ ", line) for line in escaped]


def _escape(part: str) -> str:
    if part.startswith("`"):
        code = part.strip("`")
        return f"``{code}``" if code.strip() == code else part
    return _MARKUP.sub(lambda found: "\\" + found[0], part)
