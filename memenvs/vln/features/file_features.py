"""Image features from your files: TSV, HDF5, or memory-mapped arrays."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from memenvs.array_files import map_npy
from memenvs.files import atomic_replace, write_file
from memenvs.json_records import parse_json, read_lines
from memenvs.vln.features.base import Features
from memenvs.vln.graph import NUM_VIEWS, Graphs

TSV, HDF5, ARRAY = (".tsv", ".tsv.gz"), (".hdf5", ".h5"), (".npy",)
#: Endings of feature files.
ENDINGS = (*TSV, *HDF5, *ARRAY)
_COLUMNS = ("scanId", "viewpointId", "image_w", "image_h", "vfov", "features")
_LONGEST_LINE = 2**27  # characters
_WIDEST = 2**20  # numbers of a view
_CHECKED_AT_ONCE = 256  # viewpoints


class FileFeatures(Features):
    """Features of a file, kept as float16.

    Formats:
        TSV: tab-separated without a header: scan, viewpoint, width, height, field of view, base64 of 36 x D
            little-endian float32, as `ResNet-152-imagenet.tsv` and `ResNet-152-places365.tsv`; any width.
        HDF5 (`.hdf5`, `.h5`): a dataset `SCAN_VIEWPOINT` of 36 x W per viewpoint; needs the extra hdf5.
        NPY: output of `convert_features`; memory-mapped.

    Args:
        path: The file.
        graphs: The houses whose viewpoints the file must contain.
        size: D; the first D numbers of each view are used, since some files append logits to features. None for all.

    Raises:
        FileNotFoundError: The file, or the list of viewpoints beside a .npy, is not there.
        ImportError: h5py is not installed.
        ValueError: The file is broken; a viewpoint is missing or listed twice, does not have 36 views, differs in width
            or is not finite; or features are narrower than `size`. The message names the file and the record.
    """

    def __init__(self, path: str | Path, graphs: Graphs, size: int | None) -> None:
        path = Path(path)
        keys = [f"{graph.name}_{viewpoint}" for graph in graphs.graphs for viewpoint in graph.viewpoints]
        if not path.is_file():
            raise FileNotFoundError(f"no file {str(path)!r} with features")
        if path.name.endswith(ARRAY):
            self._table, self._row = _map_array(path, keys)
        else:
            self._table, self._row = _collect(path, keys), np.arange(len(keys))
        width = self._table.shape[2]
        if size is not None and size > width:
            raise ValueError(f"{path}: features have {width} numbers, feature_size requests {size}")
        self.size = width if size is None else size
        self._check(path, keys)

    def view_features(self, node: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Features of views; see `Features`."""
        return self._table[self._row[node], view, : self.size].astype(np.float32)

    def _check(self, path: Path, keys: list[str]) -> None:
        for first in range(0, len(keys), _CHECKED_AT_ONCE):
            part = np.asarray(self._table[self._row[first : first + _CHECKED_AT_ONCE], :, : self.size])
            is_finite = np.isfinite(part).all((1, 2))
            if not is_finite.all():
                raise ValueError(f"{path}: features of {keys[first + int((~is_finite).argmax())]} are not finite")


