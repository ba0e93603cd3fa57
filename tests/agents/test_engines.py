"""Jobs of a pool: their order, those that fail, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from memenvs.agents.experiments.pool import Job, run_jobs
from tests.processes import SERVER

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """Jobs are forked from a server that has imported torch, since each would import it anew."""
    monkeypatch.setattr("multiprocessing.get_context", lambda method=None: SERVER)


def leave(file: Path, source: Path | None = None) -> str:
    """Write a file; that of the job that it waits for must be there."""
    assert source is None or source.exists()
    time.sleep(0.2 if source is None else 0)
    file.touch()
    return file.name


def fail(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_waits_for_the_one_it_begins_with(tmp_path, processes):
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    jobs = {
        "second": Job(partial(leave, second, first), "first"),
        "first": Job(partial(leave, first)),
        "other": Job(partial(leave, other), "gone"),  # a name that is no job has ended before
    }
    results = dict(run_jobs(jobs, processes))
    assert results == {name: name for name in jobs} and list(results).index("first") < list(results).index("second")


def test_a_job_that_fails_is_named_and_the_others_go_on(tmp_path):
    jobs = {
        "bad": Job(partial(fail, "no luck")),
        "waits": Job(partial(leave, tmp_path / "waits"), "bad"),
        "waits too": Job(partial(leave, tmp_path / "waits_too"), "waits"),
        "good": Job(partial(leave, tmp_path / "good")),
    }
    results = []
    with pytest.raises(RuntimeError) as error:
        results.extend(run_jobs(jobs, 1))
    assert str(error.value).splitlines() == [
        "3 of 4 runs failed",
        "bad: ValueError: no luck",
        "waits: begins with the weights of bad",
        "waits too: begins with the weights of waits",
    ]
    assert "no luck" in str(error.value.__cause__) and [file.name for file in tmp_path.iterdir()] == ["good"]


STOPPED = """
import os, signal, time
from pathlib import Path
from memenvs.agents.experiments.pool import Job, run_jobs

def work():
    Path("began").touch()
    signal.signal(signal.SIGTERM, lambda *_: (Path("saved").touch(), os._exit(1)))
    time.sleep(600)

def other():
    Path("other").touch()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    list(run_jobs({"first": Job(work), "second": Job(other)}, 1))
"""


@pytest.mark.parametrize("how", ["Ctrl-C", "many Ctrl-C", "kill"])
@pytest.mark.slow
def test_a_stopped_command_stops_its_jobs_and_starts_no_other(tmp_path, how):
    (tmp_path / "script.py").write_text(STOPPED)
    with subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            while not (tmp_path / "began").exists():
                assert process.poll() is None
                time.sleep(0.05)
            time.sleep(0.1)
            if how == "kill":
                process.kill()  # but none of its children
            for _ in range({"Ctrl-C": 1, "many Ctrl-C": 20, "kill": 0}[how]):
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                time.sleep(0.001)
            _, printed = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == (-signal.SIGKILL if how == "kill" else -signal.SIGINT), printed
    for _ in range(100):  # a job that is terminated takes its time
        if (tmp_path / "saved").exists():
            break
        time.sleep(0.05)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["began", "saved", "script.py"]
