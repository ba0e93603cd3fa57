"""Image features: files in each format, broken files, and synthetic features."""

import base64
import gzip
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from memenvs.vln.features.file_features import FileFeatures, convert_features
from memenvs.vln.features.synthetic import SyntheticFeatures, compute_view_features
from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.worlds.base import ViewpointContent
from memenvs.vln.worlds.mp3d import load_r2r
from memenvs.vln.worlds.procedural.world import load_routes
from tests.vln.toys import write_data, write_json

WIDTH = 5


@pytest.fixture
def views() -> dict[str, np.ndarray]:
    """Features of the toy house that float16 represents exactly, by `SCAN_VIEWPOINT`."""
    rng = np.random.default_rng(0)
    return {f"toy_{name}": rng.integers(0, 512, (36, WIDTH)).astype(np.float32) / 64 for name in "abcde"}


@pytest.fixture
def graphs(toy_data: Path) -> Graphs:
    return Graphs(load_r2r(toy_data, "train").graphs)


def write_tsv(path: Path, views: dict[str, np.ndarray]) -> Path:
    rows = []
    for key, numbers in views.items():
        data = base64.b64encode(numbers.astype("<f4").tobytes()).decode()
        rows.append("\t".join([*key.split("_"), "640", "480", "60", data]) + "\n")
    text = "".join(rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_hdf5(path: Path, views: dict[str, np.ndarray]) -> Path:
    h5py = pytest.importorskip("h5py", reason="needs the extra hdf5")
    with h5py.File(path, "w") as file:
        for key, numbers in views.items():
            file.create_dataset(key, data=numbers, compression="gzip")
    return path


def write_array(path: Path, views: dict[str, np.ndarray]) -> Path:
    source = write_tsv(path.with_suffix(".tsv"), views)
    assert convert_features(source, path) == len(views)
    return path


WRITERS = {"f.tsv": write_tsv, "f.tsv.gz": write_tsv, "f.hdf5": write_hdf5, "f.npy": write_array}


@pytest.mark.parametrize("name", WRITERS)
def test_files_are_read_back(tmp_path, views, graphs, name):
    more = {"other_a": views["toy_a"] + 1, **dict(reversed(views.items()))}
    features = FileFeatures(WRITERS[name](tmp_path / name, more), graphs, None)
    assert features.size == WIDTH
    nodes = np.arange(5)[:, None]
    numbers = np.array([0, 7, 35])
    read = features.view_features(nodes, numbers)
    assert read.dtype == np.float32
    for k, key in enumerate("abcde"):
        np.testing.assert_array_equal(read[k], views[f"toy_{key}"][numbers])
    first = FileFeatures(tmp_path / name, graphs, 2)
    np.testing.assert_array_equal(first.view_features(nodes, numbers), read[:, :, :2])
    with pytest.raises(ValueError, match=rf"{name}: features have 5 numbers, feature_size requests 6"):
        FileFeatures(tmp_path / name, graphs, 6)


@pytest.mark.parametrize("name", WRITERS)
def test_wrong_numbers_and_missing_viewpoints(tmp_path, views, graphs, name):
    cases = (
        ({"toy_c": None, "toy_e": None}, "2 of 5 viewpoints are missing, the first is toy_c$"),
        ({"toy_c": np.full((36, WIDTH), np.nan)}, "features of toy_c are not finite"),
        ({"toy_c": np.full((36, WIDTH), 1e6)}, "features of toy_c are not finite"),
    )
    for number, (change, message) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        changed = {key: numbers for key, numbers in (views | change).items() if numbers is not None}
        path = WRITERS[name](folder / name, changed)
        is_list = name == "f.npy" and "missing" in message  # the list beside the array says what is there
        with pytest.raises(ValueError, match=f"{name}{'.json' * is_list}: {message}"):
            FileFeatures(path, graphs, None)


@pytest.mark.parametrize("name", ["f.tsv", "f.hdf5"])
def test_wrong_shapes(tmp_path, views, graphs, name):
    for shape, message in (
        ((35, WIDTH), "toy_d must have 36 views.*35"),
        ((36, WIDTH + 1), "toy_d has 6 numbers for each view, those before it 5"),
    ):
        path = WRITERS[name](tmp_path / name, views | {"toy_d": np.ones(shape)})
        with pytest.raises(ValueError, match=f"{name}: .*{message}"):
            FileFeatures(path, graphs, None)
        with pytest.raises(ValueError, match=f"{name}: .*{message}"):
            convert_features(path, tmp_path / "out.npy")
        assert not [file for file in tmp_path.iterdir() if "out" in file.name]


def test_broken_files(tmp_path, views, graphs):
    good = write_tsv(tmp_path / "good.tsv", views).read_text()
    for name, text, message in (
        ("a.tsv", "toy\ta\t640\n", "line 1 has 3 columns, not 6"),
        ("b.tsv", good.replace("60\t", "60\t?", 1), "b.tsv: line 1, toy_a: features are not base64: "),
        ("c.tsv", good + good.splitlines()[1], "toy_b is there twice"),
        ("d.tsv", "", "5 of 5 viewpoints are missing, the first is toy_a; the file has no viewpoint of this world"),
        ("e.hdf5", "no hdf5", "e.hdf5: "),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=message):
            FileFeatures(tmp_path / name, graphs, None)
    with pytest.raises(FileNotFoundError, match=r"no file '.*none.tsv' with features"):
        FileFeatures(tmp_path / "none.tsv", graphs, None)
    for source, target, error, message in (
        ("good.tsv", "x.npz", ValueError, "target must end with .npy"),
        ("none.tsv", "x.npy", FileNotFoundError, "no file '.*none.tsv'"),
        ("d.tsv", "x.npy", ValueError, "there are no features in it"),
    ):
        with pytest.raises(error, match=message):
            convert_features(tmp_path / source, tmp_path / target)


def test_an_array_and_the_list_beside_it(tmp_path, graphs):
    names = [f"toy_{key}" for key in "abcde"]
    for num_views, listed, message in (
        (35, names, r"viewpoints must have 36 views of .*, got the shape \(35, 2\)"),
        (36, names[:4], "one row for each entry of h.npy.json"),
        (36, [*names[:4], ["toy_e"]], "h.npy.json: must be a list of viewpoints as text, got "),
        (36, [*names[:4], "toy_b"], "h.npy.json: toy_b is there twice, at 1 and 4"),
        (36, {"toy_a": 0}, "h.npy.json: must be a list of viewpoints"),
    ):
        np.save(tmp_path / "h.npy", np.zeros((5, num_views, 2), np.float16))
        (tmp_path / "h.npy.json").write_text(json.dumps(listed))
        with pytest.raises(ValueError, match=message):
            FileFeatures(tmp_path / "h.npy", graphs, None)
    (tmp_path / "h.npy.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file '.*h.npy.json' with the viewpoints of h.npy; convert_"):
        FileFeatures(tmp_path / "h.npy", graphs, None)


def test_damaged_hdf5(tmp_path, views, graphs):
    h5py = pytest.importorskip("h5py", reason="needs the extra hdf5")

    for number, damaged in enumerate((h5py.SoftLink("/nowhere"), h5py.Empty("f4"), np.ones((36, WIDTH), int), "huge")):
        path = write_hdf5(tmp_path / f"{number}.hdf5", views)
        with h5py.File(path, "a") as file:
            del file["toy_c"]
            if isinstance(damaged, str):
                file.create_dataset("toy_c", (36, 2**40), "f4", chunks=(1, 1024))
            else:
                file["toy_c"] = damaged
        message = rf"{path.name}: .*toy_c"
        with pytest.raises(ValueError, match=message):
            FileFeatures(path, graphs, None)
        with pytest.raises(ValueError, match=message):
            convert_features(path, tmp_path / "out.npy")
        assert not (tmp_path / "out.npy").exists()


def test_headers_of_npy_that_confuse_numpy(tmp_path, graphs):
    (tmp_path / "f.npy.json").write_text("[]")
    for header in (
        b"{'descr': '<f2', 'fortran_order': False, 'shape': (-1, 36, 5), }",
        b"{'descr': '<f2', 'fortran_order': False, 'shape': (99999999999999999999, 36, 5), }",
        b"{'descr': '<f2', 'fortran_order': False, 'shape': (",
        b"(" * 500,
        b"{'descr': [], 'fortran_order': False, 'shape': (1,), }",
        b"'" * 3,
    ):
        (tmp_path / "f.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        with pytest.raises(ValueError, match=r"f\.npy: (is no \.npy of a whole array|must be an array of numbers)"):
            FileFeatures(tmp_path / "f.npy", graphs, None)


def test_missing_h5py(tmp_path, graphs, monkeypatch):
    (tmp_path / "f.hdf5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r'features in HDF5 need h5py: pip install "memenvs\[hdf5\]"'):
        FileFeatures(tmp_path / "f.hdf5", graphs, None)


def test_an_environment_observes_the_features_of_a_file(tmp_path, views, make):
    path = write_tsv(tmp_path / "f.tsv", views)
    env = make(features=str(path), panorama=True)
    observation, _ = env.reset(options={"instr_id": "7_0"})
    np.testing.assert_array_equal(observation["panorama"][:, :WIDTH], views["toy_a"])
    np.testing.assert_array_equal(observation["candidates"][0, :WIDTH], views["toy_a"][12])  # b lies straight ahead
    assert not observation["candidates"][2:].any()


def toy_graph() -> Graph:
    """Four viewpoints: from a, b lies 2 m to the north and c 3 m to the east; d is beside b."""
    position = np.array([[0, 0, 1.5], [0, 2, 1.5], [3, 0, 1.5], [0.5, 2, 1.5]])
    return Graph("house", tuple("abcd"), position, np.array([[0, 1], [0, 2], [1, 3]]))


#: Every viewpoint is visible, except d from a.
VISIBLE = np.arange(16).reshape(4, 4) != 3


def features_of(graph: Graph, names=((),) * 4, heights=None, *, is_visible=VISIBLE, size: int = 4096) -> np.ndarray:
    return compute_view_features(graph, ViewpointContent(names, is_visible, heights), size)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_views_are_weighted_sums_of_visible_names():
    """Weights in views of a, by the formula of `SyntheticFeatures`.

    b at 0 degrees has exp(-2 / 4) and c at 90 degrees exp(-3 / 4), times the cosine to the view to the 8th power.
    """
    seen = features_of(toy_graph(), ((), ("piano",), ("stove",), ("bed",)), size=20_000)[0]
    alone = np.eye(4, dtype=bool)
    codes = {
        name: features_of(toy_graph(), ((name,), (), (), ()), is_visible=alone, size=20_000)[0, 30]
        for name in ("piano", "stove", "bed")
    }
    np.testing.assert_allclose((seen**2).mean(1), 1)
    scale = math.hypot(0.3, 0.1)  # code of the viewpoint, and noise
    for view, piano, stove in ((12, 1, 0), (15, 0, 1), (13, 0.75**4, 0.25**4), (0, 0.75**4, 0), (18, 0, 0)):
        weights = {"piano": piano * math.exp(-2 / 4), "stove": stove * math.exp(-3 / 4), "bed": 0.0}
        norm = math.hypot(*weights.values(), scale)
        own = 0.09 / norm / math.hypot(1, scale)  # the code of viewpoint a is in both
        for name, weight in weights.items():
            expected = weight / norm / math.hypot(1, scale) + own
            assert cosine(seen[view], codes[name]) == pytest.approx(expected, abs=0.03), (view, name)


def test_names_have_the_same_code_in_all_houses_and_viewpoints_do_not():
    houses = (toy_graph(), Graph("elsewhere", tuple("abcd"), toy_graph().position, toy_graph().edges))
    full = [features_of(graph, (("piano", "red"), (), (), ()))[0, 5] for graph in houses]
    empty = [features_of(graph)[0, 5] for graph in houses]
    assert 0.9 < cosine(*full) < 0.99
    assert abs(cosine(*empty)) < 0.1


def test_views_include_geometry_if_heights_are_known():
    heights = np.full(4, 1.5)
    near = features_of(toy_graph(), heights=heights)
    assert not np.allclose(features_of(toy_graph()), near)
    position = toy_graph().position * [[1, 1, 1], [1, 3, 1], [1, 1, 1], [1, 1, 1]]
    far = features_of(Graph("house", tuple("abcd"), position, toy_graph().edges), heights=heights)
    assert not np.allclose(near[0, 12], far[0, 12])  # b is farther away
    np.testing.assert_allclose(near[0, 15], far[0, 15])  # c has not moved


def test_regions_and_objects_of_real_houses(tmp_path):
    folder = write_data(tmp_path)
    assert load_r2r(folder, "train").viewpoint_content(0).names == ((),) * 5
    (folder / "regions.json").unlink()
    with pytest.warns(UserWarning, match=r"no regions.json in .*: synthetic features show geometry alone"):
        assert load_r2r(folder, "train").viewpoint_content(0).names == ((),) * 5
    other = write_data(tmp_path / "other")
    panos, objects = {"0": ["a", "b", "x"], "1": ["c"]}, {"lamp": ["0", "1"], "bed": ["1"]}
    write_json(other / "regions.json", {"toy": {"region_panos": panos, "object_regions": objects}})
    content = load_r2r(other, "train").viewpoint_content(0)
    assert content.names == (*[("region toy 0", "lamp")] * 2, ("region toy 1", "lamp", "bed"), (), ())
    assert content.height is not None


def test_features_depend_on_nothing_that_was_computed_before():
    world = load_routes("val_unseen", 1)
    features = SyntheticFeatures(world, Graphs(world.graphs), 16)
    one = features.view_features(np.array([3]), np.array([0]))
    features.view_features(np.array([800, 3]), np.array([1, 2]))
    np.testing.assert_array_equal(features.view_features(np.array([3]), np.array([0])), one)
    assert one.dtype == np.float32
