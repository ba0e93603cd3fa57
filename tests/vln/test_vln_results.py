"""Files of results, the random agent, and the commands for both, in the house of `toys.py`."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from memenvs.__main__ import main
from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.metrics import METRICS
from memenvs.vln.r2r import R2R
from memenvs.vln.random_agent import exact_expectation, nodes_ahead, random_paths
from memenvs.vln.results import score_file
from tests.vln.toys import plain_metrics, turn, write_json

WALKS = {"7_0": "abcd", "7_1": "aeb", "8_0": "eebc"}


def entries(walks: dict[str, str], key: str = "instr_id") -> list[dict[str, Any]]:
    return [{key: id, "trajectory": [[name, 0.5, 0.0] for name in walk]} for id, walk in walks.items()]


def test_scores_are_means_of_the_plain_version(toy_data, tmp_path):
    path = write_json(tmp_path / "walks.json", entries(WALKS)[::-1])
    found = score_file("r2r", path, "train", toy_data)
    assert tuple(found) == METRICS
    world = R2R(1, world="mp3d", data_dir=str(toy_data)).world
    graph = world.graphs[0]
    plain = [
        plain_metrics(graph, world.episode(world.number(id)), [graph.node[name] for name in walk])
        for id, walk in WALKS.items()
    ]
    for name in METRICS:
        assert found[name] == pytest.approx(np.mean([each[name] for each in plain])), name


def test_goal_progress_is_the_same_whatever_the_key_is_written_as(toy_data, tmp_path):
    """From a to c is 4 m nearer to the region; from c over b to a is as far from e as b is plus what a is more: 4, then 2 m, then sqrt 8."""
    for ids in ((3, 4), ("3", "4")):
        path = write_json(tmp_path / "walks.json", entries(dict(zip(ids, ("abc", "cb"), strict=True)), "inst_idx"))
        assert score_file("ndh", path, "train", toy_data) == {"gp": pytest.approx((4.0 + 2.0) / 2)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(1), r"1 of 3 trajectories are missing, the first is that of instr_id '7_1'"),
        (lambda rows: rows.append(rows[0]), r"\[3\]: instr_id '7_0' is there twice"),
        (lambda rows: rows[2].update(instr_id="9_9"), r"\[2\]: unknown instr_id: no episode '9_9' in this split"),
        (lambda rows: rows[2].pop("instr_id"), r"\[2\].instr_id is missing"),
        (lambda rows: rows[1].pop("trajectory"), r"\[1\].trajectory is missing"),
        (lambda rows: rows[1].update(trajectory=[]), r"\[1\] \(instr_id '7_1'\): the trajectory is empty"),
        (
            lambda rows: rows[1]["trajectory"].pop(0),
            r"\[1\] \(instr_id '7_1'\), step 0: begins at e, the instruction at a",
        ),
        (
            lambda rows: rows[0]["trajectory"].pop(1),
            r"\[0\] \(instr_id '7_0'\), step 1: goes from a to c, which is no neighbour",
        ),
        (lambda rows: rows[0]["trajectory"].append(["x", 0, 0]), r"\[0\] .*step 4: must be \[viewpoint of scan toy"),
        (lambda rows: rows[0]["trajectory"].append("d"), r"\[0\] .*step 4: must be \[viewpoint of scan toy.*got d"),
        (lambda rows: rows[0]["trajectory"].append(["d"]), r"\[0\] .*step 4: must be \[viewpoint .*got \['d'\]"),
        (lambda rows: rows[0]["trajectory"].append(["d", 0, "x"]), r"step 4: must be .*got \['d', 0, 'x'\]"),
        (lambda rows: rows[0]["trajectory"].append(["d", float("nan"), 0]), r"step 4: must be .*got \['d', nan, 0\]"),
        (lambda rows: rows.append(4), r"\[3\] must be a JSON object, got 4"),
    ],
)
def test_refused_files(toy_data, tmp_path, change, message):
    rows = copy.deepcopy(entries(WALKS))
    change(rows)
    path = write_json(tmp_path / "walks.json", rows)
    with pytest.raises(ValueError, match=f"walks.json: .*{message}"):
        score_file("r2r", path, "train", toy_data)


def test_the_command_scores(toy_data, tmp_path, capsys):
    path = write_json(tmp_path / "walks.json", entries(WALKS))
    arguments = ["score", "r2r", str(path), "--split", "train", "--data", str(toy_data)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == score_file("r2r", path, "train", toy_data)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "r2r train"
    assert [line.endswith(" m") for line in lines[1:]] == [name in ("ne", "tl") for name in METRICS]
    with pytest.raises(ValueError, match=r"unknown task 'rxr'; choose from \['r2r', 'ndh'\]"):
        score_file("rxr", path, "train", toy_data)


def test_cvdn_is_ndh(toy_data, tmp_path, capsys):
    walks = [
        {"inst_idx": 3, "trajectory": [["a", 0, 0], ["b", 0, 0], ["c", 0, 0]]},
        {"inst_idx": 4, "trajectory": [["c", 0, 0]]},
    ]
    path = write_json(tmp_path / "walks.json", walks)
    assert main(["score", "cvdn", str(path), "--split", "train", "--data", str(toy_data)]) == 0
    assert capsys.readouterr().out == "ndh train\ngp    2.0000 m\n"  # 4 m nearer to c, and nothing
    assert score_file("cvdn", path, "train", toy_data) == score_file("ndh", path, "train", toy_data) == {"gp": 2.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "none.json"}, "none.json' is no file"),
        ({"split": "test"}, "argument --split: unknown split 'test'; choose from"),
        ({"data": "nowhere"}, "--split train, --data nowhere: no data: there is no folder 'nowhere'"),
        ({"split": "val_train_seen"}, "--split val_train_seen, --data "),
        ({"text": "not JSON"}, "not JSON"),
        ({"text": "{}"}, "must be a list"),
    ],
)
def test_the_command_refuses(toy_data, tmp_path, capsys, change, message):
    path = tmp_path / "walks.json"
    path.write_text(change.get("text", "[]"))
    named = str(tmp_path / change["file"]) if "file" in change else str(path)
    arguments = [named, "--split", change.get("split", "train"), "--data", change.get("data", str(toy_data))]
    assert main(["score", "r2r", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


# ---------------------------------------------------------------------- the random agent


def literal_walk(graph: Graph, node: int, column: int, turns: int) -> list[int]:
    """The baseline's agent, one low-level action after another; `steps` counts as there."""
    walk, steps = [node], -turns
    for _ in range(30):
        heading = column * np.pi / 6
        near = [v if u == walk[-1] else u for u, v in graph.edges.tolist() if walk[-1] in (u, v)]
        lines = {v: graph.position[v] - graph.position[walk[-1]] for v in near}
        off = {v: turn(np.arctan2(x, y), heading) for v, (x, y, _) in lines.items()}
        seen = [v for v in lines if off[v] <= np.radians(40)]
        if steps >= 5:
            break
        if steps >= 0 and seen:
            middle = {v: np.hypot(off[v], np.arctan2(lines[v][2], np.hypot(*lines[v][:2]))) for v in seen}
            walk.append(min(seen, key=middle.__getitem__))
            steps += 1
        else:
            column = (column + 1) % 12
            steps += steps < 0
    return walk


