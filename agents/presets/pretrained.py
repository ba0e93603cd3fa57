"""Trained agents of this package, in a folder and on the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from memenvs.agents.algorithms import archive
from memenvs.agents.experiments.config import CONFIG, RunConfig, check_new, read_config, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, best_checkpoint
from memenvs.agents.experiments.evaluate import policy_from_checkpoint
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.hub import HUB, fetch
from memenvs.checks import choices_for
from memenvs.files import write_file
from memenvs.json_records import format_json

_WEIGHTS = Path(__file__).with_name("weights")
#: Agent -> checkpoint of a run, without what only training needs (`drop_training_state`). The studies `ext_objnav` and
#: `ext_objnav_pictures` have how each was trained.
PRETRAINED = {
    "extobjnav-small": _WEIGHTS / "extobjnav-small.zip",
    "extobjnav-small-pictures": _WEIGHTS / "extobjnav-small-pictures.zip",
}
#: Changes of the preset `extobjnav-small` with which an agent was trained. The second sees pictures of 64 x 48 alone;
#: a frozen encoder estimates symbolic observations from them.
_CHANGES: dict[str, list[tuple[str, Any]]] = {
    "extobjnav-small": [],
    "extobjnav-small-pictures": [
        ("env_kwargs.obs_mode", "rgb"),
        ("env_kwargs.image_size", [48, 64]),
        ("env_kwargs.encoder", "symbolic"),
    ],
}


def load_pretrained(name: str | PathLike[str], *, seed: int = 0, device: str = "auto") -> ActingPolicy:
    """Load a trained policy. Nothing in a file is executed.

    Args:
        name: A key of `PRETRAINED`; a folder that `save_to_folder` has written; the folder of a run; or
            "hf:ORGANISATION/NAME", with "@REVISION" if it must stay the same, on the Hugging Face Hub.
        seed: Of the actions that it draws.
        device: Where it runs: "auto", "cpu" or "cuda".

    Raises:
        FileNotFoundError: There is no such agent, or a file of it is missing.
        ValueError: No such name, its files are not whole, or it learned to predict.
        OSError: The Hub cannot be reached.
    """
    config, file = _find(name)
    return policy_from_checkpoint(file, replace(config, device=device), seed)


def pretrained_config(name: str | PathLike[str]) -> RunConfig:
    """Return the settings with which an agent was trained, those of its environment among them.

    Args:
        name: As in `load_pretrained`, which lists the errors.
    """
    return _find(name)[0]


def unpack_pretrained(name: str, folder: str | PathLike[str]) -> Path:
    """Make the folder of a run from an agent of this package, for `evaluate` and `record`.

    Args:
        name: A key of `PRETRAINED`.
        folder: Folder of the run; must not hold one. Training cannot resume in it.

    Returns:
        The folder.

    Raises:
        FileExistsError: The folder holds a run.
    """
    target = Path(folder)
    check_new(target)
    write_file(target / CHECKPOINT, PRETRAINED[name].read_bytes())
    write_file(
        target / CONFIG, format_json(pretrained_config(name).to_json()).encode()
    )  # last: now the folder holds a run
    return target


def _find(name: str | PathLike[str]) -> tuple[RunConfig, archive.File]:
    """Settings and checkpoint of an agent."""
    if str(name) in PRETRAINED:
        return with_overrides(find_preset("extobjnav-small"), _CHANGES[str(name)]), PRETRAINED[str(name)]
    folder = Path(name)
    if not str(name).startswith(HUB) and not folder.is_dir():
        raise ValueError(
            f"unknown pretrained agent {str(name)!r}; {choices_for(str(name), PRETRAINED)}; or a folder with an "
            f"agent, or {HUB}ORGANISATION/NAME"
        )
    folder = fetch(name)
    return read_config(folder), best_checkpoint(folder)
