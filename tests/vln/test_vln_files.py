"""Graphs and annotations: the toy house in public formats, broken files, and the real data."""

import copy
import functools
import os
from typing import Any

import numpy as np
import pytest

from memenvs.data import find_vln_folder
from memenvs.json_records import read_json
from memenvs.poses import wrap_angle
from memenvs.vln.cvdn import CVDN
from memenvs.vln.graph import COLUMNS, HALF_HFOV, VIEW_STEP, Graphs, nearest_column
from memenvs.vln.metrics import score
from memenvs.vln.r2r import R2R
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.mp3d import cvdn_training_texts, find_file, load_cvdn, load_r2r
from memenvs.vln.worlds.mp3d_graphs import read_scans
from tests.side_files import put_side_files
from tests.vln.toys import NDH, POSITIONS, connectivity, shortest_path, write_data, write_json
from tests.vln.toys import R2R as RECORDS

needs_data = pytest.mark.skipif(
    not os.environ.get("MEMENVS_DATA"), reason="needs MEMENVS_DATA set to a folder with vln"
)


def test_the_toy_house(toy_data):
    (scan,) = read_scans(toy_data).values()
    assert scan.graph.viewpoints == tuple("abcde")
    assert {tuple(pair) for pair in scan.graph.edges.tolist()} == {(0, 1), (1, 2), (2, 3), (1, 4), (0, 4)}
    np.testing.assert_array_equal(scan.graph.position[3], [*POSITIONS["d"], 1.5])
    assert (scan.visible == ~np.eye(5, dtype=bool)).all()


def test_side_files_are_no_graphs(tmp_path):
    put_side_files(write_data(tmp_path))
    assert list(read_scans(tmp_path)) == ["toy"]


def packed_connectivity() -> dict[str, Any]:
    """The toy house as arrays of `connectivity.npz`."""
    rows = connectivity()
    lists = {
        key: [[k for k, flag in enumerate(row[key]) if flag] for row in rows] for key in ("unobstructed", "visible")
    }
    packed: dict[str, Any] = {
        "scan_ids": np.array(["toy"]),
        "scan_offsets": np.array([0, len(rows)]),
        "viewpoint_ids": np.array([row["image_id"].encode() for row in rows]),
        "pose": np.array([row["pose"] for row in rows], float),
        "height": np.array([row["height"] for row in rows]),
        "included": np.array([row["included"] for row in rows]),
    }
    for key, rows in lists.items():
        packed[f"{key}_ptr"] = np.cumsum([0, *map(len, rows)])
        packed[f"{key}_idx"] = np.array([k for neighbours in rows for k in neighbours], np.int16)
    return packed


def test_packed_and_unpacked_graphs_are_the_same(toy_data, tmp_path):
    np.savez(tmp_path / "connectivity.npz", **packed_connectivity())
    one, other = read_scans(toy_data)["toy"], read_scans(tmp_path)["toy"]
    assert one.graph.viewpoints == other.graph.viewpoints
    assert (one.graph.position == other.graph.position).all() and (one.visible == other.visible).all()
    np.testing.assert_array_equal(one.graph.edges, other.graph.edges)


