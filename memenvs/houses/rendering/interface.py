"""Interface of simulators of homes: scenes, and renderers that draw them.

Worlds make both (`memenvs.houses.worlds.HouseWorld`), so that a task does not know which simulator draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from memenvs.houses.rendering.camera import Camera


class HomeScene(Protocol):
    """A home prepared for drawing by the renderers of its own world."""

    def relabel(self, labels: np.ndarray) -> HomeScene:
        """Return the scene with other classes: that of class k is `labels[k]`."""


class HomeRenderer(Protocol):
    """Renderer of N environments; our own `Renderer` describes arguments and errors."""

    num_envs: int

    def set_scene(self, env: int, scene: Any) -> None:
        """Give environment `env` another scene, of the renderer's own world."""

    def render(
        self,
        poses: np.ndarray,
        *,
        rgb: np.ndarray | None = None,
        depth: np.ndarray | None = None,
        semantic: np.ndarray | None = None,
        instance: np.ndarray | None = None,
        env_mask: np.ndarray | None = None,
        camera: Camera | None = None,
    ) -> None:
        """Render into the arrays that are given."""

    def close(self) -> None:
        """Stop what draws; a later `render` starts it again."""


class MakeRenderer(Protocol):
    """Makes renderers, such as the class `memenvs.houses.rendering.renderer.Renderer`."""

    def __call__(self, camera: Camera, num_envs: int, *, threads: int = 1) -> HomeRenderer:
        """Make a renderer of `num_envs` environments."""


def checked_image(name: str, array: np.ndarray, dtype: Any, shape: Sequence[int]) -> np.ndarray:
    """Return an array to draw into.

    Raises:
        ValueError: It has another type or shape, or is not C-contiguous and writeable.
    """
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != tuple(shape):
        got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} {tuple(shape)}, got {got}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError(f"{name} must be C-contiguous and writeable")
    return array
