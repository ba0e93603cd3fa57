"""Graphs of Matterport3D's houses, from the simulator's JSON files or packed in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memenvs.array_files import read_npz
from memenvs.data import MP3D_HELP
from memenvs.files import cached_until_changed, list_files
from memenvs.json_records import Field, read_json
from memenvs.vln.graph import Graph

FOLDER = "connectivity"  # of graphs that are not packed
#: Arrays of the packed file: kinds of numbers, and shape; S scans, V viewpoints, P and Q pairs of viewpoints.
_PACKED = {
    "scan_ids": ("U", ("S",)),
    "scan_offsets": ("iu", ("S + 1",)),
    "viewpoint_ids": ("S", ("V",)),
    "pose": ("fiu", ("V", 16)),
    "height": ("fiu", ("V",)),
    "included": ("b", ("V",)),
    "unobstructed_ptr": ("iu", ("V + 1",)),
    "unobstructed_idx": ("iu", ("P",)),
    "visible_ptr": ("iu", ("V + 1",)),
    "visible_idx": ("iu", ("Q",)),
}


@dataclass(frozen=True, eq=False)
class Scan:
    """Graph and visibility of one house; viewpoints that are not included are dropped.

    Attributes:
        graph: The navigation graph.
        height: float64, (V,); estimated height of the camera above the floor, m.
        visible: bool, (V, V); [u, v]: v is visible from u. Not symmetric.
    """

    graph: Graph
    height: np.ndarray
    visible: np.ndarray


@cached_until_changed(4, FOLDER)
def read_scans(folder: Path) -> dict[str, Scan]:
    """Read all houses of `connectivity.npz` or `connectivity/*_connectivity.json`, by name.

    Raises:
        FileNotFoundError: There are no graphs.
        ValueError: A file is broken; the message names it and the scan or the array.
    """
    packed = folder / "connectivity.npz"
    if packed.is_file():
        return _unpack(packed, read_npz(packed))
    paths = list_files(folder / FOLDER, "*_connectivity.json")
    if not paths:
        raise FileNotFoundError(
            f"no connectivity.npz and no connectivity/*_connectivity.json in {str(folder)!r}. {MP3D_HELP}"
        )
    return {path.name.removesuffix("_connectivity.json"): _read_scan(path) for path in paths}


def _unpack(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, Scan]:
    """Scans of the packed file, whose rows are the viewpoints of all scans in turn."""
    _check_packed(path, arrays)

    def pairs(what: str, first: int, last: int) -> np.ndarray:
        """Expand a relation between the viewpoints of a scan from CSR to bool, (V, V)."""
        starts, related = arrays[f"{what}_ptr"][first : last + 1], np.zeros((last - first, last - first), bool)
        others = arrays[f"{what}_idx"][starts[0] : starts[-1]]
        if others.size and (others.min() < 0 or others.max() >= last - first):
            raise ValueError(f"{what}_idx must be in 0 ... {last - first - 1}, got {others.min()} ... {others.max()}")
        related[np.repeat(np.arange(last - first), np.diff(starts)), others] = True
        return related

    scans = {}
    for k, name in enumerate(arrays["scan_ids"].tolist()):
        first, last = arrays["scan_offsets"][k : k + 2].tolist()
        rows = slice(first, last)
        try:
            scans[name] = _make_scan(
                name,
                [viewpoint.decode() for viewpoint in arrays["viewpoint_ids"][rows].tolist()],
                arrays["pose"][rows],
                arrays["height"][rows],
                arrays["included"][rows],
                pairs("unobstructed", first, last),
                pairs("visible", first, last),
            )
        except ValueError as error:
            raise ValueError(f"{path}: scan {name}: {error}") from error
    return scans


def _check_packed(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Raise a ValueError if an array of the packed file is missing or does not fit the others."""
    for name, (kinds, shape) in _PACKED.items():
        if name not in arrays:
            raise ValueError(f"{path}: holds no array {name!r}")
        array = arrays[name]
        if array.dtype.kind not in kinds or array.ndim != len(shape):
            raise ValueError(
                f"{path}: {name} must be of kind {kinds} and shape {shape}, got {array.dtype} {array.shape}"
            )
    sizes = {"S": len(arrays["scan_ids"]), "V": len(arrays["viewpoint_ids"])}
    sizes |= {"P": len(arrays["unobstructed_idx"]), "Q": len(arrays["visible_idx"])}
    sizes |= {f"{axis} + 1": count + 1 for axis, count in sizes.items()}
    for name, (_, shape) in _PACKED.items():
        expected = tuple(size if isinstance(size, int) else sizes[size] for size in shape)
        if arrays[name].shape != expected:
            raise ValueError(f"{path}: {name} must have the shape {expected}, got {arrays[name].shape}")
    if len(set(arrays["scan_ids"].tolist())) < sizes["S"]:
        raise ValueError(f"{path}: scan_ids must be different")
    for name, last in (("scan_offsets", "V"), ("unobstructed_ptr", "P"), ("visible_ptr", "Q")):
        starts = arrays[name].astype(np.int64)
        if starts[0] != 0 or starts[-1] != sizes[last] or (np.diff(starts) < 0).any():
            raise ValueError(f"{path}: {name} must go from 0 to {sizes[last]} and never down")
    if not np.isfinite(arrays["height"]).all():
        raise ValueError(f"{path}: height must be finite")


def _read_scan(path: Path) -> Scan:
    rows = read_json(path).items()

    def flags(row: Field, key: str) -> list[bool]:
        values = [bool(flag.value) for flag in row[key].items()]
        if len(values) != len(rows):
            raise row[key].error(f"a list of {len(rows)}, one for each viewpoint")
        return values

    pose = [[number.number() for number in row["pose"].items(16)[:16]] for row in rows]
    content = (
        path.name.removesuffix("_connectivity.json"),
        [row["image_id"].text() for row in rows],
        np.array(pose, np.float64).reshape(-1, 16),
        np.array([row["height"].number() for row in rows], np.float64),
        np.array([bool(row["included"].value) for row in rows], bool),
        np.array([flags(row, "unobstructed") for row in rows], bool).reshape(len(rows), -1),
        np.array([flags(row, "visible") for row in rows], bool).reshape(len(rows), -1),
    )
    try:
        return _make_scan(*content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _make_scan(
    name: str,
    viewpoints: Sequence[str],
    pose: np.ndarray,
    height: np.ndarray,
    included: np.ndarray,
    unobstructed: np.ndarray,
    visible: np.ndarray,
) -> Scan:
    """Make a scan of its included viewpoints; `pose` is float, (V, 16): 4 x 4 matrices row by row."""
    kept = np.flatnonzero(included)
    joined = (unobstructed & unobstructed.T)[np.ix_(kept, kept)]
    edges = np.argwhere(np.triu(joined, 1))
    position = pose[kept][:, [3, 7, 11]]  # the last column of each matrix
    graph = Graph(name, tuple(viewpoints[k] for k in kept.tolist()), position, edges)
    return Scan(graph, height[kept], visible[np.ix_(kept, kept)])