def test_without_data(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMENVS_DATA", raising=False)
    needed = r"connectivity/SCAN_connectivity.json .*connectivity.npz.*R2R_SPLIT.json.*ndh_SPLIT.json.*terms of use"
    for call, problem in (
        (lambda: R2R(1, world="mp3d"), r"no data: \$MEMENVS_DATA is not set or empty, and no folder \(data_dir, "),
        (lambda: find_vln_folder(tmp_path / "none"), "no data: there is no folder '.*none'"),
        (lambda: load_r2r(tmp_path, "train"), r"no file r2r_train.json or R2R_train.json in"),
        (lambda: load_cvdn(tmp_path, "train", "mixed", "all"), r"no file ndh_train.json in"),
        (lambda: read_scans(tmp_path), r"no connectivity.npz and no connectivity/\*_connectivity.json in"),
    ):
        with pytest.raises(FileNotFoundError, match=f"{problem}.*{needed}"):
            call()
    monkeypatch.setenv("MEMENVS_DATA", str(tmp_path))
    (tmp_path / "vln").mkdir()
    assert find_vln_folder(None) == find_vln_folder(tmp_path) == (tmp_path / "vln").resolve()


def test_data_dir_that_no_setting_uses(toy_data):
    for make in (R2R, CVDN):
        with pytest.raises(ValueError, match="data_dir must be None with world 'procedural' and tokenizer 'words'"):
            make(1, data_dir=str(toy_data))


def test_a_split_that_is_not_there(tmp_path):
    toy_data = write_data(tmp_path)
    (toy_data / "ndh_train.json.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file ndh_val_unseen.json .* splits that are there: val_seen\. "):
        load_cvdn(toy_data, "val_unseen", "mixed", "all")
    with pytest.raises(FileNotFoundError, match=r"R2R_val_unseen.json .* splits that are there: train, val_seen\. "):
        load_r2r(toy_data, "val_unseen")


def test_texts_of_dialogues(tmp_path):
    """The texts are those of R2R's train and CVDN's train, or of CVDN's val_seen if CVDN's train is missing."""
    toy_data = write_data(tmp_path)
    turned = changed(NDH, 1, "dialog_history", [{"nav_idx": 0, "role": "oracle", "message": "Turn."}])
    write_json(toy_data / "ndh_train.json.gz", turned[1:], zipped=True)
    instructions = [text for record in RECORDS for text in record["instructions"]]
    assert cvdn_training_texts(toy_data) == [*instructions, "Turn."]
    (toy_data / "ndh_train.json.gz").unlink()
    assert cvdn_training_texts(toy_data) == [*instructions, *(turn["message"] for turn in NDH[0]["dialog_history"])]


def changed(records: list[Any], number: int, key: str, value: Any) -> list[Any]:
    """A copy of records with one value replaced."""
    records = copy.deepcopy(records)
    records[number][key] = value
    return records


UNMOVED = changed(NDH, 1, "planner_path", ["c"])
#: Name of a file -> its broken contents, and what the message says of each.
BROKEN_FILES: dict[str, tuple[tuple[Any, str], ...]] = {
    "R2R_train.json": (
        ([], "R2R_train.json: the record must be a list of at least 1"),
        (changed(RECORDS, 1, "scan", "mars"), r"\[1\].scan must be one of the 1 scans that have a graph"),
        (changed(RECORDS, 1, "path", list("cx")), r"\[1\].path\[1\] must be a viewpoint of scan toy that is included"),
        (changed(RECORDS, 0, "path", list("ac")), r"\[0\].path\[1\] must be a neighbour of a, got 'c'"),
        (changed(RECORDS, 0, "heading", "north"), r"\[0\].heading must be a finite number"),
        (changed(RECORDS, 0, "instructions", ["  "]), r"\[0\].instructions\[0\] must be an instruction"),
        (changed(RECORDS, 1, "path_id", 7), "two episodes have the id '7_0'"),
        ([{"scan": "toy"}], r"\[0\].path is missing"),
        # as published test splits are: paths that end where they start
        (changed(RECORDS, 1, "path", ["e"]), r"\[1\].path must be a path to a goal; .*, got \['e'\]"),
    ),
    "ndh_train.json.gz": (
        (changed(UNMOVED, 1, "player_path", ["c"]), r"\[1\].player_path must be a path to a goal"),
        (changed(NDH, 1, "end_panos", []), r"\[1\].end_panos must be a list of at least 1"),
        (changed(NDH, 1, "player_path", list("bc")), r"\[1\].player_path must be a path from the start c"),
        (changed(NDH, 0, "dialog_history", [{"role": "cat", "message": ""}]), "role must be one of"),
    ),
    "connectivity/toy_connectivity.json": (
        (changed(connectivity(), 0, "pose", [1.0]), r"\[0\].pose must be a list of at least 16"),
        (changed(connectivity(), 0, "unobstructed", [True]), r"\[0\].unobstructed must be a list of 6"),
    ),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_broken_files(tmp_path, name):
    folder = write_data(tmp_path)
    for document, message in BROKEN_FILES[name]:
        write_json(folder / name, document, zipped=name.endswith(".gz"))
        with pytest.raises(ValueError, match=message):
            load_cvdn(folder, "train", "mixed", "all") if "ndh" in name else load_r2r(folder, "train")


def test_packed_graphs_are_checked(tmp_path):
    good, path = packed_connectivity(), tmp_path / "connectivity.npz"
    idx, ptr = good["visible_idx"], good["visible_ptr"]
    for change, message in (
        ({"scan_ids": None}, "holds no array 'scan_ids'"),
        ({"height": np.array([None] * 6, object)}, "array 'height' .*pickled objects are never read"),
        ({"pose": good["pose"][:, :15]}, r"pose must have the shape \(6, 16\), got \(6, 15\)"),
        ({"pose": np.full((6, 16), np.nan)}, "scan toy: graph 'toy': position must be .* finite"),
        ({"height": np.full(6, np.inf)}, "height must be finite"),
        ({"included": good["included"].astype(int)}, "included must be of kind b and shape .*, got int64"),
        ({"scan_ids": np.array(["a", "a"]), "scan_offsets": np.array([0, 3, 6])}, "scan_ids must be different"),
        ({"scan_offsets": np.array([0, 5])}, "scan_offsets must go from 0 to 6 and never down"),
        ({"visible_ptr": ptr[::-1].copy()}, "visible_ptr must go from 0"),
        ({"visible_idx": np.where(idx == 4, -1, idx)}, r"scan toy: visible_idx must be in 0 \.\.\. 5, got -1"),
        ({"viewpoint_ids": np.array([b"\xff"] * 6)}, "scan toy: 'utf-8' codec"),
        ({"viewpoint_ids": np.array([b"a"] * 6)}, "scan toy: .* two viewpoints have the same id"),
    ):
        np.savez(path, **{name: array for name, array in (good | change).items() if array is not None})
        with pytest.raises(ValueError, match=rf"connectivity\.npz: .*{message}"):
            read_scans(tmp_path)
    np.savez_compressed(path, **good, zeros=np.zeros(10**7))
    with pytest.raises(ValueError, match="unpacks to more than 100 times its size"):
        read_scans(tmp_path)


def test_files_are_read_again_when_they_have_changed(tmp_path):
    folder = write_data(tmp_path)
    before = load_r2r(folder, "train")
    assert load_r2r(folder, "train") is before
    assert read_scans(folder) is read_scans(folder)
    write_json(folder / "R2R_train.json", changed(RECORDS, 0, "instructions", ["Go elsewhere now."]))
    after = load_r2r(folder, "train")
    assert after.episode(0).text == "Go elsewhere now."
    assert after.scans[0] is not before.scans[0]
    rows = connectivity()
    rows[0]["height"] = 1.875
    write_json(folder / "connectivity" / "toy_connectivity.json", rows)
    assert load_r2r(folder, "train").scans[0].height[0] == 1.875
    (folder / "R2R_train.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file r2r_train\.json"):
        load_r2r(folder, "train")


def test_val_train_seen_is_the_listed_part_of_train(tmp_path):
    folder = write_data(tmp_path)
    write_json(folder / "splits.json", {"r2r_val_train_seen_path_ids": [8]})
    world = load_r2r(folder, "val_train_seen")
    assert [world.episode(k).id for k in range(world.num_episodes)] == ["8_0"]
    write_json(folder / "splits.json", {"r2r_val_train_seen_path_ids": [9, 10]})
    with pytest.raises(ValueError, match="r2r_val_train_seen_path_ids must be a list with paths of the training split"):
        load_r2r(folder, "val_train_seen")


@needs_data
def test_real_graphs():
    scans = read_scans(find_vln_folder(None)).values()
    table = Graphs([scan.graph for scan in scans])
    is_candidate = table.candidates.node >= 0
    assert (len(scans), len(table.position), is_candidate.sum()) == (90, 10_567, 42_936)
    assert sum(len(scan.graph.edges) for scan in scans) == 21_468
    assert is_candidate.sum(1).max() == 13 and (~is_candidate.any(1)).sum() == 8


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "instructions", "houses", "spl"),
    [("train", 14_039, 61, 100.0), ("val_seen", 1_021, 56, 100.0), ("val_unseen", 2_349, 11, 99.84)],
)
def test_real_shortest_paths(split, instructions, houses, spl):
    """Metrics of shortest and of annotated paths; `spl` is that of the annotated ones, per cent."""
    world = load_r2r(find_vln_folder(None), split)
    assert (world.num_episodes, len(world.graphs)) == (instructions, houses)
    episodes = [world.episode(k) for k in range(world.num_episodes)]
    table = Graphs(world.graphs)
    shortest = functools.cache(lambda house, path: shortest_path(world.graphs[house], path[0], path[-1]))
    metrics = score(table, episodes, [shortest(episode.house, episode.path) for episode in episodes])
    assert (metrics["ne"] == 0).all()
    assert (metrics["sr"] == 1).all()
    np.testing.assert_allclose(metrics["spl"], 1.0, atol=1e-12)
    annotated = score(table, episodes, [episode.path for episode in episodes])
    assert (annotated["ndtw"] == 1).all()
    records = read_json(find_file(find_vln_folder(None), f"r2r_{split}.json")).items()
    written = [record["distance"].number() for record in records for _ in record["instructions"].items()]
    np.testing.assert_allclose(annotated["tl"], written, atol=0.0051)  # rounded to 1 cm
    assert 100 * annotated["spl"].mean() == pytest.approx(spl, abs=0.005)


