from __future__ import annotations

import re
from pathlib import Path

import pytest

import memenvs
from memenvs.cli.listing import markdown_table
from tests.processes import run_python

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md")), ROOT / "docs" / "research_notes" / "README.md"]


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Line number and code of each block fenced as python."""
    return [
        (text[: found.start()].count("\n") + 2, found.group(1))
        for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def test_every_block_runs_on_its_own(tmp_path):
    blocks = python_blocks(README.read_text())
    assert blocks, "README.md has no block fenced as python"
    for line, code in blocks:
        done = run_python("-c", code, folder=tmp_path)
        assert done.returncode == 0, f"README.md, code from line {line}:\n{done.stderr}"


def test_blocks_are_found():
    text = "# Title\n\n```python\na = 1\n```\n\n```bash\nls\n```\n\n```python\nb = 2\n```\n"
    assert python_blocks(text) == [(4, "a = 1\n"), (12, "b = 2\n")]


def test_the_table_of_environments_is_that_of_the_registry():
    lines = README.read_text().splitlines()
    begin = lines.index("<!-- made by: python -m memenvs list --markdown -->") + 1
    table = markdown_table().splitlines()
    assert lines[begin : begin + len(table)] == table, "put the output of `python -m memenvs list --markdown` there"
    assert lines[begin + len(table)] == ""  # nor rows of environments that are gone


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_and_files_that_are_linked_are_there(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if "://" not in link]
    assert local
    assert [link for link in local if not (page.parent / link).is_file()] == []


def test_every_page_and_picture_is_linked():
    text = "".join(page.read_text() for page in PAGES)
    for file in (ROOT / "docs").rglob("*.*"):
        assert file.name in text, f"no page links {file}"


def test_the_citation_is_of_this_version():
    versions = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert versions == [memenvs.__version__]
