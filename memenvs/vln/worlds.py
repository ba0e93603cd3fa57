"""Worlds by name."""

from __future__ import annotations

from memenvs.checks import choices_for
from memenvs.vln.episodes import World
from memenvs.vln.mp3d import data_folder, load_cvdn, load_r2r

WORLDS = ("mp3d",)


def make_world(
    name: str, task: str, *, split: str, data_dir: str | None, supervision: str = "mixed", history: str = "all"
) -> World:
    """The world of this name.

    Args:
        name: "mp3d": the real graphs and annotations of `data_dir`.
        task: "r2r" or "cvdn".
        split: Such as "train", "val_seen" or "val_unseen".
        data_dir: Folder of the files; None for $MEMENVS_DATA/vln.
        supervision: CVDN: "mixed", "oracle" or "navigator"; see `Dialogue.supervised_path`.
        history: CVDN: "all", "last_exchange", "last_answer" or "target"; see `Dialogue.text`.

    Raises:
        FileNotFoundError: The files of the world are not there; the message says what to get and where to put it.
        ValueError: The name or the split is unknown, or a file is broken.
    """
    if name not in WORLDS:
        raise ValueError(f"unknown world {name!r}; {choices_for(name, WORLDS)}")
    folder = data_folder(data_dir)
    return load_r2r(folder, split) if task == "r2r" else load_cvdn(folder, split, supervision, history)