def nodes_ahead(graphs: Graphs) -> np.ndarray:
    """Neighbour within 40 degrees of each heading that is nearest to the centre of the view.

    Global node numbers, int64, (V, 12); -1 where no neighbour is visible.
    """
    candidates = graphs.candidates
    offset = wrap_angle(candidates.heading[:, None] - np.arange(COLUMNS)[:, None] * VIEW_STEP)  # (V, 12, K)
    is_visible = (np.abs(offset) <= HALF_HFOV) & (candidates.node >= 0)[:, None]
    from_centre = np.where(is_visible, np.hypot(offset, candidates.elevation[:, None]), np.inf)
    nearest = from_centre.argmin(2)
    return np.where(is_visible.any(2), np.take_along_axis(candidates.node, nearest, 1), -1)


def random_path(ahead: list[list[int]], node: int, column: int, turns: int) -> list[int]:
    """Nodes of the random agent, which turns right 0 to 11 times and moves ahead five times.

    Where it cannot move it turns.
    """
    path, column = [node], (column + turns) % COLUMNS
    for _ in range(30 - turns):  # actions at most
        onward = ahead[path[-1]][column]
        if len(path) > 5:
            break
        if onward >= 0:
            path.append(onward)
        else:
            column = (column + 1) % COLUMNS
    return path


