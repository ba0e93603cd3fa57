"""JSON of anyone is read right, or refused by file and record before it costs anything."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from memenvs.cli.common import UserError, parse_settings, print_json
from memenvs.json_records import (
    MAX_DEPTH,
    MAX_DIGITS,
    Field,
    count_records,
    each_record,
    format_json,
    nan_for_null,
    parse_json,
    read_json,
    read_record,
)

#: Text -> what the message says of it.
HOSTILE = {
    "[" * 10_000 + "]" * 10_000: f"at most {MAX_DEPTH} levels deep",
    '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1): f"at most {MAX_DEPTH} levels deep, got {MAX_DEPTH + 1}",
    '{"a": 1' + "0" * 400 + "}": f"at most {MAX_DIGITS} digits, got 100000000000... with 401",
    '{"a": -1' + "0" * 5000 + "}": f"at most {MAX_DIGITS} digits",
    '["' + "}" * 300 + '", ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "]": f"levels deep, got {MAX_DEPTH + 1}",
    "{": "not JSON",
}


def test_what_is_legal_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(deep, "F") == json.loads(deep)
    assert parse_json("[" + "9" * MAX_DIGITS + ", 0." + "1" * 90 + "]", "F") == [10**MAX_DIGITS - 1, 0.1111111111111111]
    assert parse_json(json.dumps("[{" * 200), "F") == "[{" * 200  # brackets inside a string
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', "F") == parse_json('\ufeff{"a": 1}', "F") == {"a": 1}
    assert parse_json('"\\ud800"', "F") == "\ud800"  # half a character, which UTF-8 has no bytes for


def test_nan_is_null_for_every_parser(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"a": [np.float64("nan"), 1, (0.5, -math.inf)], "b": {"c": math.nan, "d": None, "e": "NaN", "f": True}}
    text = '{"a": [null, 1, [0.5, null]], "b": {"c": null, "d": null, "e": "NaN", "f": true}}'
    assert format_json(document) == text and document["a"][2] == (0.5, -math.inf)
    assert format_json([math.nan], indent=1) == "[\n null\n]"
    print_json(document)
    assert capsys.readouterr().out == f"{text}\n"
    again = nan_for_null(json.loads(text))
    assert math.isnan(again["a"][0]) and math.isnan(again["b"]["c"]) and again["b"]["e"] == "NaN"
    assert format_json(again) == text


def test_every_reader_names_file_and_record(tmp_path: Path) -> None:
    readers = (read_json, lambda path: read_record(path, 0))
    with pytest.raises(ValueError, match="F: not UTF-8 text"):
        parse_json(b"\xff", "F")
    for text, message in HOSTILE.items():
        (tmp_path / "one.json").write_text(text)
        for read in readers:
            with pytest.raises(ValueError, match=r"one\.json: .*" + message):
                read(tmp_path / "one.json")
        (tmp_path / "two.jsonl").write_text("{}\n" + text + "\n")
        with pytest.raises(ValueError, match=r"two\.jsonl, line 2: .*" + message):
            read_record(tmp_path / "two.jsonl", 1)
        with pytest.raises(UserError, match="--env_kwargs: .*" + message):
            parse_settings([("env_kwargs", text)])


def test_byte_order_marks(tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz", "a.jsonl", "a.jsonl.gz"):
        content = b'\xef\xbb\xbf{"a": 1}\n'
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert [read().value for read in each_record(tmp_path / name)] == [{"a": 1}]


def test_a_pretty_printed_jsonl_is_no_list_of_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "pretty.jsonl"
    path.write_text(json.dumps({"rooms": [{"x": 1.5}], "walls": []}, indent=2))
    for read in (count_records, lambda path: read_record(path, 0)):
        with pytest.raises(ValueError, match=r"pretty\.jsonl, line 1: not JSON.*one whole record a line"):
            read(path)
    path.rename(tmp_path / "pretty.json")
    assert count_records(tmp_path / "pretty.json") == 1


@pytest.mark.slow
def test_files_that_unpack_to_much_more(tmp_path: Path) -> None:
    bombs = {
        "newlines.jsonl.gz": (b"\n" * 20_000_000, "line 1001: at most 1000 blank lines"),
        "records.jsonl.gz": (b'{"a":1}\n' * 2_000_000, "unpacks to more than 100 times its size"),
        "one_line.jsonl.gz": (b" " * 20_000_000, "unpacks to more than 100 times its size"),
        "spaces.json.gz": (b" " * 20_000_000, "unpacks to more than 100 times its size"),
    }
    for name, (content, message) in bombs.items():
        (tmp_path / name).write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match=rf"{name}.*{message}"):
            count_records(tmp_path / name)
    repetitive = b'{"polygon": [0.0, 0.0, 1.0]}\n' * 30_000  # 0.9 MB: small enough to be read whatever it unpacks from
    (tmp_path / "small.jsonl.gz").write_bytes(gzip.compress(repetitive))
    assert count_records(tmp_path / "small.jsonl.gz") == 30_000


def test_integers_have_a_range() -> None:
    assert [Field(value, "F").integer(3, -1) for value in (-1, 0, 2)] == [-1, 0, 2]
    for value in (-2, 3, 1.0, True, "1", None):
        with pytest.raises(ValueError, match=f"F: a must be a whole number from -1 to 2, got {value!r}"):
            Field(value, "F", "a").integer(3, -1)
    with pytest.raises(ValueError, match="from 0 to 2, got -1"):
        Field(-1, "F").integer(3)
