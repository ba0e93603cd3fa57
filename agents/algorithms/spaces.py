"""Spaces of Gymnasium as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


def space_to_json(space: spaces.Space) -> dict[str, Any]:
    """A `Box`, `Discrete`, `MultiDiscrete`, `MultiBinary` or `Dict` space as plain data.

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
        bounds = {}
        for name, bound in (("low", space.low), ("high", space.high)):
            uniform = bound.size > 0 and (bound == bound.flat[0]).all()
            values = float(bound.flat[0]) if uniform else bound.astype(float).tolist()
            bounds[name] = values
        return {"kind": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
    raise ValueError(f"space must be a Box, Discrete, MultiDiscrete, MultiBinary or Dict, got {space}")


def space_from_json(data: dict[str, Any]) -> spaces.Space:
    """The inverse of `space_to_json`.

    Raises:
        ValueError: An unknown kind.
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
        shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
        low, high = (np.broadcast_to(np.array(data[name]), shape).astype(dtype) for name in ("low", "high"))
        return spaces.Box(low, high, shape, dtype)  # type: ignore[arg-type,unused-ignore]
    raise ValueError(
        f"unknown kind of space {kind!r}; choose from 'Dict', 'Discrete', 'MultiDiscrete', 'MultiBinary', 'Box'"
    )