def convert_features(source: str | Path, target: str | Path) -> int:
    """Convert a TSV or HDF5 file to a float16 array that can be memory-mapped.

    Args:
        source: `.tsv`, `.tsv.gz`, `.hdf5` or `.h5`.
        target: The array, (N, 36, D), `.npy`. Its viewpoints are written to `TARGET.json`. Neither file is ever
            partial.

    Returns:
        N.

    Raises:
        FileNotFoundError: `source` is not there.
        ValueError: A name has another ending, or the file is broken; see `FileFeatures`.
    """
    source, target = Path(source), Path(target)
    if not target.name.endswith(ARRAY):
        raise ValueError(f"target must end with .npy, got {str(target)!r}")
    if not source.is_file():
        raise FileNotFoundError(f"no file {str(source)!r} with features")
    keys = [key for key, _ in _read(source, None)]  # first pass: count them, since an array file begins with its shape
    if not keys:
        raise ValueError(f"{source}: there are no features in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replace(target) as temporary:
        array: np.memmap | None = None
        for row, (_, views) in enumerate(_read(source, None)):
            if array is None:
                array = np.lib.format.open_memmap(temporary, "w+", np.float16, (len(keys), *views.shape))
            array[row] = _half(views)
        assert array is not None
        array.flush()
        del array
    write_file(_list_beside(target), json.dumps(keys).encode())
    return len(keys)


def _collect(path: Path, keys: list[str]) -> np.ndarray:
    """Features of the viewpoints `keys`, float16, (V, 36, W)."""
    number = {key: k for k, key in enumerate(keys)}
    present = np.zeros(len(keys), bool)
    table: np.ndarray | None = None
    for key, views in _read(path, number):
        if table is None:
            table = np.zeros((len(keys), *views.shape), np.float16)
        table[number[key]] = _half(views)
        present[number[key]] = True
    _check_all_there(path, keys, present)
    assert table is not None
    return table


def _map_array(path: Path, keys: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Map a .npy file; returns the array and the row of each viewpoint."""
    beside = _list_beside(path)
    if not beside.is_file():
        raise FileNotFoundError(
            f"no file {str(beside)!r} with the viewpoints of {path.name}; convert_features writes both"
        )
    array, listed = map_npy(path), parse_json(beside.read_bytes(), str(beside))
    if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
        raise ValueError(f"{beside}: must be a list of viewpoints as text, got {str(listed)[:80]}")
    if array.ndim != 3 or array.dtype.kind != "f" or len(array) != len(listed):
        raise ValueError(
            f"{path}: must be an array of numbers, one row for each entry of {beside.name}, "
            f"got {array.dtype} {array.shape}"
        )
    if not _is_views(array.shape[1:]):
        raise _shape_error(path, "viewpoints", array.shape[1:])
    number: dict[str, int] = {}
    for k, key in enumerate(listed):
        if number.setdefault(key, k) != k:
            raise ValueError(f"{beside}: {key} is there twice, at {number[key]} and {k}")
    row = np.array([number.get(key, -1) for key in keys])
    _check_all_there(beside, keys, row >= 0)
    return array, row


def _half(views: np.ndarray) -> np.ndarray:
    """Convert to float16. Overflow becomes infinite, which is refused when the file is used."""
    with np.errstate(over="ignore"):
        return views.astype(np.float16)


def _list_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _check_all_there(path: Path, keys: list[str], present: np.ndarray) -> None:
    if not present.all():
        first = keys[int((~present).argmax())]
        hint = "" if present.any() else "; the file has no viewpoint of this world, so it belongs to another one"
        raise ValueError(
            f"{path}: {int((~present).sum())} of {len(keys)} viewpoints are missing, the first is {first}{hint}"
        )


def _read(path: Path, selected: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Read (`SCAN_VIEWPOINT`, features (36, W)) pairs of the selected viewpoints, or of all.

    W is checked to be the same for all of them.
    """
    width: int | None = None
    seen: set[str] = set()
    for key, views in _read_tsv(path, selected) if path.name.endswith(TSV) else _read_hdf5(path, selected):
        if key in seen:
            raise ValueError(f"{path}: {key} is there twice")
        if width is not None and views.shape[1] != width:
            raise ValueError(f"{path}: {key} has {views.shape[1]} numbers for each view, those before it {width}")
        width = views.shape[1]
        seen.add(key)
        yield key, views


def _is_views(shape: tuple[int, ...] | None) -> bool:
    """True for the shape of the views of a viewpoint; None is the shape of no array."""
    return shape is not None and len(shape) == 2 and shape[0] == NUM_VIEWS and 1 <= shape[1] <= _WIDEST


def _shape_error(path: Path, name: str, shape: tuple[int, ...] | None) -> ValueError:
    return ValueError(f"{path}: {name} must have {NUM_VIEWS} views of 1 to {_WIDEST} numbers, got the shape {shape}")


def _read_tsv(path: Path, selected: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    view_bytes = 0  # of the viewpoint before
    for line, text in read_lines(path, _LONGEST_LINE):
        row = text.rstrip("\r\n").split("\t")
        if len(row) != len(_COLUMNS):
            raise ValueError(f"{path}: line {line} has {len(row)} columns, not {len(_COLUMNS)} ({', '.join(_COLUMNS)})")
        key = f"{row[0]}_{row[1]}"
        if selected is not None and key not in selected:
            continue
        try:
            data = base64.b64decode(row[5], validate=True)
        except ValueError as error:
            raise ValueError(f"{path}: line {line}, {key}: features are not base64: {error}") from error
        if not data or len(data) % (NUM_VIEWS * 4):
            views = f", {len(data) // view_bytes} views" if view_bytes and len(data) % view_bytes == 0 else ""
            raise ValueError(
                f"{path}: line {line}, {key} must have {NUM_VIEWS} views of float32, got {len(data)} bytes{views}"
            )
        view_bytes = len(data) // NUM_VIEWS
        yield key, np.frombuffer(data, "<f4").reshape(NUM_VIEWS, -1)


def _read_hdf5(path: Path, selected: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError('features in HDF5 need h5py: pip install "memenvs[hdf5]"') from error
    try:
        file = h5py.File(path, "r")
        keys = list(file) if selected is None else [key for key in selected if key in file]
    except Exception as error:  # h5py raises many kinds where a file is damaged, also below
        raise ValueError(f"{path}: is no whole HDF5 file ({error})") from error
    with file:
        for key in keys:
            try:
                dataset = file[key]
                is_numbers = isinstance(dataset, h5py.Dataset) and dataset.dtype.kind == "f"
                shape = dataset.shape if is_numbers else None
                views = dataset[()] if _is_views(shape) else None
            except Exception as error:
                raise ValueError(f"{path}: {key} cannot be read ({error})") from error
            if not is_numbers:
                raise ValueError(f"{path}: {key} is no dataset of floating point numbers")
            if views is None:
                raise _shape_error(path, key, shape)
            yield key, views
