"""Folders of entries: written, read, and refused where they are wrong."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memenvs
from memenvs.board.entry import (
    ACTIONS,
    ENTRY,
    MAX_BYTES,
    ROWS,
    Entry,
    Run,
    check_entry,
    hash_settings,
    read_entry,
    write_entry,
)
from memenvs.board.replay import check_replay
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli import main
from tests.board.cue_entries import ABOUT, CUE, cue_board, forgets, made


def check(folder: Path) -> Entry:
    """Check an entry as `memenvs board check` does."""
    entry = read_entry(folder)
    check_entry(entry, folder)
    check_replay(entry)
    return entry


def edit(folder: Path, **fields: Any) -> None:
    """Change fields of entry.json; None removes one."""
    record = json.loads((folder / ENTRY).read_text()) | fields
    (folder / ENTRY).write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


def edit_rows(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = [json.loads(line) for line in (folder / ROWS).read_text().splitlines()]
    changed = change(rows)
    (folder / ROWS).write_text("\n".join(map(json.dumps, changed if isinstance(changed, list) else rows)))


def edit_scores(folder: Path, scores: list[Any]) -> None:
    """Change the scores of a trial."""
    edit_rows(folder, lambda rows: rows[3].update(scores=scores))


def edit_actions(folder: Path, change: Callable[[np.ndarray], Any], name: str = "seed_0") -> None:
    with np.load(folder / ACTIONS) as arrays:
        actions = arrays["seed_0"]
    np.savez(folder / ACTIONS, **{name: change(actions)})


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    with cue_board(tmp_path) as board:
        entry = made("two-runs", seeds=(3, 5))
        folder = write_entry(board, entry)
        assert folder == board / "Cue-v0_v0" / "two-runs"
        assert sorted(path.name for path in folder.iterdir()) == sorted((ENTRY, ROWS, ACTIONS))
        again = check(folder)
        trials = find_test_set(CUE)
    for name in ("name", "id", "hash", "episode_hash", "memory", "kind", "observed", "settings", "author", "link"):
        assert getattr(again, name) == getattr(entry, name), name
    assert (again.hash, again.version, again.test_set) == (trials.hash, memenvs.__version__, "v0")
    assert [run.seed for run in again.runs] == [3, 5] and again.processor == entry.processor != ""
    for own, other in zip(entry.runs, again.runs, strict=True):
        assert own.scores == other.scores and own.steps == other.steps
        assert np.array_equal(np.concatenate(own.actions), np.concatenate(other.actions))  # type: ignore[arg-type]
        assert other.actions is not None and other.actions[0].dtype == np.int8


def test_the_same_entry_has_the_same_bytes(tmp_path: Path) -> None:
    with cue_board(tmp_path):
        folders = [write_entry(tmp_path / name, made("bit")) for name in ("a", "b")]
    for name in (ENTRY, ROWS, ACTIONS):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


def test_mean_and_error_by_hand() -> None:
    """Two runs of three trials of two episodes, of which the second counts."""
    runs = tuple(
        Run(seed, tuple((9.0, score) for score in scores), (2, 2, 2), None)
        for seed, scores in enumerate([(1.0, 2.0, 3.0), (5.0, 6.0, 10.0)])
    )
    fields = ABOUT | {"name": "x", "id": "toy/X-v0", "test_set": "v0", "hash": ZEROS, "kind": "plain"}
    fields |= {"episode_hash": None, "observed": {}, "version": "1", "processor": "x"}
    both, one = Entry(**fields, runs=runs), Entry(**fields, runs=runs[:1])
    assert (one.mean, both.mean) == (2.0, 4.5) and not both.has_actions
    assert one.stderr == pytest.approx(1 / np.sqrt(3))  # over trials
    assert both.stderr == pytest.approx(5 / 2)  # over runs, whose means are 2 and 7; over trials it is 1.04


def test_the_order_of_settings_does_not_matter() -> None:
    expected = sha256(b'{"envs": 16, "lstm": {"size": 64}}').hexdigest()[:16]
    assert hash_settings({"lstm": {"size": 64}, "envs": 16}) == expected


class Evil:
    """Would write a file if it was ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.write_text, (self.path, "executed")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    with cue_board(tmp_path, "bit") as board:
        folder, proof = board / "Cue-v0_v0" / "bit", tmp_path / "proof"
        np.savez(folder / ACTIONS, seed_0=np.array([Evil(proof)], object), allow_pickle=True)
        with pytest.raises(ValueError, match=r"actions\.npz: .*pickled objects are never read"):
            check(folder)
        (folder / ACTIONS).write_bytes(pickle.dumps(Evil(proof)))
        with pytest.raises(ValueError, match=r"actions\.npz: is no \.npz"):
            check(folder)
        assert not proof.exists()
        pickle.loads(pickle.dumps(Evil(proof)))
        assert proof.exists()  # it is armed


