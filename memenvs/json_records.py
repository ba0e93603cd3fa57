"""JSON that others can read, and records whose errors name the file, the line and the value."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

#: Most levels of lists and objects in each other.
MAX_DEPTH = 100
#: Most digits of an integer: those of 2^128, as long as states of random generators get.
MAX_DIGITS = 39
#: Longest record of a .jsonl file, characters.
MAX_RECORD = 2**26
#: Longest .json file, characters.
MAX_DOCUMENT = 2**29
#: Most blank lines in a row.
MAX_BLANK = 1000
#: A gzip file may unpack to MAX_RATIO times its size, and to MIN_UNPACKED bytes in any case. Files of houses have
#: ratios of 6 to 20.
MAX_RATIO = 100
MIN_UNPACKED = 2**20

_BUFFER = 1 << 18  # bytes
MAX_SHOWN = 60  # characters of a wrong value that a message repeats


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
        text = repr(self.value)
        text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
        return ValueError(f"{self.source}: {self.path or 'the record'} must be {allowed}, got {text}")

    def __getitem__(self, key: str) -> Field:
        field = self.get(key)
        if field is None:
            raise ValueError(f"{self.source}: {self._join(key)} is missing")
        return field

    def get(self, key: str) -> Field | None:
        """Return the value of `key`; None if it is missing or null.

        Raises:
            ValueError: This is not a JSON object.
        """
        if not isinstance(self.value, dict):
            raise self.error("a JSON object")
        inner = self.value.get(key)
        return None if inner is None else Field(inner, self.source, self._join(key))

    def names(self) -> list[str]:
        """Return the keys of an object, in their order.

        Raises:
            ValueError: This is not a JSON object.
        """
        if not isinstance(self.value, dict):
            raise self.error("a JSON object")
        return list(self.value)

    def items(self, at_least: int = 0, at_most: int | None = None) -> list[Field]:
        """Return the values of a list.

        Raises:
            ValueError: This is not a list, or it has fewer than `at_least` or more than `at_most` values.
        """
        if not isinstance(self.value, list) or len(self.value) < at_least:
            raise self.error(f"a list of at least {at_least}" if at_least else "a list")
        if at_most is not None and len(self.value) > at_most:
            raise ValueError(f"{self.source}: {self.path} must have at most {at_most} entries, got {len(self.value)}")
        return [Field(inner, self.source, f"{self.path}[{i}]") for i, inner in enumerate(self.value)]

    def optional_items(self, key: str, at_most: int | None = None) -> list[Field]:
        """Return the values of the list `key`; an empty list if the key is missing or null."""
        field = self.get(key)
        return [] if field is None else field.items(at_most=at_most)

    def number(self, limit: float = math.inf) -> float:
        """Return the value, a finite number from -limit to limit.

        Raises:
            ValueError: This is anything else.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise self.error("a finite number")
        if abs(self.value) > limit:
            raise self.error(f"a number from {-limit:g} to {limit:g}")
        return float(self.value)

    def integer(self, below: int, at_least: int = 0) -> int:
        """Return the value, a whole number from `at_least` to `below` - 1.

        Raises:
            ValueError: This is anything else.
        """
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value < below:
            raise self.error(f"a whole number from {at_least} to {below - 1}")
        return value

    def text(self) -> str:
        """Return the value, a string.

        Raises:
            ValueError: This is anything else.
        """
        if not isinstance(self.value, str):
            raise self.error("a string")
        return self.value

    def numbers(self, keys: str, limit: float = math.inf) -> tuple[float, ...]:
        """Return the numbers of one-letter `keys`, such as "xyz", each from -limit to limit."""
        return tuple(self[key].number(limit) for key in keys)

    def _join(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def read_record(path: Path, index: int) -> Field:
    """Read one record of a file of JSON lines, or of a .json file with one record or a list.

    Args:
        path: A .jsonl or .json file, gzipped (.gz) or not.
        index: Number of the record, from 0.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read as such, holds no record, or has no record `index`.
    """
    count = 0
    for count, (position, record) in enumerate(_records(path), start=1):
        if count == index + 1:
            return _field(path, position, record)
    if count == 0:
        raise ValueError(
            f"{path}: holds no record; expected one JSON object a line, or a .json file with one or a list"
        )
    raise ValueError(f"{path}: index must be from 0 to {count - 1}, got {index}")


def each_record(path: Path) -> Iterator[Callable[[], Field]]:
    """Read a file once, and yield for each record a function that parses it; see `read_record`.

    A record whose function is not called is not parsed.
    """
    return (partial(_field, path, position, record) for position, record in _records(path))


def count_records(path: Path) -> int:
    """Count the records of a file; see `read_record`."""
    return sum(1 for _ in _records(path))


def read_json(path: Path) -> Field:
    """Read the only JSON value of a file, gzipped or not; errors are those of `read_record`."""
    return Field(parse_json(_read_document(path), str(path)), str(path))


def parse_json(content: str | bytes, source: str) -> Any:
    """Parse JSON from an untrusted source; a byte-order mark before it is skipped.

    Args:
        content: Text, or bytes in UTF-8.
        source: File and place in it, for messages.

    Raises:
        ValueError: This is not JSON in UTF-8, is nested more than `MAX_DEPTH` levels deep, or has an integer of more
            than `MAX_DIGITS` digits.
    """
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content.removeprefix("\ufeff")
        characters = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        # A hook for integers makes parsing slower, so only texts that may need it get it.
        value = json.loads(text, parse_int=_parse_int) if _has_long_digit_run(characters) else json.loads(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{source}: not UTF-8 text: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{source}: not JSON: {error}") from error
    except RecursionError:
        raise ValueError(f"{source}: lists and objects must be at most {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    if (depth := _depth(value)) > MAX_DEPTH:
        raise ValueError(f"{source}: lists and objects must be at most {MAX_DEPTH} levels deep, got {depth}")
    return value


def format_json(value: Any, indent: int | None = None) -> str:
    """Write plain data as JSON, with null for NaN and infinity, which JSON does not have."""
    return json.dumps(_replace_values(value, _null_for_nan), indent=indent, allow_nan=False)


def nan_for_null(value: Any) -> Any:
    """Return parsed JSON with NaN for each null, as `format_json` writes numbers."""
    return _replace_values(value, lambda item: math.nan if item is None else item)


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _replace_values(value: Any, replaced: Callable[[Any], Any]) -> Any:
    """Copy plain data, with each value that is no list or object replaced."""
    if isinstance(value, Mapping):
        return {key: _replace_values(inner, replaced) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_values(inner, replaced) for inner in value]
    return replaced(value)


def _parse_int(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"an integer must have at most {MAX_DIGITS} digits, got {digits[:12]}... with {len(digits)}")
    return int(digits)


def _has_long_digit_run(characters: np.ndarray) -> bool:
    """Test UTF-8 bytes for a run of digits longer than `MAX_DIGITS`; it may also be a fraction or in a string."""
    others = np.flatnonzero(characters - np.uint8(ord("0")) > 9)  # not a digit; below "0" uint8 wraps around to > 9
    return np.diff(others, prepend=-1, append=len(characters)).max() > MAX_DIGITS + 1


def _depth(value: Any) -> int:
    """Number of levels of lists and objects; without recursion, which has a limit of its own."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _field(path: Path, position: str, record: Any) -> Field:
    """Make a field of one of `_records`; a text is parsed."""
    source = f"{path}, {position}"
    return Field(parse_json(record, source) if isinstance(record, str) else record, source)


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """Position ("line 3") and text of each record; a record of a .json file ("record 2") is already parsed."""
    if path.name.endswith((".json", ".json.gz")):
        content = _read_document(path)
        if content.strip():
            parsed = parse_json(content, str(path))
            records = parsed if isinstance(parsed, list) else [parsed]
            yield from ((f"record {i}", record) for i, record in enumerate(records))
        return
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise ValueError(f"{path}: a file of records must end in .jsonl, .jsonl.gz, .json or .json.gz")
    for number, text in read_lines(path):
        record = text.strip().removeprefix("\ufeff")
        if not record:
            continue
        if not (record.startswith("{") and record.endswith("}")):
            try:
                parse_json(record, f"{path}, line {number}")
            except ValueError as error:
                raise ValueError(f"{error}; a .jsonl file has one whole record a line, else call it .json") from None
        yield f"line {number}", record


def read_lines(path: Path, max_length: int = MAX_RECORD) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of each line of a file, gzipped or not.

    Args:
        path: The file; gzipped if it ends in .gz.
        max_length: Longest line, characters.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, not UTF-8 or unpacks to too much, a line is too long, or more than `MAX_BLANK`
            blank lines follow each other.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    number = blank = 0
    try:
        with path.open("rb") as packed:
            raw = _Unpacked(packed, path) if path.suffix == ".gz" else packed
            # A larger buffer than gzip's own reads a third faster.
            file = io.TextIOWrapper(io.BufferedReader(raw, _BUFFER), encoding="utf-8")
            while text := file.readline(max_length + 1):
                number += 1
                blank = 0 if text.strip() else blank + 1
                if len(text) > max_length:
                    raise ValueError(f"{path}, line {number}: must have at most {max_length} characters")
                if blank > MAX_BLANK:
                    raise ValueError(f"{path}, line {number}: at most {MAX_BLANK} blank lines may follow each other")
                yield number, text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file, broken after line {number}: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text after line {number}: {error}") from error


def _read_document(path: Path) -> str:
    """All text of a file."""
    parts: list[str] = []
    count = 0
    for _, text in read_lines(path, MAX_DOCUMENT):
        count += len(text)
        if count > MAX_DOCUMENT:
            raise ValueError(f"{path}: must have at most {MAX_DOCUMENT} characters; a .jsonl file may have more")
        parts.append(text)
    return "".join(parts)


class _Unpacked(io.RawIOBase):
    """Content of a gzip file, up to a limit: a file of a few kilobytes can unpack to terabytes."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self._path = path
        self._left = max(MIN_UNPACKED, MAX_RATIO * path.stat().st_size)  # bytes that may still come

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{self._path}: unpacks to more than {MAX_RATIO} times its size, so it is no file of records"
            )
        return count
