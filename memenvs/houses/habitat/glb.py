"""Check of binary glTF files, because broken ones end the process in which habitat-sim runs.

Such a file has a JSON document and a chunk of bytes. A buffer view is a part of the chunk. An accessor reads a buffer
view as numbers. A mesh has primitives, which name the accessors of their positions and of the corners of triangles.
"""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.json_records import Field, parse_json

_FLOAT = 5126
_COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", _FLOAT: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_HEADER = 12  # bytes
_WHOLE = "a whole .glb file"


def check_glb(path: Path) -> None:
    """Check that a .glb file is whole, and that its meshes lie within it.

    Buffers in other files and compressed meshes are not read.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is broken, or has no mesh; the message names what.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    content = path.read_bytes()
    document, binary = _chunks(path, content)
    views = [_view(view, len(binary)) for view in document.optional_items("bufferViews")]
    accessors = [_accessor(accessor, views, binary) for accessor in document.optional_items("accessors")]
    meshes = document.optional_items("meshes")
    if not meshes:
        raise ValueError(f"{path}: it has no mesh")
    for mesh in meshes:
        for primitive in mesh["primitives"].items(1):
            _check_primitive(primitive, accessors)
    for node in document.optional_items("nodes"):
        if (number := node.get("mesh")) is not None:
            number.integer(len(meshes))


def glb_size(path: Path) -> np.ndarray | None:
    """Measure the box around all meshes along the axes of a .glb file.

    Takes the bounds that the format demands of positions, so that compressed meshes are measured too.

    Returns:
        float64, (3,); m. None where bounds are missing or no floats.

    Raises:
        ValueError: It is broken; the message names what.
    """
    document, _ = _chunks(path, path.read_bytes())
    nodes, meshes, accessors = (document.optional_items(key) for key in ("nodes", "meshes", "accessors"))
    children = {child.integer(len(nodes)) for node in nodes for child in node.optional_items("children")}
    waiting = [(number, np.eye(4)) for number in range(len(nodes)) if number not in children]
    corners = []
    for _ in nodes:  # each node is in one place
        if not waiting:
            break
        number, parent = waiting.pop()
        matrix = parent @ _transform(nodes[number])
        waiting += [(child.value, matrix) for child in nodes[number].optional_items("children")]
        if (mesh := nodes[number].get("mesh")) is None:
            continue
        for primitive in meshes[mesh.integer(len(meshes))]["primitives"].items():
            position = accessors[primitive["attributes"]["POSITION"].integer(len(accessors))]
            if position["componentType"].value != _FLOAT or position.get("min") is None or position.get("max") is None:
                return None
            box = np.array([_vector(position[key], 3) for key in ("min", "max")])
            corners += [matrix[:3, :3] @ corner + matrix[:3, 3] for corner in product(*box.T)]
    return np.ptp(corners, axis=0) if corners else None


def _transform(node: Field) -> np.ndarray:
    """Transformation of a node to its parent, float64 (4, 4)."""
    if (values := node.get("matrix")) is not None:
        return _vector(values, 16).reshape(4, 4).T
    matrix = np.eye(4)
    if (turn := node.get("rotation")) is not None:
        x, y, z, w = _vector(turn, 4)
        across = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        matrix[:3, :3] += 2 * (w * across + across @ across)
    if (scale := node.get("scale")) is not None:
        matrix[:3, :3] *= _vector(scale, 3)
    if (shift := node.get("translation")) is not None:
        matrix[:3, 3] = _vector(shift, 3)
    return matrix


def _vector(field: Field, count: int) -> np.ndarray:
    """Return a list of this many numbers, float64."""
    numbers = field.items(count, count)
    return np.array([number.number() for number in numbers])


def _chunks(path: Path, content: bytes) -> tuple[Field, bytes]:
    """The JSON document and the binary chunk."""
    if len(content) < _HEADER + 8 or content[:4] != b"glTF":
        raise ValueError(f"{path}: must be {_WHOLE}, got {len(content)} bytes that do not begin as one")
    version, length = struct.unpack_from("<II", content, 4)
    if version != 2 or length != len(content):
        raise ValueError(
            f"{path}: must be {_WHOLE} of version 2, got version {version} and {len(content)} of {length} bytes"
        )
    size, kind = struct.unpack_from("<I4s", content, _HEADER)
    end = _HEADER + 8 + size
    if kind != b"JSON" or end > length:
        raise ValueError(f"{path}: must be {_WHOLE}, got no JSON at its beginning")
    document = Field(parse_json(content[_HEADER + 8 : end].rstrip(b"\0"), str(path)), str(path))
    document.get("asset")  # raises if it is no object
    if length < end + 8:
        return document, b""
    size, _ = struct.unpack_from("<I4s", content, end)
    return document, content[end + 8 : end + 8 + size]


def _view(field: Field, size: int) -> tuple[int, int, int] | None:
    """First byte and length of a buffer view, and bytes from entry to entry, 0 if not given; None in another file."""
    first = field.get("byteOffset")
    begin = 0 if first is None else first.integer(size + 1)
    if field["buffer"].integer(2**31) > 0 or size == 0:
        return None
    length = field["byteLength"].integer(size - begin + 1)
    stride = field.get("byteStride")
    return begin, length, 0 if stride is None else stride.integer(253)


def _accessor(field: Field, views: list[tuple[int, int, int] | None], binary: bytes) -> np.ndarray | int:
    """Values of an accessor that may name corners: single unsigned integers. Of others only their number."""
    component, shape = field["componentType"].value, field["type"].value
    if component not in _COMPONENTS:
        raise field["componentType"].error(f"one of {list(_COMPONENTS)}")
    if shape not in _WIDTHS:
        raise field["type"].error(f"one of {list(_WIDTHS)}")
    count = field["count"].integer(2**31)
    number = field.get("bufferView")
    view = None if number is None else views[number.integer(len(views))]
    if view is None:
        return count
    begin, length, stride = view
    offset = field.get("byteOffset")
    offset_bytes = 0 if offset is None else offset.integer(length + 1)
    dtype = np.dtype(_COMPONENTS[component])
    size = dtype.itemsize * _WIDTHS[shape]
    if count and offset_bytes + (stride or size) * (count - 1) + size > length:
        raise field["count"].error(f"as many as the {length} bytes of its buffer view hold")
    if shape != "SCALAR" or dtype.kind != "u" or stride not in (0, size):
        return count
    return np.frombuffer(binary, dtype, count, begin + offset_bytes)


def _check_primitive(field: Field, accessors: list[np.ndarray | int]) -> None:
    """Check that a primitive has positions, and that the corners of its triangles are among them."""
    position = accessors[field["attributes"]["POSITION"].integer(len(accessors))]
    count = position if isinstance(position, int) else len(position)
    number = field.get("indices")
    if number is None:
        return
    corners: Any = accessors[number.integer(len(accessors))]
    if isinstance(corners, np.ndarray) and len(corners) and int(corners.max()) >= count:
        raise number.error(f"an accessor of numbers below {count}, the number of its positions")
