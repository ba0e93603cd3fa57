"""Tables of finished runs: a row shows what the folder shows; other settings are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.presets import find_preset, preset_descriptions
from memenvs.agents.studies import study_results
from memenvs.agents.studies.study_results import (
    find_row_conflict,
    has_results,
    metric_means,
    nearest_preset,
    pack_runs,
    read_result,
    result_names,
    write_result,
)
from memenvs.cli import main

CONFIG = with_overrides(find_preset("darkroom"), [("seed", 3), ("eval_trials", 7), ("policy.memory_kwargs.dim", 32)])


def evaluation(value: float) -> dict[str, object]:
    metric = {"mean": [value, 2 * value], "stderr": [0.1, 0.2], "stderr_clustered": [0.1, 0.2], "count": [5, 5]}
    return {"agent": {"trials": 5, "metrics": {"return": metric, "success": metric}}}


def make_run(folder: Path, config: RunConfig = CONFIG, value: float = 0.1) -> Path:
    RunDirectory(folder, config).close()
    write_result(folder, "evaluation", evaluation(value))
    return folder


def test_a_row_has_everything_that_its_folder_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "study" / "k1-3")
    (run / "checkpoint.zip").write_bytes(b"weights")
    random = tmp_path / "study" / "random"
    write_result(random, "evaluation", evaluation(0.0))
    table = tmp_path / "study" / "runs.jsonl"
    assert main(["pack", str(run), str(random), "--out", str(table), "--metrics", "return"]) == 0
    assert capsys.readouterr().out == f"{table}: 2 rows\n"
    row = next(json.loads(line) for line in table.read_text().splitlines() if "preset" in line)
    assert (row["preset"], row["env"], row["seed"], row["steps"]) == ("darkroom", CONFIG.env, 3, CONFIG.total_steps)
    assert row["overrides"] == {"eval_trials": 7, "policy.memory_kwargs.dim": 32}
    assert row["versions"]["memenvs"] and len(row["checkpoint"]) == 16
    kept = {"mean": [0.1, 0.2], "stderr": [0.1, 0.2]}
    assert row["evaluations"] == {"evaluation": {"agent": {"trials": 5, "metrics": {"return": kept}}}}

    for folder in (run, random):
        shutil.rmtree(folder)
    assert has_results(run, "evaluation") and not has_results(run, "evaluation", "long")
    assert result_names(run) == ["evaluation"] and result_names(tmp_path / "study" / "other") == []
    assert read_result(random, "evaluation")["agent"]["metrics"]["return"]["mean"] == [0.0, 0.0]
    assert find_row_conflict({run: CONFIG, random.with_name("new"): CONFIG}) is None
    with pytest.raises(FileNotFoundError, match=r"no evaluation 'long' of .*k1-3"):
        read_result(run, "long")


def test_an_evaluation_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    for value in (0.1, 0.5, 0.2, np.nan):  # the first three files have the same size
        write_result(tmp_path, "evaluation", evaluation(value))
        for _ in range(2):
            np.testing.assert_equal(metric_means([tmp_path], "return"), [[value, 2 * value]])


def test_rows_are_replaced_and_read_again(tmp_path: Path) -> None:
    table = tmp_path / "runs.jsonl"
    for value in (0.1, 0.5, np.nan):
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        assert pack_runs([make_run(tmp_path / "a", value=value)], table) == 1
        shutil.rmtree(tmp_path / "a")
        assert "NaN" not in table.read_text()
        np.testing.assert_array_equal(metric_means([tmp_path / "a"], "return"), [[value, 2 * value]])
    assert pack_runs([make_run(tmp_path / "b")], table) == 2


def test_means_of_several_runs(tmp_path: Path) -> None:
    means = {"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0]}
    for run, mean in means.items():
        write_result(
            tmp_path / run, "curve", {"random": {"metrics": {"return": {"mean": mean}, "x": {"mean": mean[0]}}}}
        )
    folders = [tmp_path / run for run in means]
    assert np.array_equal(
        metric_means(folders, "return", "random", "curve"), [[1, 2], [4, 5]]
    )  # episodes that all have
    assert np.array_equal(metric_means(folders, "x", "random", "curve"), [1, 4])


def test_other_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "k1-3")
    pack_runs([run], tmp_path / "runs.jsonl")
    conflict = find_row_conflict({run: replace(CONFIG, eval_trials=8)})
    assert conflict == f"{run} holds another run: eval_trials is 7 there and not 8; choose another folder"
    monkeypatch.setattr(study_results, "find_preset", lambda name: replace(find_preset(name), total_steps=1))
    conflict = find_row_conflict({run: CONFIG})
    assert conflict is not None and "had other settings than preset 'darkroom' with its overrides now makes" in conflict


def test_wrong_tables_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"table must be a \.jsonl file, got .*runs\.csv"):
        pack_runs([], tmp_path / "runs.csv")
    with pytest.raises(FileNotFoundError, match=r"no evaluation in .*none"):
        pack_runs([tmp_path / "none"], tmp_path / "runs.jsonl")
    for broken in ({}, {"agent": {}}, {"agent": 3}):
        write_result(tmp_path / "broken", "evaluation", broken)
        with pytest.raises(ValueError, match=r"broken/evaluation\.json: must hold the results of an evaluation, got {"):
            pack_runs([tmp_path / "broken"], tmp_path / "runs.jsonl")
    assert not (tmp_path / "runs.jsonl").exists()
    for line, message in (("{", "not JSON"), ('{"run": "a"}', "a row must have 'run' and 'evaluations'")):
        (tmp_path / "runs.jsonl").write_text('{"run": "b", "evaluations": {}}\n' + line)
        with pytest.raises(ValueError, match=rf"runs\.jsonl, line 2: {message}"):
            has_results(tmp_path / "a", "evaluation")


def test_every_preset_is_found_by_its_settings() -> None:
    for name in preset_descriptions():
        found, overrides = nearest_preset(replace(find_preset(name), seed=5))
        assert overrides == {} and find_preset(found) == find_preset(name), name
    changed = with_overrides(find_preset("darkroom"), [("env_kwargs", {"size": 4})])  # without other keys of the preset
    name, overrides = nearest_preset(changed)
    assert with_overrides(find_preset(name), list(overrides.items())) == changed
    with pytest.raises(ValueError, match="no preset learns with ppo in memenvs/Search-v0"):
        nearest_preset(replace(find_preset("darkroom"), env="memenvs/Search-v0"))
