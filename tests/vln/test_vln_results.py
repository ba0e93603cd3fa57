"""Files of results and their command, in the toy house."""

import json
from typing import Any

import numpy as np
import pytest

from memenvs.cli import main
from memenvs.vln.metrics import METRICS
from memenvs.vln.r2r import R2R
from memenvs.vln.results import score_file
from tests.vln.toys import reference_metrics, write_json

PATHS = {"7_0": "abcd", "7_1": "aeb", "8_0": "eebc"}


def entries(paths: dict[Any, str], key: str = "instr_id") -> list[dict[str, Any]]:
    """Rows of a file of results."""
    return [{key: id, "trajectory": [[name, 0.5, 0.0] for name in path]} for id, path in paths.items()]


def test_scores_are_means_of_the_reference(toy_data, tmp_path):
    file = write_json(tmp_path / "paths.json", entries(PATHS)[::-1])
    scores = score_file("r2r", file, "train", toy_data)
    assert tuple(scores) == METRICS
    world = R2R(1, world="mp3d", data_dir=str(toy_data)).world
    graph = world.graphs[0]
    expected = [
        reference_metrics(graph, world.episode(world.episode_number(id)), [graph.node[name] for name in path])
        for id, path in PATHS.items()
    ]
    for name in METRICS:
        assert scores[name] == pytest.approx(np.mean([metrics[name] for metrics in expected])), name


def test_goal_progress_with_numbers_and_strings_as_ids(toy_data, tmp_path, capsys):
    """a-b-c comes 4 m nearer to the region {c, d}. c-b comes 2 m nearer to e, from 4 m to 2 m."""
    for paths in ({3: "abc", 4: "cb"}, {"3": "abc", "4": "cb"}):
        file = write_json(tmp_path / "paths.json", entries(paths, "inst_idx"))
        assert score_file("ndh", file, "train", toy_data) == {"gp": pytest.approx((4.0 + 2.0) / 2)}
    assert main(["score", "ndh", str(file), "--split", "train", "--data", str(toy_data)]) == 0
    assert capsys.readouterr().out == "ndh train\ngp    3.0000 m\n"


def test_refused_files(toy_data, tmp_path):
    for change, message in (
        (lambda rows: rows.pop(1), r"1 of 3 trajectories are missing, the first is that of instr_id '7_1'"),
        (lambda rows: rows.append(rows[0]), r"\[3\]: instr_id '7_0' is there twice"),
        (lambda rows: rows[2].update(instr_id="9_9"), r"\[2\]: unknown instr_id: no episode '9_9' in this split"),
        (lambda rows: rows[2].pop("instr_id"), r"\[2\].instr_id is missing"),
        (lambda rows: rows[1].update(trajectory=[]), r"\[1\] \(instr_id '7_1'\): the trajectory is empty"),
        (lambda rows: rows[1]["trajectory"].pop(0), r"\[1\] .*'7_1'\), step 0: begins at e, the instruction at a"),
        (lambda rows: rows[0]["trajectory"].pop(1), r"\[0\] .*'7_0'\), step 1: goes from a to c, which is no neighb"),
        (lambda rows: rows[0]["trajectory"].append("d"), r"\[0\] .*step 4: must be \[viewpoint of scan toy.*got d"),
        (lambda rows: rows[0]["trajectory"].append(["d", float("nan"), 0]), r"step 4: must be .*got \['d', nan, 0\]"),
        (lambda rows: rows[0]["trajectory"].append(["x", 0, 0]), r"\[0\] .*step 4: must be \[viewpoint of scan toy"),
        (lambda rows: rows.append(4), r"\[3\] must be a JSON object, got 4"),
    ):
        rows = entries(PATHS)
        change(rows)
        file = write_json(tmp_path / "paths.json", rows)
        with pytest.raises(ValueError, match=f"paths.json: .*{message}"):
            score_file("r2r", file, "train", toy_data)


def test_the_command_scores(toy_data, tmp_path, capsys):
    file = write_json(tmp_path / "paths.json", entries(PATHS))
    arguments = ["score", "r2r", str(file), "--split", "train", "--data", str(toy_data)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == score_file("r2r", file, "train", toy_data)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "r2r train"
    assert [line.endswith(" m") for line in lines[1:]] == [name in ("ne", "tl") for name in METRICS]
    with pytest.raises(ValueError, match=r"unknown task 'rxr'; did you mean 'r2r'\? Choose from \['r2r', 'ir2r', 'nd"):
        score_file("rxr", file, "train", toy_data)


def test_the_command_refuses(toy_data, tmp_path, capsys):
    for change, message in (
        ({"file": "none.json"}, "none.json' is no file"),
        ({"split": "test"}, "argument --split: unknown split 'test'; choose from"),
        ({"data": "nowhere"}, "--split train, --data nowhere: no data: there is no folder 'nowhere'"),
        ({"split": "val_train_seen"}, "--split val_train_seen, --data "),
        ({"text": "not JSON"}, "not JSON"),
        ({"text": "{}"}, "must be a list"),
    ):
        (tmp_path / "paths.json").write_text(change.get("text", "[]"))
        file = str(tmp_path / change.get("file", "paths.json"))
        arguments = [file, "--split", change.get("split", "train"), "--data", change.get("data", str(toy_data))]
        assert main(["score", "r2r", *arguments]) == 2, change
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