def test_random_walks_are_those_of_the_literal_agent():
    rng = np.random.default_rng(0)
    pairs = np.array([(u, v) for u in range(8) for v in range(u + 1, 8)])
    for _ in range(4):
        graph = Graph("any", tuple("abcdefgh"), rng.normal(0, 3, (8, 3)), pairs[rng.random(len(pairs)) < 0.25])
        ahead = nodes_ahead(Graphs([graph]))
        node, column, turns = (np.array(each) for each in np.meshgrid(range(8), (0, 5), (0, 1, 4, 11)))
        walks = random_paths(ahead, node.ravel(), column.ravel(), turns.ravel())
        for way, *start in zip(walks.tolist(), node.ravel(), column.ravel(), turns.ravel(), strict=True):
            literal = literal_walk(graph, *map(int, start))
            assert way == literal + literal[-1:] * (6 - len(literal))


def test_exact_expectation_is_the_mean_over_headings(toy_data):
    task = R2R(1, world="mp3d", data_dir=str(toy_data))
    found = exact_expectation(task)
    graph, values = task.world.graphs[0], []
    for number in range(3):
        episode = task.world.episode(number)
        column = round(episode.heading / (np.pi / 6))
        values.append(
            [plain_metrics(graph, episode, literal_walk(graph, episode.path[0], column, k))["ne"] for k in range(12)]
        )
    assert found["ne"]["mean"] == pytest.approx(np.mean(values))
    assert found["ne"]["stderr"] == pytest.approx(np.sqrt(np.var(values, axis=1).sum()) / 3)


