"""`presets` on the command line."""

from __future__ import annotations

import json

import pytest

from memenvs.agents.memory import memories
from memenvs.agents.presets import FAMILIES, PRESETS, find_preset
from memenvs.cli import main


def names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["presets", *arguments, "--json"]) == 0
    return [row["name"] for row in json.loads(capsys.readouterr().out)]


def test_presets_are_listed_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys) == list(PRESETS)
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    families = [line for line in lines if not line.startswith(" ")]
    assert families[:-1] == list(FAMILIES) and "`train NAME` trains it" in families[-1]
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(PRESETS)


def test_presets_of_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "ballet") == [name for name in PRESETS if "ballet" in name] != []
    assert names(capsys, "demo*") == ["demo", "demo-gap"]
    assert names(capsys, "sat-pict??es") == ["sat-pictures"]
    assert main(["presets", "ballet"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == names(capsys, "ballet")


def test_one_preset(capsys: pytest.CaptureFixture[str]) -> None:
    settings = find_preset("demo").to_json()
    assert main(["presets", "demo", "--json"]) == 0  # part of another name too
    assert json.loads(capsys.readouterr().out) == settings
    assert main(["presets", "demo"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :]) == settings


def test_memories_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "--memories") == list(memories())
    assert main(["presets", "--memories"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "(needs" not in lines["lstm"]
    assert lines["smt"].endswith("(needs pose)") and lines["sat-pm"].endswith("(needs place)")
    assert main(["presets", "demo", "--memories"]) == 2
