"""Make worlds by name."""

from __future__ import annotations

from memenvs.checks import choices_for
from memenvs.data import find_vln_folder
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.mp3d import load_cvdn, load_r2r
from memenvs.vln.worlds.procedural.dialogues import load_dialogues
from memenvs.vln.worlds.procedural.errands import load_errands
from memenvs.vln.worlds.procedural.rounds import load_rounds
from memenvs.vln.worlds.procedural.world import load_tours

WORLDS = ("procedural", "mp3d")


def make_graph_world(
    name: str,
    task: str,
    *,
    split: str,
    data_dir: str | None,
    legs: int = 1,
    laps: int = 0,
    supervision: str = "mixed",
    history: str = "all",
) -> GraphWorld:
    """Make the world with this name.

    Args:
        name: "procedural": houses and episodes from seeds. "mp3d": the real graphs and annotations of `data_dir`.
        task: "r2r" or "cvdn".
        split: "train", "val_seen" or "val_unseen", or another one of the world.
        data_dir: Folder of the files; None for $MEMENVS_DATA/vln.
        legs: Procedural: see `Tours`, and `Errands` of CVDN.
        laps: R2R, procedural: see `Rounds`; 0 for tours.
        supervision: CVDN: "mixed", "oracle" or "navigator"; see `Dialogue.supervised_path`.
        history: CVDN: "all", "last_exchange", "last_answer" or "target"; see `Dialogue.text`.

    Raises:
        FileNotFoundError: The files of the world are not there; the message lists the files and their folder.
        ValueError: The name or the split is unknown, or a file is broken.
    """
    if name not in WORLDS:
        raise ValueError(f"unknown world {name!r}; {choices_for(name, WORLDS)}")
    if name == "procedural":
        if task == "r2r":
            return load_rounds(split, laps) if laps else load_tours(split, legs)
        return load_dialogues(split, supervision, history) if legs == 1 else load_errands(split, history, legs)
    folder = find_vln_folder(data_dir)
    return load_r2r(folder, split) if task == "r2r" else load_cvdn(folder, split, supervision, history)
