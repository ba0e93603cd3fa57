"""Actions of a task: a number of a `Discrete` space, or a vector of a `Box`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

#: Space of one action: `Discrete` from 0, or a bounded float32 `Box` with one axis.
ActionSpace = gym.spaces.Discrete | gym.spaces.Box


def check_action_space(name: str, space: Any) -> None:
    """Check the space of a task's actions.

    Args:
        name: Name of the attribute, for the error message.
        space: The space.

    Raises:
        TypeError: It is neither a `Discrete` nor a `Box`.
        ValueError: A `Discrete` does not start at 0, or a `Box` is not float32 with one axis and with bounds.
    """
    if not isinstance(space, ActionSpace):
        raise TypeError(f"{name} must be a Discrete or a Box, got {space!r}")
    if isinstance(space, gym.spaces.Discrete):
        if space.start != 0:
            raise ValueError(f"{name} must start at 0, got {space}")
    elif space.dtype != np.float32 or len(space.shape) != 1 or not space.is_bounded():
        raise ValueError(f"{name} must be a float32 Box with one axis and with bounds, got {space}")


def check_actions(space: ActionSpace, actions: Any, num_envs: int) -> np.ndarray:
    """Check the actions of N environments, and convert them to the type of the space.

    Args:
        space: Space of one action.
        actions: One action for each environment.
        num_envs: N.

    Returns:
        int64, (N,), or float32, (N, A).

    Raises:
        TypeError: Actions are not integers, or for a `Box` no numbers.
        ValueError: Actions have a wrong shape or are out of range.
    """
    actions = np.asarray(actions)
    expected = (num_envs, *(space.shape or ()))
    if actions.shape != expected:
        raise ValueError(f"actions must have the shape {expected}, got {actions.shape}")
    if isinstance(space, gym.spaces.Discrete):
        if actions.dtype.kind not in "iu":
            raise TypeError(f"actions must be integers, got {actions.dtype}")
        bad = (actions < 0) | (actions >= space.n)
        if bad.any():
            raise ValueError(f"actions must be in 0 ... {space.n - 1}, got {actions[bad].tolist()}")
        return actions.astype(np.int64, copy=False)
    if actions.dtype.kind not in "iuf":
        raise TypeError(f"actions must be numbers, got {actions.dtype}")
    bad = ~((actions >= space.low) & (actions <= space.high))  # also where it is NaN
    if bad.any():
        first = tuple(np.argwhere(bad)[0].tolist())
        low, high = space.low[first[1]], space.high[first[1]]
        raise ValueError(f"actions must be in {low:g} ... {high:g}, got {actions[first]} at {list(first)}")
    return actions.astype(np.float32, copy=False)


def draw_actions(space: ActionSpace, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw actions uniformly.

    Args:
        space: Space of one action.
        shape: Number of actions, N, or shape of their array.
        rng: Source of randomness.

    Returns:
        int64, (N,), or float32, (N, A); with a shape in place of N, if one is given.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(space.n, size=shape)
    drawn = rng.random((*shape, *space.low.shape), dtype=np.float32)
    return np.minimum(space.low + (space.high - space.low) * drawn, space.high)  # rounding may pass the bound
