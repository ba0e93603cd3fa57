"""Files of JSON and safetensors, several in one zip archive. Nothing in them is ever executed.

A file is written under a temporary name and renamed, so it is whole or not there.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from memenvs.files import write_file

FORMAT = 1


def write(path: str | PathLike[str], members: dict[str, bytes]) -> None:
    """Writes an archive of these members, whole or not at all."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # no time stamp: equal learners give equal files
    write_file(Path(path), buffer.getvalue())


def read(path: str | PathLike[str], required: tuple[str, ...]) -> dict[str, bytes]:
    """The members of a file, checked for completeness.

    Args:
        path: The file.
        required: Members that it must have.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not whole or not ours.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for name in required:
            if name not in members:
                raise ValueError(f"{path}: a checkpoint of this kind must have {list(required)}, {name!r} is missing")
        config = dict(json.loads(members["config.json"]))
    except (zipfile.BadZipFile, json.JSONDecodeError, UnicodeDecodeError, TypeError, EOFError) as error:
        raise ValueError(f"{path}: not a whole checkpoint ({error}); was it cut short?") from None
    if config.get("format") != FORMAT:
        raise ValueError(f"{path}: format must be {FORMAT}, got {config.get('format')}")
    return members


def read_json_member(
    path: str | PathLike[str], members: dict[str, bytes], name: str, keys: tuple[str, ...]
) -> dict[str, Any]:
    """A JSON member that has these keys."""
    try:
        data = json.loads(members[name])
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {name} is not JSON ({error}); was it cut short?") from None
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            raise ValueError(f"{path}: {name} lacks {key!r}")
    return data


def parse_config(path: str | PathLike[str], saved: dict[str, Any], config_type: type) -> Any:
    """The settings of a file; those that it lacks have their defaults."""
    known = [each.name for each in fields(config_type)]
    for name in saved:
        if name not in known:
            raise ValueError(f"{path}: config.json has a setting that this version does not know, {name!r}")
    try:
        return config_type(**saved)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: config.json: {error}") from None


def cpu_copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as safetensors takes them: on the CPU, contiguous, none a view of another."""
    return {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of Adam as named tensors: "<index of the parameter>.<name>"."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value) for index, entry in state.items() for name, value in entry.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, trained: list[nn.Parameter], tensors: dict[str, Tensor]) -> None:
    """Puts the state of Adam into an optimiser of these parameters; those that had no gradient yet have none."""
    begun = {key.partition(".")[0] for key in tensors}
    expected: dict[str, Tensor] = {}
    state: dict[int, dict[str, Tensor]] = {}
    for i, parameter in enumerate(trained):
        if str(i) in begun:
            moments = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}
            expected |= {f"{i}.{name}": like for name, like in moments.items()}
            state[i] = {name: tensors[f"{i}.{name}"] for name in moments if f"{i}.{name}" in tensors}
    check_tensors("optimizer.safetensors", tensors, expected)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def check_tensors(member: str, found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raises a ValueError that names the first tensor of a member that is missing, too many, or of another shape or dtype."""
    for name, like in expected.items():
        if name not in found:
            raise ValueError(f"{member}: does not fit the policy, {name!r} is missing")
        shape, dtype = tuple(like.shape), like.dtype
        if tuple(found[name].shape) != shape or found[name].dtype != dtype:
            got = f"{found[name].dtype} {tuple(found[name].shape)}"
            raise ValueError(f"{member}: does not fit the policy, {name!r} must be {dtype} {shape}, got {got}")
    for name in sorted(found):  # safetensors gives them in any order
        if name not in expected:
            raise ValueError(f"{member}: does not fit the policy, which has no {name!r}")