ZEROS = f"sha256:{'0' * 64}"
WRONG_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "hash": (lambda f: edit(f, hash=ZEROS), r"hash must be sha256:.*that of toy/Cue-v0 now, got sha256:00"),
    "episode hash": (lambda f: edit(f, episode_hash=ZEROS), r"episode_hash must be .*'old' of the board"),
    "format": (lambda f: edit(f, format=2), r"entry\.json: format must be a whole number from 1 to 1, got 2"),
    "missing": (lambda f: edit(f, author=None), r"entry\.json: author is missing"),
    "unknown": (lambda f: edit(f, authors="x"), r"entry\.json: unknown field 'authors'"),
    "own name": (lambda f: edit(f, name="../bit"), r"entry\.json: unknown field 'name'"),
    "class": (lambda f: edit(f, **{"class": "best"}), "class must be plain or pretrained or privileged, got 'best'"),
    "place": (lambda f: edit(f, observed={"place": True}), "class must be privileged where place is observed"),
    "encoder": (lambda f: edit(f, observed={"encoder": "a"}), "class must be pretrained or privileged where encoder"),
    "observed": (lambda f: edit(f, observed=["place"]), "observed must be a JSON object"),
    "not observed": (lambda f: edit(f, observed={"delay": 3}), r"observed must be .* of toy/Cue-v0 alone, got 'delay'"),
    "a link": (lambda f: edit(f, observed={"x": "[a](javascript:b)"}), "observed must be settings of an environment"),
    "markdown": (lambda f: edit(f, memory="a | b"), r"memory must be of the form .* got 'a \| b'"),
    "lines": (lambda f: edit(f, author="a\n# b"), "author must be of the form"),
    "blank at the end": (lambda f: edit(f, author="Ada "), "author must be of the form .* got 'Ada '"),
    "long author": (lambda f: edit(f, author="A b" * 27), "author must be of the form"),
    "script": (lambda f: edit(f, link="javascript:alert(1)"), "link must be of the form https://"),
    "no id": (lambda f: edit(f, id="memenvs/Cue-v7"), r"Cue-v7"),
    "no test set": (lambda f: edit(f, test_set="v9"), "unknown test_set 'v9'"),
    "no JSON": (lambda f: (f / ENTRY).write_text("{"), r"entry\.json.*JSON"),
    "no entry.json": (lambda f: (f / ENTRY).unlink(), r"no such file: .*entry\.json"),
    "no rows": (lambda f: (f / ROWS).write_text(""), r"rows\.jsonl.*row"),
    "a row less": (lambda f: edit_rows(f, lambda rows: rows.pop()), "seed_0 must have 1791 actions"),
    "a row twice": (
        lambda f: edit_rows(f, lambda rows: rows.insert(5, rows[4])),
        "trial must be a whole number from 5",
    ),
    "a row of letters": (lambda f: edit_scores(f, ["a"]), r"scores\[0\] must be a fin"),
    "no scores": (lambda f: edit_scores(f, []), "scores must be a list of at least 1"),
    "an episode less": (lambda f: edit_scores(f, [1, 1]), "trial 3 of seed 0 must have 3"),
    "another score": (lambda f: edit_scores(f, [1, 1, 0.99]), "trial 3 of seed 0 must"),
    "too many actions": (lambda f: edit_actions(f, lambda a: np.append(a, a[:9])), "seed_0 must have 1800 actions"),
    "one action": (lambda f: edit_actions(f, lambda a: a[0]), "seed_0 must have 1800 actions"),
    "out of range": (lambda f: edit_actions(f, lambda a: a + 1), r"trial \d+: actions must be in 0 \.\.\. 1, got \[2"),
    "floats": (lambda f: edit_actions(f, lambda a: a + 0.5), "trial 0: actions must be integers, got float64"),
    "two axes": (lambda f: edit_actions(f, lambda a: a[:, None]), r"trial 0: actions must have the shape \(9,\)"),
    "another seed": (lambda f: edit_actions(f, lambda a: a, "seed_1"), r"must have seed_0, got \['seed_1'\]"),
    "a path": (lambda f: edit_actions(f, lambda a: a, "../../seed_0"), r"must have seed_0, got \['\.\./\.\./seed_0'\]"),
    "large": (lambda f: (f / ROWS).write_bytes(b" " * (MAX_BYTES + 1)), r"rows\.jsonl: must have at most 5,000,000"),
    "other files": (lambda f: (f / "run.py").write_text("1"), r"run\.py: an entry has the files entry\.json, rows"),
}


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with one entry, to be copied."""
    with cue_board(tmp_path_factory.mktemp("right"), "bit") as board:
        check(board / "Cue-v0_v0" / "bit")
    return board


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_entry_is_refused(right: Path, tmp_path: Path, name: str) -> None:
    change, message = WRONG_FILES[name]
    with cue_board(tmp_path) as board:
        folder = shutil.copytree(right, board) / "Cue-v0_v0" / "bit"
        change(folder)
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
            check(folder)


def test_links_and_other_places_are_refused(tmp_path: Path) -> None:
    with cue_board(tmp_path, "bit") as board:
        folder = board / "Cue-v0_v0" / "bit"
        (board / "Cue-v0_v0" / "linked").symlink_to(folder)
        (tmp_path / "else").mkdir()
        (board / "Other-v0_v0").symlink_to(folder.parent)
        for place in (board / "Cue-v0_v0" / "linked", board / "Other-v0_v0" / "bit"):
            with pytest.raises(ValueError, match="must be in the board itself, got a link to"):
                check(place)
        moved = board / "Cue-v0_v1" / "bit"
        moved.parent.mkdir()
        folder.rename(moved)
        with pytest.raises(ValueError, match="must be Cue-v0_v0/bit in a board"):
            check(moved)
        moved.rename(folder)
        (folder / ROWS).rename(tmp_path / ROWS)
        (folder / ROWS).symlink_to(tmp_path / ROWS)
        with pytest.raises(ValueError, match=r"rows\.jsonl: must be in the board itself"):
            check(folder)


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    with cue_board(tmp_path, "bit") as board:
        before = (board / "Cue-v0_v0" / "bit" / ROWS).read_bytes()
        for name in ("bit", "BIT"):
            with pytest.raises(FileExistsError, match="there is an entry 'bit' already"):
                write_entry(board, made(name, forgets))
        assert (board / "Cue-v0_v0" / "bit" / ROWS).read_bytes() == before
        write_entry(tmp_path / "other", made("Bit"))
        (tmp_path / "other" / "Cue-v0_v0" / "Bit").rename(board / "Cue-v0_v0" / "Bit")
        with pytest.raises(FileExistsError, match="there is an entry 'bit' already"):
            check(board / "Cue-v0_v0" / "Bit")


def test_a_name_stays_in_the_board(tmp_path: Path) -> None:
    for name in ("../bit", "", ".bit", "x" * 80):
        with cue_board(tmp_path), pytest.raises(ValueError, match="name must be of the form"):
            made(name)


def test_scores_without_actions(tmp_path: Path) -> None:
    with cue_board(tmp_path, "bit") as board:
        folder = board / "Cue-v0_v0" / "bit"
        (folder / ACTIONS).unlink()
        entry = read_entry(folder)
        check_entry(entry, folder)
        assert not entry.has_actions and entry.mean == 1.0


def test_check_names_all_that_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cue_board(tmp_path, "a", "b", "c") as board:
        assert main(["board", "check", "--board", str(board)]) == 0
        assert capsys.readouterr().out.count("replayed, 1 +- 0") == 3
        for name in ("a", "c"):
            edit_actions(board / "Cue-v0_v0" / name, lambda actions: 1 - actions)
        assert main(["board", "check", "--board", str(board)]) == 2
        done = capsys.readouterr()
        assert done.out.count("replayed") == 1 and "2 of 3 entries refused" in done.err
        assert all(f"Cue-v0_v0/{name}: trial 0 of seed 0 must have the scores" in done.err for name in "ac")
        assert main(["board", "check", str(board / "Cue-v0_v0" / "b")]) == 0
        assert main(["board", "check", "--board", str(tmp_path / "no")]) == 2
        assert "no board at" in capsys.readouterr().err


def test_settings_of_what_is_observed_are_those_of_the_task() -> None:
    folder = Path(__file__).parents[2] / "board" / "ExtObjNav-Small-v0_v0" / "relic-extobjnav-small"
    entry = read_entry(folder)
    check_entry(replace(entry, observed={"compass": False, "sensors": "all"}), folder)
    pair = replace(entry, observed={"image_size": (36, 36)})  # as environments have it
    assert pair.observed == {"image_size": [36, 36]}  # as it is read again
    check_entry(pair, folder)
    for name, value in (("rooms", [2, 2]), ("threads", 2), ("gap", 0)):
        with pytest.raises(ValueError, match=rf"of memenvs/ExtObjNav-Small-v0 alone, got '{name}'; choose .*'compass'"):
            check_entry(replace(entry, observed={name: value}), folder)
