"""Random damage to files: flipped bits, missing ends, swapped members, edited JSON."""

import copy
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    3,
    10**6,
    2**31,
    2**63,
    10**30,
    -(2**63) - 1,
    0.5,
    -1e308,
    1e308,
    1e-320,
    float("nan"),
    float("inf"),
    "",
    "0",
    "none",
    "\x00",
    "é" * 300,
    [],
    [0],
    [[]],
    {},
    {"a": 1},
    {"": None},
)
"""Values that take the place of a value in JSON."""


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip one to four bits."""
    out = bytearray(data)
    for position in rng.integers(len(out), size=rng.integers(1, 5)):
        out[position] ^= 1 << int(rng.integers(8))
    return bytes(out)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut the end off."""
    return data[: int(rng.integers(len(data)))]


def move_block(data: bytes, rng: np.random.Generator) -> bytes:
    """Take a block out and put it in at another place."""
    begin, end = sorted(int(each) for each in rng.integers(len(data), size=2))
    rest = data[:begin] + data[end:]
    at = int(rng.integers(len(rest) + 1))
    return rest[:at] + data[begin:end] + rest[at:]


def edit_json(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace, drop, rename, add or nest a value of a JSON document."""
    root = [json.loads(data)]
    places: list[tuple[Any, Any]] = []  # (container, key)

    def visit(container: Any, key: Any) -> None:
        places.append((container, key))
        value = container[key]
        for inner in (
            list(value) if isinstance(value, dict) else range(min(len(value), 8)) if isinstance(value, list) else ()
        ):
            visit(value, inner)

    visit(root, 0)
    for _ in range(int(rng.integers(1, 3))):
        container, key = places[int(rng.integers(len(places)))]
        if key not in (container if isinstance(container, dict) else range(len(container))):
            continue  # dropped by the edit before
        kind = int(rng.integers(6))
        if kind == 0 and container is not root:
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container[str(key) + "x"] = container.pop(key)
        elif kind == 2 and isinstance(container[key], (list, dict)):
            value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
            if isinstance(container[key], list):
                container[key].append(value)
            else:
                container[key]["new"] = value
        elif kind == 3:
            for _ in range(int(rng.choice([1, 90, 3000]))):
                container[key] = [container[key]]
        else:
            container[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    try:
        return json.dumps(root[0]).encode()
    except RecursionError:
        return b"[" * 3000 + b"]" * 3000


def members_of(data: bytes) -> dict[str, bytes]:
    """Members of a zip file, name -> content."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of these members, with correct checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def damage_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage one member of a zip file, and write the file again with correct checksums."""
    members = members_of(data)
    name, other = (str(each) for each in rng.choice(list(members), 2, replace=len(members) < 2))
    kind = int(rng.integers(8))
    if kind == 0:
        members[name], members[other] = members[other], members[name]
    elif kind == 1:
        del members[name]
    elif kind == 2:
        members[name + "x"] = members.pop(name)
    elif kind == 3:
        members[name] = b""
    else:
        damage: Callable[[bytes, np.random.Generator], bytes]
        damage = (flip_bits, cut, move_block, flip_bits)[kind - 4]
        members[name] = damage(members[name], rng)
    return zipped(members)


def edit_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Edit a JSON member of a zip file, and write the file again with correct checksums."""
    members = members_of(data)
    name = str(rng.choice([each for each in members if each.endswith(".json")]))
    return zipped({**members, name: edit_json(members[name], rng)})
