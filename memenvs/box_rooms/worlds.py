"""The two worlds of tasks in plain rooms: our renderer, and the package Miniworld."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memenvs.checks import check_pair


@contextmanager
def explain_miniworld() -> Iterator[None]:
    """Say what Miniworld needs where it cannot be imported.

    Raises:
        ImportError: Miniworld is not installed, or there is no display.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            "world 'miniworld' needs the package miniworld; install it with: pip install 'memenvs[miniworld]'"
        ) from error
    except Exception as error:  # pyglet's own error for a missing display cannot be imported without a display
        raise ImportError(
            f"world 'miniworld' needs a display with OpenGL ({error}); without a screen, start with: xvfb-run -a"
        ) from error


def check_image_size(value: object) -> tuple[int, int]:
    """Convert the setting `image_size` to rows and columns.

    Raises:
        ValueError: It is not two integers from 8 to 512.
    """
    height, width = check_pair("image_size", value, "rows and columns")
    if not (8 <= height <= 512 and 8 <= width <= 512):
        raise ValueError(f"image_size must be from (8, 8) to (512, 512), got {(height, width)}")
    return height, width
