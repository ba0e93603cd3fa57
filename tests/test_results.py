"""What `results/` holds is of the presets as they are now, and README.md shows what the examples print of it."""

from __future__ import annotations

import importlib
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from agents.run_config import RunConfig
from agents.run_directory import RunDirectory

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
RUNS = sorted(file.parent.relative_to(RESULTS) for file in RESULTS.glob("*/*/config.json"))


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An example as a module."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module(name)


def runs_of(name: str) -> dict[str, list[Path]]:
    """What was trained -> folders of its seeds in order, of an example's results."""
    found: dict[str, list[Path]] = {}
    for run in RUNS:
        if run.parts[0] == name:
            found.setdefault(run.name.rsplit("-", 1)[0], []).append(run)
    return found


def check_readme(printed: str) -> None:
    """Every table that was printed is in README.md, line by line."""
    readme = (ROOT / "README.md").read_text()
    tables = ["\n".join(line for line in part.splitlines() if line.startswith("|")) for part in printed.split("\n\n")]
    tables = [table for table in tables if table]
    assert tables
    for table in tables:
        assert table + "\n" in readme, f"README.md does not show this:\n{table}"


def config_of(run: Path, module: ModuleType) -> RunConfig:
    """What an example gives a run of that name."""
    name, seed = run.name.rsplit("-", 1)
    if run.parts[0] != "scene_memory":
        return module.settings(name, int(seed), False)
    task, method = name.split("-", 1)
    config = module.settings(f"{task}-laptop-{method}", int(seed), False)
    return config if method == "encoder" else replace(config, encoder_from=f"{task}-encoder-{seed}")


def tables_of(module: ModuleType, runs: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    """Table -> its rows, of the tables that have any."""
    found = {
        table: {preset: runs[preset] for preset in presets if preset in runs}
        for table, presets in module.TABLES.items()
    }
    return {table: rows for table, rows in found.items() if rows}


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_runs_are_of_their_presets(run, tmp_path, monkeypatch):
    config = config_of(run, example(run.parts[0], monkeypatch))
    shutil.copytree(RESULTS / run, tmp_path / "run")
    with RunDirectory.continued(tmp_path / "run", config) as found:
        assert found.config.seed == config.seed


@pytest.mark.parametrize("name", sorted({run.parts[0] for run in RUNS}))
def test_the_readme_shows_what_the_example_prints(name, tmp_path, monkeypatch, capsys):
    shutil.copytree(RESULTS / name, tmp_path / name)
    runs = {preset: [tmp_path / run for run in found] for preset, found in runs_of(name).items()}
    module = example(name, monkeypatch)
    module.write_results(tmp_path / name, tables_of(module, runs) if name == "room_ballet" else runs)
    check_readme(capsys.readouterr().out)
