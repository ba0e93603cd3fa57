"""Docstrings: plain text with sections and code in backticks."""

from __future__ import annotations

import re

_CODE = re.compile(r"(`+[^`]+`+)")
_GLUED = re.compile(r"(?<=[^`\s])``(?=\w)")  # the plural of a name in code
_MARKUP = re.compile(r"[\\*|]|(?<=\w)_(?!\w)")
#: Title of a section that napoleon does not take for one, such as "Args of `model_config`:".
_OTHER_TITLE = re.compile(r"\S.*[^\w\s].*:")


def to_restructured_text(lines: list[str]) -> list[str]:
    """Escape what reStructuredText would take for markup; code in backticks and equations stay.

    Args:
        lines: Lines of a docstring.
    """
    output = []
    equation_margin = -1  # indentation of the directive that the line belongs to; -1 outside equations
    for line in lines:
        margin = len(line) - len(line.lstrip())
        if line.strip() and margin <= equation_margin:
            equation_margin = -1
        if line.lstrip().startswith(".. math::"):
            equation_margin = margin
        if equation_margin < 0:
            escaped = "".join(_escape(part) for part in _CODE.split(line))
            line = _GLUED.sub(r"``\\ ", escaped)
        output.append(line)
    return _lists(output)


def _escape(part: str) -> str:
    if part.startswith("`"):
        code = part.strip("`")
        return f"``{code}``" if code.strip() == code else part
    return _MARKUP.sub(lambda match: "\\" + match[0], part)


def _lists(lines: list[str]) -> list[str]:
    """Make lists of the indented lines below titles that are no sections of napoleon."""
    output: list[str] = []
    in_list = False
    for line, next_line in zip(lines, [*lines, ""][1:], strict=True):
        if line and not line.startswith(" "):
            in_list = bool(_OTHER_TITLE.fullmatch(line)) and next_line.startswith("    ")
            output += [line, ""] if in_list else [line]
        elif in_list and line:
            output.append(f"- {line[4:]}" if line[4:5] != " " else f"  {line[4:].lstrip()}")
        else:
            output.append(line)
    return output
