"""Files of scene datasets of habitat-sim: their scenes, and what these refer to.

A scene dataset config lists files, by names or patterns. A stage is the building, one mesh. A scene instance names a
stage and the objects in it, with their poses. habitat-sim ends the process of Python where a file is broken, so all of
them are checked first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memenvs.files import list_files
from memenvs.houses.habitat.glb import check_glb, glb_size
from memenvs.json_records import Field, read_json

_SUFFIX = ".scene_dataset_config.json"
_STAGE_SUFFIXES = (".stage_config.json", ".glb")
_SCENE, _OBJECT, _JOINTED = ".scene_instance.json", ".object_config.json", ".ao_config.json"
_REGIONS = ".semantic_config.json"
#: Part of a config -> how its files end.
_SUFFIXES = {
    "stages": _STAGE_SUFFIXES,
    "objects": (_OBJECT, ".glb"),
    "articulated_objects": (_JOINTED, ".urdf"),
    "semantic_scene_descriptor_instances": (_REGIONS,),
}
#: Part of a config -> key of a scene instance that names its files.
_INSTANCES = {"objects": "object_instances", "articulated_objects": "articulated_object_instances"}
_KINDS = f"a scene dataset config (*{_SUFFIX}) or a stage (*{', *'.join(_STAGE_SUFFIXES)})"
#: Where to get a data set; second line of messages about a missing one.
DATASET_HELP = (
    "Make one with `memenvs house --seed 1000 --habitat FOLDER`; docs/guides/habitat.md says where others are."
)
#: Axis of a mesh -> what a stage config says where it is up.
_ORIENTATIONS = {"y": '"up": [0, 1, 0], "front": [0, 0, -1]', "z": '"up": [0, 0, 1], "front": [0, 1, 0]'}


class SceneName(NamedTuple):
    """A scene of a data set.

    Attributes:
        dataset: Path of the scene dataset config; "default" for a stage alone.
        scene: Path of the scene instance or stage.
        has_objects: True if objects are part of the scene. habitat-sim lists them only if it was built with Bullet,
            a physics engine.
    """

    dataset: str
    scene: str
    has_objects: bool = False


class Dataset:
    """A scene dataset, or a stage alone.

    Args:
        path: Scene dataset config (`*.scene_dataset_config.json`), or a stage (`*.stage_config.json` or `*.glb`).

    Attributes:
        path: Absolute path.
        names: Names of the scenes, in order.
        is_exported: True if memenvs has written it, with the description of each home in `homes/NAME.json`.

    Raises:
        ValueError: `path` is None or ends otherwise, the file is no such config, there is no scene, or a stage alone
            would lie on its side.
        FileNotFoundError: There is no such file, or a description of an exported home is missing.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = find_dataset(path)
        self.is_exported = False
        self._checked: set[Path] = set()
        if self._is_stage:
            self._scenes = {_stem(self.path): self.path}
            self._check_config(self.path)
            check_upright(self.path)
        else:
            config = read_json(self.path)  # the package ends the process where it is no JSON
            self._scenes = dict(sorted(self._files(config, "scene_instances", (_SCENE,))))
            self._scenes = self._scenes or dict(sorted(self._files(config, "stages", _STAGE_SUFFIXES)))
            self.is_exported = (self.path.parent / "homes").is_dir()
        self.names = list(self._scenes)
        missing = [name for name in self.names if self.is_exported and not self.home_file(name).is_file()]
        if missing or not self.names:
            problem = f"no homes/{missing[0]}.json, which `memenvs house --habitat` writes" if missing else "no scene"
            raise ValueError(f"{self.path}: there is {problem}\n{DATASET_HELP}")
        self._files_of: dict[str, dict[str, Path]] = {}

    def home_file(self, name: str) -> Path:
        """Path of the description of an exported home."""
        return self.path.parent / "homes" / f"{name}.json"

    def scene(self, name: str) -> SceneName:
        """Find a scene, and check the files that it refers to.

        Raises:
            ValueError: A file is broken, or an object is not in the data set.
            FileNotFoundError: A file is missing.
        """
        path = self._scenes[name]
        dataset = "default" if self._is_stage else str(self.path)
        if not path.name.endswith(_SCENE):
            self._check_config(path)
            return SceneName(dataset, str(path))
        scene = read_json(path)
        self._check_template(scene["stage_instance"]["template_name"], "stages")
        instances = {part: scene.optional_items(key) for part, key in _INSTANCES.items()}
        for part, fields in instances.items():
            for instance in fields:
                self._check_template(instance["template_name"], part)
        return SceneName(dataset, str(path), any(instances.values()))

    def regions(self, name: str) -> list[Field]:
        """Annotated regions of a scene, as HSSD has them; an empty list if there are none."""
        path = self._scenes[name]
        if not path.name.endswith(_SCENE):
            return []
        descriptor = read_json(path).get("semantic_scene_instance")
        stem = name if descriptor is None else _stem(Path(descriptor.text()))
        file = self._templates("semantic_scene_descriptor_instances").get(stem)
        if file is None or not file.name.endswith(_REGIONS):  # such as the text of HM3D, which has no outlines
            return []
        return read_json(file).optional_items("region_annotations")

    @cached_property
    def class_names(self) -> dict[int, str]:
        """Semantic id -> name of the class, from `semantics/*_lexicon.json`; empty if there is none."""
        names = {}
        for path in list_files(self.path.parent, "semantics/*_lexicon.json"):
            for entry in read_json(path)["classes"].items():
                names[entry["id"].integer(2**31, at_least=-(2**31))] = entry["name"].text()
        return names

    @property
    def _is_stage(self) -> bool:
        return self.path.name.endswith(_STAGE_SUFFIXES)

    def _templates(self, part: str) -> dict[str, Path]:
        """Files of a part of the config, by name."""
        if part not in self._files_of:
            self._files_of[part] = dict(self._files(read_json(self.path), part, _SUFFIXES[part]))
        return self._files_of[part]

    def _files(self, config: Field, part: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
        """Name and path of the files that a part of the config lists: by patterns of files or folders, or by name."""
        section = config.get(part)
        if section is None:
            return
        section.get("paths")  # raises if it is no object
        for name, value in section.value.items():
            if isinstance(value, str):
                yield name, self.path.parent / value
        paths = section.get("paths")
        if paths is None:
            return
        paths.get(".json")
        for key in paths.value:
            for pattern in paths[key].items():
                for place in list_files(self.path.parent, pattern.text()):
                    for path in list_files(place) if place.is_dir() else (place,):
                        if path.name.endswith(suffixes) and not path.name.endswith(".semantic.glb"):
                            yield _stem(path), path

    def _check_template(self, name: Field, part: str) -> None:
        """Check the config of a stage or object that a scene names."""
        stem, templates = _stem(Path(name.text())), self._templates(part)
        if stem not in templates:
            raise name.error(f"in {self.path.name}")
        self._check_config(templates[stem])

    def _check_config(self, path: Path) -> None:
        """Check a stage or an object, once."""
        if path in self._checked:
            return
        if path.suffix == ".glb":
            check_glb(path)
        elif path.suffix == ".urdf":
            for name in re.findall(r'filename\s*=\s*"([^"]*)"', path.read_text(errors="replace")):
                _check_asset(path, name)
        else:
            config = read_json(path)
            if not path.name.endswith(_JOINTED):
                config["render_asset"]
            for key in ("render_asset", "collision_asset", "semantic_asset", "urdf_filepath"):
                asset = config.get(key)
                if asset is not None:
                    _check_asset(path, asset.text())
                    if key == "urdf_filepath":
                        self._check_config(path.parent / asset.text())
        self._checked.add(path)


def _check_asset(config: Path, name: str) -> None:
    """Check a mesh that a config names, relative to its folder.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is broken.
    """
    file = config.parent / name
    if not file.suffix:  # a primitive of the package, or nothing
        return
    if not file.is_file():
        raise FileNotFoundError(f"{config}: names {name!r}, and there is no such file")
    if file.suffix == ".glb":
        check_glb(file)


def check_upright(stage: Path) -> None:
    """Check that a stage does not lie on its side.

    A home is taken to be shortest along its height. habitat-sim takes z for up in a .glb alone, and y in a config that
    does not say which. By its standard a .glb has y up, but those of some data sets of scans have z up.

    Args:
        stage: The stage, a .glb or a config; its files are whole.

    Raises:
        ValueError: The mesh is shortest along the other one of these two axes, by a tenth at least.
    """
    mesh, taken, other = stage, "z", "y"
    if stage.suffix != ".glb":
        config = read_json(stage)
        if config.get("up") is not None:
            return
        mesh, taken, other = stage.parent / config["render_asset"].text(), "y", "z"
    size = glb_size(mesh) if mesh.suffix == ".glb" else None
    if size is None or 1.1 * size["xyz".index(other)] >= np.delete(size, "xyz".index(other)).min():
        return
    where = "of a .glb alone; name a config beside it" if mesh == stage else f"unless {stage.name} says so"
    raise ValueError(
        f"{mesh} seems to have {other} up, as its sides are {' x '.join(f'{side:.1f}' for side in size)} m long, but "
        f"habitat-sim takes {taken} {where}: "
        f'{{"render_asset": "{mesh.name}", {_ORIENTATIONS[other]}}}, or with {_ORIENTATIONS[taken]} if {taken} is up'
    )


def find_dataset(dataset: str | Path | None) -> Path:
    """Return the absolute path of a scene dataset config or a stage.

    Raises:
        ValueError: None is given, or the name does not end as such a file's does.
        FileNotFoundError: There is no such file.
    """
    if dataset is None:
        raise ValueError(f"habitat_dataset is missing: world 'habitat' needs {_KINDS}\n{DATASET_HELP}")
    if not isinstance(dataset, (str, os.PathLike)):
        raise ValueError(f"habitat_dataset must be the path of a file, got {dataset!r}")
    path = Path(dataset).absolute()
    if path.is_dir():
        inside = [file.name for file in list_files(path, "*" + _SUFFIX)] or f"nothing that ends in {_SUFFIX}"
        raise ValueError(f"habitat_dataset must be a file, got the folder {path}, which has {inside}")
    if not path.is_file():
        raise FileNotFoundError(f"habitat_dataset: there is no {missing_part(path)}\n{DATASET_HELP}")
    if not path.name.endswith((_SUFFIX, *_STAGE_SUFFIXES)):
        raise ValueError(f"habitat_dataset must be {_KINDS}, got {path.name!r}")
    return path


def missing_part(path: Path) -> str:
    """Name a file that is not there, and the first folder on its path that is not."""
    missing = [folder for folder in path.parents if not folder.exists()]
    return f"file {path}" + (f", as there is no folder {missing[-1]}" if missing else "")


def _stem(path: Path) -> str:
    """Name of a file without what follows its kind: "a" of "a.scene_instance.json", "a.b" of "a.b.glb"."""
    for suffix in (_SCENE, _OBJECT, _JOINTED, _REGIONS, *_STAGE_SUFFIXES, ".urdf"):
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name
