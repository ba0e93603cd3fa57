"""Folders of runs: who may work in them, with which settings, and their log."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from memenvs.agents.experiments.callback import RunCallback
from memenvs.agents.experiments.config import CONFIG
from memenvs.agents.experiments.directory import LOCK, METRICS, VALIDATION, RunDirectory, find_conflict
from memenvs.agents.presets import find_preset

SMALL = find_preset("ci-smoke")


@pytest.mark.filterwarnings("default")  # as for users: a warning of the package is no error
def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    for code in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):

        def refuse(*_: object, code: int = code) -> None:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr("fcntl.flock", refuse)
            message = rf"{run} cannot be locked .*({os.strerror(code)}|not supported).*; choose .* a local disk"
            with pytest.raises(OSError, match=message):
                RunDirectory(run, SMALL)
        assert list(run.iterdir()) == []
    RunDirectory(run, SMALL).close()
    monkeypatch.setattr("fcntl.flock", refuse)
    assert "cannot be locked" in (find_conflict({run: SMALL}) or "")
    assert (run / LOCK).exists()  # may be the lock of a process elsewhere


def test_folders_that_cannot_be_written_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for name, problem in (
        ("file", "'.*file' is no folder"),
        ("file/run", "'.*file' is no folder"),
        (os.fsdecode(b"bad\xff"), "a path must be UTF-8"),
    ):
        with pytest.raises(ValueError, match=f"^cannot write '.*': {problem}$"):
            RunDirectory(tmp_path / name, SMALL)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ValueError, match=rf"^cannot write '.*run': the folder '{tmp_path}' is not writable$"):
        RunDirectory(tmp_path / "run", SMALL)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_only_a_run_of_equal_settings_is_opened(tmp_path: Path) -> None:
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert run.config == SMALL and not (run.path / "evaluation.json").exists()
        (tmp_path / "evaluation.json").write_text("{}")
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert (run.path / "evaluation.json").is_file() and (run.path / CONFIG).is_file()
    other = replace(SMALL, learner=replace(SMALL.learner, gamma=0.5))
    with pytest.raises(ValueError, match=rf"holds another run: ppo.gamma is {SMALL.learner.gamma} there and not 0.5"):
        RunDirectory.open_or_create(tmp_path, other)
    with RunDirectory.open_or_create(tmp_path, SMALL):  # the failed call has released the folder
        pass


def test_the_folder_of_the_encoder_may_move(tmp_path: Path) -> None:
    RunDirectory(tmp_path, replace(SMALL, encoder_from="here/first")).close()
    RunDirectory.open_or_create(tmp_path, replace(SMALL, encoder_from="there/first")).close()
    with pytest.raises(ValueError, match="encoder_from is 'first' there and not 'third'"):
        RunDirectory.open_or_create(tmp_path, replace(SMALL, encoder_from="there/third"))


def test_conflicts_are_found_before_any_work(tmp_path: Path) -> None:
    existing, new = tmp_path / "existing", tmp_path / "new"
    RunDirectory(existing, SMALL).close()
    assert find_conflict({existing: SMALL, new: SMALL}) is None and not new.exists()
    assert "seed is" in (find_conflict({new: SMALL, existing: replace(SMALL, seed=7)}) or "")
    with RunDirectory(existing):
        assert "in use" in (find_conflict({existing: SMALL}) or "")
    (existing / CONFIG).write_text("{")
    assert CONFIG in (find_conflict({existing: SMALL}) or "")


def test_a_broken_config_is_named(tmp_path: Path) -> None:
    for content in ("", "{", "[]", '{"ppo": {}, "nope": 1}', '{"ppo": {"nope": 1}}', "{}"):
        (tmp_path / CONFIG).write_text(content)
        with pytest.raises(ValueError, match=r"config\.json: not the settings of a run"):
            RunDirectory(tmp_path)


def test_a_broken_line_of_the_log_is_named(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a\n")
        with pytest.raises(ValueError, match="line 3: must be step,name,value"):
            run.metrics()
        (tmp_path / METRICS).write_text("foo\n1,a,2.0\n")
        with pytest.raises(ValueError, match="line 1: must be step,name,value, got"):
            run.metrics()


def test_a_line_of_the_log_cut_by_a_kill_is_dropped(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a,3.0\n2,b,1")
        assert run.metrics() == {"a": [(1, 2.0), (2, 3.0)]}
        run.drop_metrics_after(1)
        assert (tmp_path / METRICS).read_bytes() == b"step,name,value\n1,a,2.0\n"


def test_a_validation_without_an_episode_is_not_the_best(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text(f"step,name,value\n1,{VALIDATION},nan\n2,{VALIDATION},0.5\n")
        assert RunCallback(run, None)._best == 0.5


def test_files_that_a_kill_left_half_written_are_removed(tmp_path: Path) -> None:
    RunDirectory(tmp_path, SMALL).close()
    left = [".checkpoint.123.zip", ".replay_64.7.safetensors", ".checkpoint_2048.99.zip"]
    kept = [".gitignore", ".notes.txt", "replay_64.safetensors", "checkpoint.123.zip"]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    with RunDirectory(tmp_path), pytest.raises(RuntimeError, match="in use"):
        (tmp_path / ".config.5.json").touch()  # of the process that works there
        RunDirectory(tmp_path)
    assert (tmp_path / ".config.5.json").exists()
    assert not any((tmp_path / name).exists() for name in left)
    assert all((tmp_path / name).exists() for name in kept)
