"""The README is short; its pictures are those of the registry and of `docs/pictures.py`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

import memenvs
from memenvs.registry import ENVIRONMENTS
from tests.processes import run_python

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURES, TABLES = (str(ROOT / "docs" / name) for name in ("pictures.py", "tables.py"))


def test_the_entry_to_cite_is_of_this_version():
    assert f"  version = {{{memenvs.__version__}}},\n" in README.read_text()


def test_the_readme_is_short():
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.programs
def test_the_table_of_pictures_is_that_of_the_registry():
    lines = README.read_text().splitlines()
    begin = lines.index("<!-- made by: python docs/pictures.py --table -->") + 1
    done = run_python(PICTURES, "--table")
    table = done.stdout.splitlines()
    assert done.returncode == 0 and lines[begin : begin + len(table)] == table, "put what --table prints there"
    assert lines[begin + len(table)] == ""  # nor rows of pictures that are gone
    shown = {spec.family for spec in ENVIRONMENTS if f"`{spec.id}`: {spec.remembers} |" in done.stdout}
    assert shown == {spec.family for spec in ENVIRONMENTS}


def test_pictures_are_small_and_move():
    folder = ROOT / "docs" / "images"
    files = [folder / "agent.webp", *sorted(folder.glob("*-v0.webp"))]
    assert len(files) >= 9 and sum(file.stat().st_size for file in files) < 3_000_000
    for file in files:
        with Image.open(file) as picture:
            assert picture.n_frames > 4 and picture.info["loop"] == 0, file.name


@pytest.mark.programs
def test_pictures_are_those_that_the_command_makes(tmp_path):
    done = run_python(PICTURES, "Darkroom-v0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with (
        Image.open(tmp_path / "Darkroom-v0.webp") as new,
        Image.open(ROOT / "docs" / "images" / "Darkroom-v0.webp") as kept,
    ):
        frames = [
            [np.asarray(each.convert("RGB"), int) for each in ImageSequence.Iterator(file)] for file in (new, kept)
        ]
    assert len(frames[0]) == len(frames[1])
    # another version of the compression rounds otherwise
    assert max(np.abs(a - b).mean() for a, b in zip(*frames, strict=True)) < 3


@pytest.mark.programs
def test_tables_are_those_that_the_command_prints():
    pages = [README.read_text(), (ROOT / "docs" / "choosing.md").read_text()]
    names = []
    for page in pages:
        for name, table in re.findall(r"<!-- made by: python docs/tables.py (\w+) -->\n((?:\|.*\n)+)", page):
            names.append(name)
            done = run_python(TABLES, name)
            assert done.returncode == 0 and done.stdout.partition("\n\n")[2] == table, f"put what {name} prints there"
    assert names == ["verdicts", "memory", "choices"]


def test_unknown_names_are_refused():
    for script, name, first in ((PICTURES, "Darkroom", "agent, ExtObjNav-v0"), (TABLES, "r2r", "memory, verdicts")):
        done = run_python(script, name)
        assert done.returncode == 2 and f"unknown '{name}'; choose from {first}" in done.stderr