@pytest.mark.parametrize("limit", [1, 2])
def test_exact_expectation_ends_at_the_limit(toy_data, limit):
    """As the agent does that walks in the environment."""
    task = R2R(1, world="mp3d", data_dir=str(toy_data), max_episode_steps=limit)
    graph, values = task.world.graphs[0], []
    for number in range(3):
        episode = task.world.episode(number)
        column = round(episode.heading / (np.pi / 6))
        walks = [literal_walk(graph, episode.path[0], column, k)[: limit + 1] for k in range(12)]
        values.append([plain_metrics(graph, episode, walk)["tl"] for walk in walks])
    assert exact_expectation(task)["tl"]["mean"] == pytest.approx(np.mean(values))
    assert (
        exact_expectation(task)["tl"]["mean"]
        < exact_expectation(R2R(1, world="mp3d", data_dir=str(toy_data)))["tl"]["mean"]
    )


def test_the_command_plays_and_expects(toy_data, capsys):
    base = ["rollout", "VLN-R2R-v0", "--json", "--kwargs", json.dumps({"world": "mp3d", "data_dir": str(toy_data)})]
    assert main([*base, "--policy", "r2r-random", "--exact"]) == 0
    exact = json.loads(capsys.readouterr().out)
    assert (exact["policy"], exact["episodes"], exact["exact"]) == ("r2r-random", 3, True)
    assert main([*base, "--policy", "r2r-random", "--episodes", "200"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not document["exact"]
    played = document["metrics"]
    for name in METRICS:
        assert abs(played[name]["mean"] - exact["metrics"][name]["mean"]) < 4 * played[name]["stderr"] + 1e-12, name
    assert main([*base, "--policy", "oracle", "--episodes", "5"]) == 0
    oracle = json.loads(capsys.readouterr().out)["metrics"]
    assert (oracle["ne"]["mean"], oracle["sr"]["mean"], oracle["spl"]["mean"]) == (0, 1, 1)
    assert not {"heading", "elevation", "teacher_action", "episode"} & set(oracle)
    assert main([*base, "--policy", "oracle", "--exact"]) == 0
    document = json.loads(capsys.readouterr().out)
    task = R2R(1, world="mp3d", data_dir=str(toy_data))
    lengths = [
        task.world.graphs[0].distance[path[0], path[-1]] for path in (task.world.episode(k).path for k in range(3))
    ]
    assert (document["episodes"], document["exact"]) == (3, True)
    assert document["metrics"]["tl"] == {"mean": pytest.approx(np.mean(lengths)), "stderr": 0.0}
    assert main([*base, "--policy", "random", "--episodes", "20"]) == 0  # never draws a masked action
    assert main(["bench", *base[1:], "--num-envs", "3", "--seconds", "0.05"]) == 0


def test_the_command_refuses_other_worlds(capsys):
    for arguments, message in (
        (
            ["Darkroom-v0", "--policy", "r2r-random"],
            "argument --policy r2r-random: is for environments of family vln only, got memenvs/Darkroom-v0",
        ),
        (
            ["Darkroom-v0", "--policy", "oracle", "--exact"],
            "argument --exact: is for environments of family vln only, got",
        ),
        (
            ["VLN-R2R-v0", "--exact"],
            "argument --exact: goes with --policy r2r-random or oracle and without --episodes and --seed, got --policy random",
        ),
        (["VLN-R2R-v0", "--policy", "r2r-random", "--exact", "--seed", "0"], "got --policy r2r-random --seed 0"),
    ):
        assert main(["rollout", *arguments]) == 2
        assert message in capsys.readouterr().err
