"""Tables of `results/` fit the presets; pages show what commands print of them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "research_notes").glob("*.md"))
}
#: Command -> the page that says that it makes its tables.
COMMANDS = {
    command: name
    for name, text in PAGES.items()
    for command in re.findall(
        r"^<!-- made by: python (examples/\S+ .*--show.*|docs/results\.py \w+) -->$", text, re.MULTILINE
    )
}


def done_and_tables(printed: str) -> tuple[set[str], list[str]]:
    """Folders of the runs that a command has read, and the tables it has printed, as Markdown."""
    done = set(re.findall(r"^done: (.+)$", printed, re.MULTILINE))
    tables = ["\n".join(line for line in part.splitlines() if line.startswith("|")) for part in printed.split("\n\n")]
    return done, [table + "\n" for table in tables if table]


def run_here(script: str, *arguments: str) -> tuple[int, str, str]:
    """Run a script in this process, which has imported what it needs.

    Returns:
        Exit status, output and messages.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", [script, *arguments])
        patch.syspath_prepend(str((ROOT / script).parent))
        runpy.run_path(str(ROOT / script), run_name="__main__")
    return ended.value.code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, tuple[set[str], list[str]]]:
    """Command of a page -> what it shows of a copy of `results/`."""
    folder = tmp_path_factory.mktemp("shown")
    shutil.copytree(RESULTS, folder / "results")
    found = {}
    with contextlib.chdir(folder):
        for command in COMMANDS:
            status, printed, messages = run_here(*shlex.split(command))
            assert status == 0, messages
            found[command] = done_and_tables(printed)
    return found


def test_every_run_is_shown(shown):
    rows = {table: [json.loads(line) for line in table.read_text().splitlines()] for table in RESULTS.glob("*/*.jsonl")}
    runs = {
        f"results/{table.parent.name}/{row['run']}" for table, each in rows.items() for row in each if "preset" in row
    }
    assert runs and set().union(*(done for done, _ in shown.values())) == runs


def test_pages_show_what_the_examples_print(shown):
    for command, (_, tables) in shown.items():
        assert tables, command
        for table in tables:
            page = COMMANDS[command]
            assert table in PAGES[page], f"{page} does not show what python {command} prints:\n{table}"


def test_tables_are_few_and_small():
    files = [file for file in RESULTS.rglob("*") if file.suffix in (".jsonl", ".md")]
    assert len(files) <= 80 and max(file.stat().st_size for file in files) <= 300_000


def test_what_an_example_prints_is_understood():
    printed = (
        "done: results/a/b-0\n\nTitle\n| a |\n|---|\n| 1 |\n\nNext\n| b |\n|---|\n| 2 |\nreport: out/report.html\n"
    )
    assert done_and_tables(printed) == ({"results/a/b-0"}, ["| a |\n|---|\n| 1 |\n", "| b |\n|---|\n| 2 |\n"])
