"""JSON records whose values are checked; each error names the file, the line and the value."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BUFFER = 1 << 18  # bytes
_MAX_SHOWN = 60  # characters of a wrong value that a message repeats


@dataclass(frozen=True)
class Field:
    """One JSON value and its position.

    Attributes:
        value: The parsed value.
        source: File and line, such as "four_room.jsonl.gz, line 3".
        path: Keys from the record down to the value, such as "rooms[0].floorPolygon"; "" is the record itself.
    """

    value: Any
    source: str
    path: str = ""

    def error(self, allowed: str) -> ValueError:
        """Make the error for a wrong value; `allowed` is what it must be."""
        shown = repr(self.value)
        shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
        return ValueError(f"{self.source}: {self.path or 'the record'} must be {allowed}, got {shown}")

    def __getitem__(self, key: str) -> Field:
        found = self.get(key)
        if found is None:
            raise ValueError(f"{self.source}: {self._join(key)} is missing")
        return found

    def get(self, key: str) -> Field | None:
        """Return the value of `key`; None if it is missing or null.

        Raises:
            ValueError: This is not a JSON object.
        """
        if not isinstance(self.value, dict):
            raise self.error("a JSON object")
        inner = self.value.get(key)
        return None if inner is None else Field(inner, self.source, self._join(key))

    def items(self, at_least: int = 0) -> list[Field]:
        """Return the values of a list.

        Raises:
            ValueError: This is not a list, or it has fewer than `at_least` values.
        """
        if not isinstance(self.value, list) or len(self.value) < at_least:
            raise self.error(f"a list of at least {at_least}" if at_least else "a list")
        return [Field(inner, self.source, f"{self.path}[{i}]") for i, inner in enumerate(self.value)]

    def children(self, key: str) -> list[Field]:
        """Return the values of the list `key`; none if there is no such key."""
        found = self.get(key)
        return [] if found is None else found.items()

    def number(self) -> float:
        """Return the value, a finite number.

        Raises:
            ValueError: This is anything else.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise self.error("a finite number")
        return float(self.value)

    def text(self) -> str:
        """Return the value, a string.

        Raises:
            ValueError: This is anything else.
        """
        if not isinstance(self.value, str):
            raise self.error("a string")
        return self.value

    def numbers(self, keys: str) -> tuple[float, ...]:
        """Return the finite numbers of one-letter `keys`, such as "xyz"."""
        return tuple(self[key].number() for key in keys)

    def _join(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def read_record(path: Path, index: int) -> Field:
    """Read record number `index` of a file of JSON lines, or of one JSON object or list.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read as such, holds no record, or has no record `index`.
    """
    count = 0
    for count, (line, text) in enumerate(_records(path), start=1):
        if count == index + 1:
            return _field(path, line, text)
    if count == 0:
        raise ValueError(f"{path}: holds no house; expected one JSON object a line, or a .json file with one or a list")
    raise ValueError(f"{path}: index must be from 0 to {count - 1}, got {index}")


def read_records(path: Path) -> Iterator[Field]:
    """Read all records of a file; see `read_record`."""
    return (_field(path, line, text) for line, text in _records(path))


def count_records(path: Path) -> int:
    """Count the records of a file; see `read_record`."""
    return sum(1 for _ in _records(path))


def read_json(path: Path) -> Field:
    """Read the only JSON value of a file, gzipped or not; errors are those of `read_record`."""
    return Field(_parse("".join(text for _, text in _lines(path)), str(path)), str(path))


def _field(path: Path, line: str, text: Any) -> Field:
    """Parse one of `_records`."""
    return Field(_parse(text, f"{path}, {line}") if isinstance(text, str) else text, f"{path}, {line}")


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """Position and text of each record; a record of a .json file is already parsed."""
    if path.name.endswith((".json", ".json.gz")):
        content = "".join(text for _, text in _lines(path))
        if content.strip():
            parsed = _parse(content, str(path))
            records = parsed if isinstance(parsed, list) else [parsed]
            yield from ((f"record {i}", record) for i, record in enumerate(records))
        return
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise ValueError(f"{path}: a house file must end in .jsonl, .jsonl.gz, .json or .json.gz")
    yield from ((f"line {number}", text) for number, text in _lines(path) if text.strip())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of each line."""
    if not path.is_file():
        raise FileNotFoundError(f"no such house file: {path}")
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as raw:
            # A larger buffer than gzip's own reads a third faster.
            file = io.TextIOWrapper(io.BufferedReader(raw, _BUFFER), encoding="utf-8")
            for number, text in enumerate(file, start=1):
                yield number, text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file, broken after line {number}: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text after line {number}: {error}") from error


def _parse(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source}: not JSON: {error}") from error
