"""The page of a board: tables, marks, and that of this repository."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.board.entry import ENTRY, Entry, check_entry, read_entry, write_entry
from memenvs.board.page import entry_folders, make_page, mark
from memenvs.board.replay import check_replay
from memenvs.cli import main
from tests.board.cue_entries import cue_board, forgets, made

BOARD = Path(__file__).parents[2] / "board"


def lines_of(page: str, part: str = "") -> list[list[str]]:
    """Cells of the lines of the tables after a part of the page."""
    after = page[page.index(part) :].splitlines()
    return [line.strip("| ").split(" | ") for line in after if line.startswith("| [")]


@pytest.mark.slow
@pytest.mark.parametrize("folder", entry_folders(BOARD), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_entries_of_the_board_are_replayed(folder: Path) -> None:
    """As `memenvs board check` does; for each pull request."""
    entry = read_entry(folder)
    check_entry(entry, folder)
    if entry.has_actions:
        check_replay(entry)


def test_the_page_is_that_of_the_entries() -> None:
    assert (BOARD / "README.md").read_text() == make_page(BOARD), "run: memenvs board page"


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best first, privileged ones apart, the first episode beside the later ones."""
    with cue_board(tmp_path, "bit") as board:
        ones = made("ones", forgets, seeds=(0, 1), memory="none")
        write_entry(board, ones)
        write_entry(board, made("knows", kind="privileged", observed={"place": True}))
        write_entry(board, made("learned-before", kind="pretrained"))
        assert main(["board", "page", "--board", str(board), "--out", str(tmp_path / "page.md")]) == 0
        page = (tmp_path / "page.md").read_text()
        assert page == make_page(board) and "200 trials" in page
    lines = lines_of(page)
    assert [line[0] for line in lines] == [
        f"[{name}](https://example.org/bit)" for name in ("bit", "learned-before", "ones", "knows")
    ]
    assert page.index("[ones]") < page.index("Privileged:") < page.index("[knows]")
    scores, firsts = ones.runs[0].trial_scores(), np.mean([trial[0] for trial in ones.runs[0].scores])
    error = scores.std(ddof=1) / np.sqrt(200)
    expected = ["none", "plain", f"{scores.mean():.4g} ± {error:.2g}", "-", f"{firsts:.4g}", "2", "replayed", "Ada"]
    assert lines[2][1:-1] == expected
    assert [line[2] for line in lines] == ["plain", "pretrained", "plain", "privileged, place=True"]


def entry(mean: float = 1.0, is_copy: bool = False, **about: Any) -> Entry:
    """Entry whose mean is known; unless it is a copy, its actions are those of no other mean."""
    new = made("x", **about)
    run = new.runs[0]
    assert run.actions is not None
    object.__setattr__(run, "scores", tuple((mean + (-1) ** k,) for k in range(200)))
    if mean != 1.0 and not is_copy:
        object.__setattr__(run, "actions", (1 - run.actions[0], *run.actions[1:]))
    return new


def test_marks(tmp_path: Path) -> None:
    """Of 200 trials of deviation 1 the error is 0.07: two of them differ by chance by up to 0.2."""
    with cue_board(tmp_path):
        own, settings = entry(), "f" * 16
        bare = entry()
        object.__setattr__(bare.runs[0], "actions", None)
        assert mark(bare, [entry(author="Bob")]) == "reported"
        assert mark(own, []) == mark(own, [own]) == "replayed"
        assert mark(own, [own, entry(1.19, author="Bob")]) == "reproduced"
        for other in (
            entry(1.19, is_copy=True, author="Bob"),
            entry(1.21, author="Bob"),
            entry(1.19),
            entry(1.19, author="ada"),
            entry(1.19, author="Bob", settings=settings),
            entry(1.19, author="Bob", kind="pretrained"),
        ):
            assert mark(own, [other]) == "replayed"
        object.__setattr__(bare, "author", "Bob")
        assert mark(own, [bare]) == "replayed"


def test_old_entries_stand_apart_and_are_not_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cue_board(tmp_path, "bit", defaults={"trial_episodes": 3, "delay": 4}) as board:
        old = board / "Cue-v0_v0" / "bit"
    with cue_board(tmp_path):
        with pytest.raises(ValueError, match="hash must be"):
            make_page(board)  # never in one table with those of today
        assert main(["board", "check", "--board", str(board)]) == 2
        (board / "old" / "Cue-v0_v0").mkdir(parents=True)
        old.rename(board / "old" / "Cue-v0_v0" / "bit")
        write_entry(board, made("ones", forgets))
        page = make_page(board)
        assert [line[0] for line in lines_of(page, "## Old")] == ["[bit](https://example.org/bit)"]
        assert [line[-3] for line in lines_of(page)] == ["replayed", "old"]
        capsys.readouterr()
        assert main(["board", "check", "--board", str(board)]) == 0
        assert capsys.readouterr().out.count("\n") == 1
    shutil.rmtree(board / "Cue-v0_v0")
    assert [line[0] for line in lines_of(make_page(board), "## Old")]  # its id may be gone


def test_a_wrong_entry_has_no_page(tmp_path: Path) -> None:
    with cue_board(tmp_path, "bit") as board:
        file = board / "Cue-v0_v0" / "bit" / ENTRY
        file.write_text(json.dumps(json.loads(file.read_text()) | {"author": "[x](javascript:1)"}))
        with pytest.raises(ValueError, match="author must be of the form"):
            make_page(board)
