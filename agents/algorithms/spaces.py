"""Gymnasium spaces as plain data, for checkpoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

#: Largest number of elements of a `Box` that is read from a file, a thousand times those of the largest image here.
MAX_ELEMENTS = 2**28


def space_to_json(space: spaces.Space) -> dict[str, Any]:
    """Convert a `Box`, `Discrete`, `MultiDiscrete`, `MultiBinary` or `Dict` space to plain data.

    Raises:
        ValueError: Another kind of space.
    """
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "spaces": {key: space_to_json(value) for key, value in space.spaces.items()}}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": space.n}
    if isinstance(space, spaces.Box):
        shape = list(space.shape)
        bounds = {"low": _bound_to_json(space.low), "high": _bound_to_json(space.high)}
        return {"kind": "Box", "shape": shape, "dtype": str(space.dtype), **bounds}
    raise ValueError(f"space must be a Box, Discrete, MultiDiscrete, MultiBinary or Dict, got {space}")


def _bound_to_json(bound: np.ndarray) -> Any:
    """One number if all elements are equal, which keeps images small; else nested lists."""
    is_uniform = bound.size > 0 and (bound == bound.flat[0]).all()
    return float(bound.flat[0]) if is_uniform else bound.astype(float).tolist()


def space_from_json(data: dict[str, Any]) -> spaces.Space:
    """Convert the data of `space_to_json` back to a space.

    Raises:
        ValueError: An unknown kind of space, or one that is too large.
    """
    kind = data["kind"]
    if kind == "Dict":
        return spaces.Dict({key: space_from_json(value) for key, value in data["spaces"].items()})
    if kind == "Discrete":
        return spaces.Discrete(data["n"], start=data["start"])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(data["nvec"], start=data["start"])
    if kind == "MultiBinary":
        return spaces.MultiBinary(data["n"])
    if kind == "Box":
        shape = tuple(data["shape"])
        if math.prod(shape) > MAX_ELEMENTS:
            raise ValueError(f"a Box must have at most {MAX_ELEMENTS} elements, got the shape {shape}")
        dtype = np.dtype(data["dtype"])
        low, high = (np.broadcast_to(np.array(data[name]), shape).astype(dtype) for name in ("low", "high"))
        return spaces.Box(low, high, shape, dtype)  # type: ignore[arg-type,unused-ignore]
    raise ValueError(
        f"unknown kind of space {kind!r}; choose from 'Dict', 'Discrete', 'MultiDiscrete', 'MultiBinary', 'Box'"
    )