def exact_expectation(world: GraphWorld, metric: str) -> tuple[float, float]:
    """Exact mean score over the first heading, and the standard deviation of one pass."""
    graphs = Graphs(world.graphs)
    ahead = nodes_ahead(graphs).tolist()
    episodes, paths = [], []
    for number in range(world.num_episodes):
        episode = world.episode(number)
        first = int(graphs.offset[episode.house])
        column = int(nearest_column(np.array(episode.heading)))
        for turns in range(COLUMNS):
            episodes.append(episode)
            path = random_path(ahead, first + episode.path[0], column, turns)
            paths.append([node - first for node in path])
    by_heading = score(graphs, episodes, paths)[metric].reshape(-1, COLUMNS)
    # episodes draw independent headings
    return float(by_heading.mean()), float(np.sqrt(by_heading.var(1).sum()) / len(by_heading))


@pytest.mark.slow
@needs_data
def test_real_random_agent_agrees_with_the_published_numbers():
    """Published are single runs, so three standard deviations of one run are allowed."""
    for split, error, success in (("val_seen", 9.45, 0.16), ("val_unseen", 9.23, 0.16)):
        world = load_r2r(find_vln_folder(None), split)
        for metric, published, rounding in (("ne", error, 0.0), ("sr", success, 0.005)):  # in whole per cent
            mean, stderr = exact_expectation(world, metric)
            assert abs(mean - published) < 3 * stderr + rounding, (split, metric)


@needs_data
def test_real_texts_in_word_pieces():
    """Published: 30 pieces on average in R2R, fewer than 1 % above 79; 53 on average in CVDN's unseen houses."""
    pieces = R2R(1, world="mp3d", split="val_unseen", tokenizer="wordpiece").tokenizer
    assert len(pieces.tokens) == 30_522 + 3
    folder = find_vln_folder(None)
    worlds = load_r2r(folder, "val_unseen"), load_cvdn(folder, "val_unseen", "mixed", "all")
    r2r, cvdn = (
        np.array([len(pieces.pieces(world.episode(k).text)) for k in range(world.num_episodes)]) for world in worlds
    )
    assert r2r.mean() == pytest.approx(30, abs=1.5) and 0.003 < (r2r > 79).mean() < 0.01
    assert cvdn.mean() == pytest.approx(53, abs=1.5)


@needs_data
def test_real_goal_progress_of_the_shortest_path():
    for supervision, progress in (("oracle", 8.36), ("navigator", 7.99), ("mixed", 9.58)):
        world = load_cvdn(find_vln_folder(None), "val_unseen", supervision, "all")
        episodes = [world.episode(k) for k in range(world.num_episodes)]
        paths = [shortest_path(world.graphs[episode.house], episode.path[0], episode.path[-1]) for episode in episodes]
        metrics = score(Graphs(world.graphs), episodes, paths)
        assert len(episodes) == 907, supervision
        assert metrics["gp"].mean() == pytest.approx(progress, abs=0.005), supervision
        assert (metrics["ne"] == 0).all(), supervision
