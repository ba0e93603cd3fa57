"""Engines: what ends their workers, and what they are given."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from memenvs.agents.engines import open_engine
from memenvs.agents.study import read_rows
from memenvs.agents.work import run_study
from tests.agents.small_study import (
    cells_of,
    comparable,
    rows_in_one_process,
    wait_until,
    worker_in_the_middle,
    write_study,
)

ROOT = Path(__file__).parents[2]
finds_workers = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds workers in /proc, as on Linux")
STOPPED = """
import os, signal, time
from concurrent.futures import wait
from pathlib import Path
from memenvs.agents.engines import open_engine

def work():
    Path("began").touch()
    signal.signal(signal.SIGTERM, lambda *_: (Path("saved").touch(), os._exit(1)))
    time.sleep(600)

def other():
    Path("other").touch()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    with open_engine("local", Path()) as start:
        wait([*start(work, 1), *start(other, 1)])
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


@pytest.fixture
def local_jobs(monkeypatch):
    """Use submitit's local executor, since that of SLURM needs a cluster."""
    submitit = pytest.importorskip("submitit")
    make = submitit.AutoExecutor

    def make_local(folder: Path, cluster: str, **options):
        assert cluster == "slurm"
        return make(folder, cluster="local", **options)

    monkeypatch.setattr(submitit, "AutoExecutor", make_local)
    return submitit


def test_a_parameter_that_submitit_does_not_have_is_named(local_jobs, tmp_path):
    for wrong in ({"slurm_partitions": "gpu"}, {"timeout_min": "1 h"}):
        message = f"^resources: .*{next(iter(wrong))}"
        with pytest.raises(ValueError, match=message), open_engine("slurm", tmp_path, resources=wrong):
            pass


@finds_workers
@pytest.mark.slow
def test_a_preempted_job_saves_its_run_and_is_queued_again(local_jobs, tmp_path):
    """submitit's signal comes in the middle of a run, after which the job begins again and resumes it."""
    file, out = write_study(tmp_path / "own"), tmp_path / "runs"

    def preempt() -> None:
        number = wait_until(lambda: worker_in_the_middle(file, out))
        os.kill(number, local_jobs.JobEnvironment._usr_sig())

    thread = Thread(target=preempt)
    thread.start()
    cells = cells_of(file, 1)
    rows = [row for _, row in run_study(file, cells, out, tmp_path / "rows.jsonl", on="slurm")]
    thread.join()
    assert [row["cpu_seconds"] for row in rows] == [None]  # it was resumed
    assert comparable(rows) == comparable(read_rows(tmp_path / "rows.jsonl")) == rows_in_one_process(tmp_path, 1)
    logs = "".join(path.read_text() for path in (out / "slurm").glob("*_log.*"))
    assert "Calling checkpoint method" in logs and "memenvs: stopped" in logs


@finds_workers
@pytest.mark.nightly
def test_a_run_whose_ray_worker_is_killed_is_resumed(tmp_path):
    ray = pytest.importorskip("ray")
    file, out = write_study(tmp_path / "own"), tmp_path / "runs"
    cells = cells_of(file, 2, "relic", "next")
    environ = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env=environ)
    try:

        def kill() -> None:
            os.kill(wait_until(lambda: worker_in_the_middle(file, out)), signal.SIGKILL)

        thread = Thread(target=kill)
        thread.start()
        rows = [row for _, row in run_study(file, cells, out, tmp_path / "rows.jsonl", on="ray")]
        thread.join()
    finally:
        ray.shutdown()
    assert sum(row["cpu_seconds"] is None for row in rows) == 1  # it was resumed
    assert comparable(rows) == rows_in_one_process(tmp_path, 2, "relic", "next")
