"""Find data files that do not come with the package: ProcTHOR houses, and the data of VLN.

The environment variable `MEMENVS_DATA` names the folder with all of them. It is read in `data_root` only::

    $MEMENVS_DATA/
      procthor/four_room.jsonl.gz    houses, and asset_sizes.json.gz beside them
      vln/                           graphs of Matterport3D, instructions of R2R, dialogues of CVDN
"""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "MEMENVS_DATA"
PROCTHOR_FILE = "procthor/four_room.jsonl.gz"
VLN_FOLDER = "vln"

#: File with the sizes of the assets beside a house file, and how to make it; ends the message about a missing one.
ASSET_SIZES_FILE = "asset_sizes.json.gz"
ASSET_SIZES_HELP = (
    f"A house file has no sizes of its furniture: they are in {ASSET_SIZES_FILE} beside it, or in asset_sizes=FILE. "
    f"Make it with `memenvs assets DATABASE --out {ASSET_SIZES_FILE}`, where DATABASE is ProcTHOR's "
    "procthor/databases/asset-database.json (github.com/allenai/procthor), what ai2thor's action GetAssetDatabase "
    "returns, or, for houses of Holodeck, Objathor's annotations.json.gz; several are put together."
)
#: What may be done about assets without a size: take the median of their object type, drop them, or refuse the house.
UNKNOWN_ASSETS = ("class", "drop", "error")

#: Files of world "mp3d", where to get them and where to put them; the end of every message about a missing one.
MP3D_HELP = (
    f"World 'mp3d' needs, in a folder {VLN_FOLDER} of the folder that ${DATA_VARIABLE} names or in data_dir=FOLDER: "
    "connectivity/SCAN_connectivity.json of the Matterport3D Simulator (or the same packed as connectivity.npz); "
    "for R2R, R2R_SPLIT.json from the simulator's tasks/R2R/data; for CVDN, SPLIT.json from tasks/NDH/data of the "
    "CVDN project as ndh_SPLIT.json; each may be gzipped. They are under the Matterport3D terms of use."
)


def data_root() -> Path | None:
    """Folder that `$MEMENVS_DATA` names; None if the variable is not set or empty."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(value) if value else None


def find_procthor_file(houses: str | os.PathLike[str] | None = None) -> Path:
    """File of ProcTHOR houses: the given one, or that of the data folder.

    Args:
        houses: Path of a file; None for the one in the folder that `$MEMENVS_DATA` names.

    Raises:
        ValueError: `houses` is no path, or neither a file nor the data folder is given.
        FileNotFoundError: There is no such file.
    """
    if houses is None:
        root = data_root()
        if root is None:
            raise ValueError(
                f"world 'procthor' needs houses=FILE (ProcTHOR houses, one JSON document a line), or ${DATA_VARIABLE} "
                f"set to a folder with {PROCTHOR_FILE}; got neither"
            )
        houses = root / PROCTHOR_FILE
    elif not isinstance(houses, (str, os.PathLike)):
        raise ValueError(f"houses must be the path of a file or None, got {houses!r}")
    path = Path(houses)
    if not path.is_file():
        raise FileNotFoundError(f"no file of ProcTHOR houses at {path}")
    return path


def find_asset_sizes(houses: Path, asset_sizes: str | os.PathLike[str] | None = None) -> Path:
    """File of the sizes of a house file's assets: the given one, or the one beside it.

    Args:
        houses: The house file.
        asset_sizes: Path of a file; None for the one beside it.

    Raises:
        ValueError: `asset_sizes` is no path.
        FileNotFoundError: There is no such file; the message says what it is and how to make it.
    """
    if asset_sizes is not None and not isinstance(asset_sizes, (str, os.PathLike)):
        raise ValueError(f"asset_sizes must be the path of a file or None, got {asset_sizes!r}")
    path = houses.with_name(ASSET_SIZES_FILE) if asset_sizes is None else Path(asset_sizes)
    if not path.is_file():
        raise FileNotFoundError(f"no file of asset sizes at {path}. {ASSET_SIZES_HELP}")
    return path


def find_vln_folder(data_dir: str | os.PathLike[str] | None = None, help_text: str = MP3D_HELP) -> Path:
    """Folder of the VLN files: `data_dir`, `vln` in it, or `vln` in the data folder.

    Args:
        data_dir: Path of a folder; None for `vln` in the folder that `$MEMENVS_DATA` names.
        help_text: Which files are needed and where to get them; ends the error message.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if data_dir is None:
        root = data_root()
        if root is None:
            raise FileNotFoundError(
                f"no data: ${DATA_VARIABLE} is not set or empty, and no folder (data_dir, --data) is given. {help_text}"
            )
        data_dir = root / VLN_FOLDER
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileNotFoundError(f"no data: there is no folder {str(folder)!r}. {help_text}")
    inner = folder / VLN_FOLDER
    return (inner if inner.is_dir() else folder).resolve()
