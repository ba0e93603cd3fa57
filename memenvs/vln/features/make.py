"""Make features by name."""

from __future__ import annotations

from memenvs.vln.features.base import DEFAULT_SIZE, Features
from memenvs.vln.features.file_features import FileFeatures
from memenvs.vln.features.synthetic import SyntheticFeatures
from memenvs.vln.graph import Graphs
from memenvs.vln.worlds.base import GraphWorld


def make_features(name: str, world: GraphWorld, graphs: Graphs, size: int | None) -> Features | None:
    """Make the features with this name; None for "none", whose image part is zero.

    Args:
        name: "synthetic", "none" or the path of a file; see `FileFeatures`.
        world: The world of the houses.
        graphs: Its houses in one table.
        size: Size of a feature; None for 64, or for all numbers of the file.

    Raises:
        FileNotFoundError, ImportError, ValueError: See `FileFeatures`.
    """
    if name == "none":
        return None
    if name == "synthetic":
        return SyntheticFeatures(world, graphs, DEFAULT_SIZE if size is None else size)
    return FileFeatures(name, graphs, size)
