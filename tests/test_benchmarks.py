"""Comparison of two files of `benchmarks/all.py`, with files made by hand."""

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
FILE: dict[str, Any] = {
    "figures": {
        "render: small": {"median": 20.0, "low": 19.0, "high": 21.0, "is_less_better": False},
        "import_time: import": {"median": 1.2, "low": 1.2, "high": 1.2, "is_less_better": True},
    },
    "smoke": False,
    "machine": "x86_64, 2 CPUs",
    "processor": "znver3",
    "processor_flags": ["avx2"],
    "vector_width": 8,
}


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compare `FILE` with a changed copy; the exit status."""
    monkeypatch.syspath_prepend(str(FOLDER))
    program = importlib.import_module("all")
    assert {path.stem for path in FOLDER.glob("[!_]*.py")} - {"all"} == set(program.BENCHMARKS)

    def compare(change: Any) -> int:
        new = copy.deepcopy(FILE)
        change(new)
        for name, document in (("old.json", FILE), ("new.json", new)):
            (tmp_path / name).write_text(json.dumps(document))
        return int(program.compare(tmp_path / "old.json", tmp_path / "new.json"))

    return compare


def scaled(figure: str, factor: float, spread: float = 0.0) -> Any:
    """Multiply a figure; `spread` is half its range over the median."""

    def change(document: dict[str, Any]) -> None:
        row = document["figures"][figure]
        row["median"] *= factor
        row["low"], row["high"] = row["median"] * (1 - spread), row["median"] * (1 + spread)

    return change


def test_a_loss_beyond_the_spread_fails(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The old file's spread is 5 % of the first figure, so that 20 % of it may be lost."""
    for change in (lambda new: None, scaled("render: small", 0.81), scaled("render: small", 3.0)):
        assert check(change) == 0
        assert capsys.readouterr().out == "nothing lost in 2 figures\n"
    assert check(scaled("render: small", 0.79)) == 1
    assert capsys.readouterr().out == "render: small: 20 -> 15.8, 21% lost, the spread is 5%\n"
    assert check(scaled("render: small", 0.79, spread=0.1)) == 0  # the wider spread counts
    assert check(scaled("render: small", 0.74, spread=0.1)) == 1


def test_less_may_be_better(check: Any) -> None:
    assert check(scaled("import_time: import", 0.5)) == 0
    assert check(scaled("import_time: import", 1.17)) == 0
    assert check(scaled("import_time: import", 1.19)) == 1


def test_a_missing_figure_is_lost_and_a_new_one_is_not(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(lambda new: new["figures"].update({"faces: more": FILE["figures"]["render: small"]})) == 0
    assert check(lambda new: new["figures"].pop("render: small")) == 1
    assert capsys.readouterr().out.endswith("render: small: missing\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda new: new.update(processor="x86-64"), "different machines: processor is 'znver3' and 'x86-64'"),
        (lambda new: new.update(smoke=True), r"new\.json: made with --smoke, which measures nothing"),
        (lambda new: new.pop("smoke"), r"new\.json: has no 'smoke'"),
        (lambda new: new["figures"]["render: small"].pop("low"), r"new\.json: not a file of benchmarks/all\.py"),
        (scaled("render: small", 0.0), r"new\.json: not a file of benchmarks/all\.py"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(check: Any, change: Any, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        check(change)
