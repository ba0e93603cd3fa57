"""Archives: JSON and safetensors files in one zip file. Reading one executes nothing.

A file is written under a temporary name and renamed, so it is complete or not there. As in Stable-Baselines3, a name
without a suffix gets `.zip`, and an open binary file can stand in place of a name.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn

from memenvs import json_records
from memenvs.files import write_file
from memenvs.json_records import MAX_RATIO, MIN_UNPACKED

FORMAT = 1
"""Number of the format, in `config.json` of each archive."""

File = str | PathLike[str] | IO[bytes]
"""Name of an archive, with or without its suffix `.zip`, or an open binary file such as `io.BytesIO`."""


def write(path: File, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    """Write an archive of these members, name -> content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)  # without a time stamp: equal learners give equal files
            archive.writestr(info, data, compression)
    if isinstance(path, (str, PathLike)):
        path = Path(path)
        write_file(path if path.suffix else path.with_suffix(".zip"), buffer.getvalue())
    else:
        path.write(buffer.getvalue())


def read(path: File, required: Iterable[str], is_known: Callable[[str], bool] | None = None) -> dict[str, bytes]:
    """Read the members of an archive, name -> content.

    Args:
        path: The file.
        required: Members that it must have.
        is_known: Whether a member of that name is read; None: the required ones are. Others are left in the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short or not an archive of this format.
    """
    data = _content(path)
    is_read = is_known or set(required).__contains__
    problem = ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if is_read(name)]
            unpacked = sum(archive.getinfo(name).file_size for name in names)
            if "_stable_baselines3_version" in archive.namelist():
                problem = "is a model of Stable-Baselines3 and must be one of this package (memenvs.agents)"
            elif len(names) > len(set(names)):
                problem = "has two members of one name, so it is no checkpoint"
            elif unpacked > max(MIN_UNPACKED, MAX_RATIO * len(data)):
                problem = f"unpacks to more than {MAX_RATIO} times its size, so it is no checkpoint"
            else:
                members = {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, ValueError, LookupError) as error:
        problem = f"not a whole checkpoint ({error}); was it cut short?"
    if problem:
        raise ValueError(f"{path}: {problem}")
    require(path, members, required)
    config = parse_json(path, members, "config.json")
    if config.get("format") != FORMAT:
        raise ValueError(f"{path}: format must be {FORMAT}, got {config.get('format')}")
    return members


def require(path: File, members: dict[str, bytes], names: Iterable[str]) -> None:
    """Raise a ValueError if an archive lacks one of these members."""
    for name in names:
        if name not in members:
            raise ValueError(f"{path}: a checkpoint of this kind must have {list(names)}, {name!r} is missing")


def _content(path: File) -> bytes:
    """Read a whole file; a FileNotFoundError if there is none of this name, with or without `.zip`."""
    if not isinstance(path, (str, PathLike)):
        path.seek(0)
        return path.read()
    for file in (Path(path), Path(f"{path}.zip")):
        if file.is_file():
            return file.read_bytes()
    raise FileNotFoundError(f"no checkpoint at {path}")


def parse_json(path: File, members: dict[str, bytes], name: str, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Parse a JSON member.

    Raises:
        ValueError: It is not a JSON object or lacks one of these keys.
    """
    data = json_records.parse_json(members[name], f"{path}: {name}")
    if not isinstance(data, dict):
        raise ValueError(f"{path}: {name} must be a JSON object, got {type(data).__name__}")
    for key in keys:
        if key not in data:
            raise ValueError(f"{path}: {name} lacks {key!r}")
    return data


def parse_config(path: File, saved: dict[str, Any], config_type: type) -> Any:
    """Make a config of saved settings; settings newer than the file get their defaults.

    Args:
        path: The file, for messages.
        saved: Settings by name.
        config_type: Class of the config, a dataclass.

    Raises:
        ValueError: A setting is unknown or not allowed.
    """
    names = [field.name for field in fields(config_type)]
    if not isinstance(saved, dict):
        raise ValueError(f"{path}: config.json: the settings must be an object, got {saved!r}")
    for name in saved:
        if name not in names:
            raise ValueError(f"{path}: config.json has a setting that this version does not know, {name!r}")
    try:
        return config_type(**saved)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: config.json: {error}") from None


def cpu_copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors as safetensors needs them: on the CPU, contiguous, and none shares memory."""
    return {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of Adam as named tensors: "INDEX OF THE PARAMETER.NAME" -> tensor."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value) for index, entry in state.items() for name, value in entry.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, trained: list[nn.Parameter], tensors: dict[str, Tensor]) -> None:
    """Restore the state of Adam from named tensors.

    Args:
        optimizer: Optimizer of the parameters.
        trained: Parameters in the order of the optimizer. Those that had no gradient yet have no tensors.
        tensors: As `optimizer_tensors` returns them.

    Raises:
        ValueError: The tensors do not fit the parameters.
    """
    with_state = {key.partition(".")[0] for key in tensors}
    expected: dict[str, Tensor] = {}
    state: dict[int, dict[str, Tensor]] = {}
    for i, parameter in enumerate(trained):
        if str(i) in with_state:
            entries = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}  # shapes to expect
            expected |= {f"{i}.{name}": like for name, like in entries.items()}
            state[i] = {name: tensors[f"{i}.{name}"] for name in entries if f"{i}.{name}" in tensors}
    check_tensors("optimizer.safetensors", tensors, expected)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def check_tensors(member: str, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise a ValueError that names the first tensor that does not fit.

    Args:
        member: Name of the archive's member, for the message.
        tensors: Tensors of the member.
        expected: Tensors with the names, shapes and dtypes that it must have.
    """
    for name, like in expected.items():
        if name not in tensors:
            raise ValueError(f"{member}: does not fit the policy, {name!r} is missing")
        shape = tuple(like.shape)
        if tuple(tensors[name].shape) != shape or tensors[name].dtype != like.dtype:
            got = f"{tensors[name].dtype} {tuple(tensors[name].shape)}"
            raise ValueError(f"{member}: does not fit the policy, {name!r} must be {like.dtype} {shape}, got {got}")
    for name in sorted(tensors):  # safetensors gives them in any order
        if name not in expected:
            raise ValueError(f"{member}: does not fit the policy, which has no {name!r}")
