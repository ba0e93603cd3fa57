"""Nothing that is imported, up to training, needs a module that only POSIX systems have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import Python

SCRIPT = """
import importlib, pkgutil, sys, warnings

for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None  # from here on an import of it fails
warnings.filterwarnings("ignore", "only soft file lock is available")  # from filelock, which misses fcntl here

import memenvs, memenvs.agents, memenvs.wrappers

count = 0
for package in (memenvs, memenvs.agents, memenvs.wrappers):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:  # an optional package or a display is missing
                assert "halted" not in str(error), f"{module.name}: {error}"
            count += 1
assert count > 200, count

from memenvs.cli import main

sys.exit(main(["train", "ci-smoke", "--out", "run", "--total_steps", "1024", "--no-evaluate", "--json"]))
"""


@pytest.mark.slow
def test_every_module_and_training_work_without_posix(tmp_path: Path) -> None:
    done = Python("-c", SCRIPT, folder=tmp_path).wait()
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "checkpoint.zip").is_file()
