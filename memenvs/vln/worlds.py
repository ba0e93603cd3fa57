"""Worlds by name."""

from __future__ import annotations

from memenvs.vln.episodes import World

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
        ValueError: The split is unknown, or a file is broken.
    """
    from memenvs.vln.mp3d import Mp3dCVDN, Mp3dR2R

    if task == "r2r":
        return Mp3dR2R.load(data_dir, split)
    return Mp3dCVDN.load(data_dir, split, supervision, history)
