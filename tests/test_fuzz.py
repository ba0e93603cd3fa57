"""Damaged files, odd settings and odd reset options: right, or refused by name.

A part runs on every change, all of it nightly. `tests/agents/test_damaged_files.py` and `test_settings.py` there do the
same for checkpoints, run directories, memories and learners.
"""

from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.exploration.coverage import Coverage
from memenvs.houses.home_file import describe_home
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.procthor.asset_sizes import AssetSizes, convert_databases
from memenvs.houses.procthor.loader import count_procthor, load_procthor
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.env import ExtObjNav
from memenvs.registry import ENVIRONMENTS
from memenvs.task import TRIAL_OPTIONS, load_task
from memenvs.verbalization.household_config import HouseholdConfig
from memenvs.vln.features.file_features import FileFeatures, convert_features
from memenvs.vln.graph import Graphs
from memenvs.vln.results import score_paths
from memenvs.vln.tokenizers import WordPieceTokenizer
from memenvs.vln.worlds.mp3d import load_cvdn, load_r2r
from memenvs.vln.worlds.mp3d_graphs import read_scans
from tests.damage import cut, edit_json, flip_bits, move_block
from tests.fuzzing import VALUES, attempt, pairs, single, some, undeclared
from tests.houses.procthor.made_houses import SIZES, two_rooms, write_houses
from tests.ids import each_id
from tests.rollouts import any_action, same
from tests.vln.test_vln_features import write_hdf5, write_tsv
from tests.vln.test_vln_files import packed_connectivity
from tests.vln.toys import NDH, R2R, connectivity, write_data, write_json

BYTES = (flip_bits, cut, move_block)
TEXTS = (*BYTES, edit_json, edit_json, edit_json)
Damage = Callable[[bytes, np.random.Generator], bytes]


class File(NamedTuple):
    """A kind of file.

    Attributes:
        name: Its name.
        write: Writes a whole one into a folder.
        read: Reads it there.
        damages: How it is damaged.
        beside: Name of a file that may no longer fit a file that is readable.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    damages: tuple[Damage, ...] = TEXTS
    beside: str = ""


def read_houses(folder: Path) -> None:
    for index in range(count_procthor(folder / "made.jsonl")):
        load_procthor(folder / "made.jsonl", index)


def write_home(folder: Path) -> None:
    home = load_procthor(write_houses(folder, two_rooms()), 0)
    write_json(folder / "home.json", describe_home(home))


def write_vocabulary(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[SEP]", "go", "##ing"]) + "\n")


def write_database(folder: Path) -> None:
    box = {"x": 1.0, "y": 0.5, "z": 2.0}
    write_json(folder / "asset-database.json", {"Table_1": {"objectType": "Table", "boundingBox": box}})


def write_results(folder: Path) -> None:
    write_data(folder)
    paths = {"7": "abcd", "8": "eb"}
    steps = {id: [[name, 0.0, 0.0] for name in path] for id, path in paths.items()}
    counts = {str(each["path_id"]): len(each["instructions"]) for each in R2R}
    results = [{"instr_id": f"{id}_{k}", "trajectory": each} for id, each in steps.items() for k in range(counts[id])]
    write_json(folder / "results.json", results)


def some_views() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {f"toy_{name}": rng.normal(size=(36, 3)).astype(np.float32) for name in "abcde"}


def write_array(folder: Path) -> None:
    convert_features(write_tsv(folder / "features.tsv", some_views()), folder / "features.npy")


def read_features(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        write_data(folder)
        return FileFeatures(folder / name, Graphs(load_r2r(folder, "train").graphs), None)

    return read


FILES = (
    File("made.jsonl", lambda folder: write_houses(folder, two_rooms()), read_houses),
    File("home.json", write_home, lambda folder: NavigationMap(load_procthor(folder / "home.json", 0))),
    File(
        "sizes.json",
        lambda folder: write_json(folder / "sizes.json", SIZES),
        lambda folder: AssetSizes.read(folder / "sizes.json"),
    ),
    File(
        "asset-database.json",
        write_database,
        lambda folder: convert_databases([folder / "asset-database.json"], folder / "out.json"),
    ),
    File("R2R_train.json", lambda folder: write_data(folder), lambda folder: load_r2r(folder, "train")),
    File(
        "ndh_val_unseen.json",
        lambda folder: write_json(write_data(folder) / "ndh_val_unseen.json", NDH),
        lambda folder: load_cvdn(folder, "val_unseen", "mixed", "all"),
    ),
    File(
        "connectivity/toy_connectivity.json",
        lambda folder: write_json(write_data(folder) / "connectivity/toy_connectivity.json", connectivity()),
        lambda folder: load_r2r(folder, "train"),
        beside="R2R_train.json",
    ),
    File(
        "connectivity.npz",
        lambda folder: np.savez_compressed(folder / "connectivity.npz", **packed_connectivity()),
        read_scans,
        BYTES,
    ),
    File(
        "results.json",
        write_results,
        lambda folder: score_paths("r2r", folder / "results.json", load_r2r(folder, "train")),
    ),
    File("f.tsv", lambda folder: write_tsv(folder / "f.tsv", some_views()), read_features("f.tsv"), BYTES),
    File("f.tsv.gz", lambda folder: write_tsv(folder / "f.tsv.gz", some_views()), read_features("f.tsv.gz"), BYTES),
    File("f.hdf5", lambda folder: write_hdf5(folder / "f.hdf5", some_views()), read_features("f.hdf5"), BYTES),
    File("features.npy", write_array, read_features("features.npy"), BYTES),
    File("features.npy.json", write_array, read_features("features.npy")),
    File("vocab.txt", write_vocabulary, lambda folder: WordPieceTokenizer.from_file(folder / "vocab.txt"), BYTES),
)


def file_failures(file: File, count: int, seed: int, folder: Path) -> Iterator[str]:
    file.write(folder)
    good = (folder / file.name).read_bytes()
    file.read(folder)
    for i in range(count):
        damage = file.damages[i % len(file.damages)]
        into = folder / str(i)  # another one each time: what was read of a file is kept until it changes
        into.mkdir()
        file.write(into)
        (into / file.name).write_bytes(damage(good, np.random.default_rng([seed, i])))
        where = f"{file.name}, seed {seed}, case {i} ({damage.__name__})"
        names = (Path(file.name).name, file.beside or file.name)
        yield from attempt(where, names, lambda folder=into: file.read(folder))


def option_failures(spec: Any, cases: list[tuple[str, Any]]) -> Iterator[str]:
    """Reset with odd options; the next reset must be as if there had been none."""
    env = gym.make(spec.id, **any_action(spec), max_episode_steps=5)
    try:
        expected = env.reset(seed=1)
        for name, value in cases:
            where = f"{spec.id}, option {name}={value!r}"
            yield from attempt(where, [name], lambda name=name, value=value: env.reset(options={name: value}))
            try:
                found = env.reset(seed=1)
                env.step(env.action_space.sample())
            except Exception as error:
                yield f"{where}, then a reset: {error!r}"
            else:
                if not all(same(left, right) for left, right in zip(found, expected, strict=True)):
                    yield f"{where} changes the next reset"
    finally:
        env.close()


def options(spec: Any) -> list[tuple[str, Any]]:
    names = [*load_task(spec.task).option_names, *TRIAL_OPTIONS, "unknown"]
    return [(name, value) for name in names for value in VALUES]


TASKS = {spec.id: load_task(spec.task) for spec in ENVIRONMENTS}
CONFIGS = list(dict.fromkeys(task.config_type for task in TASKS.values()))
#: Settings that are integers, or two of them, and their values where the default is None.
NUMBERS = {"feature_size": 5, "layout_pool": 2, "legs": 1, "max_episode_steps": 7, "max_tokens": 9, "size": 4}
NUMBERS |= {"threads": 2, "image_size": [24, 32], "num_objects": [3, 4], "rooms": [4, 5]}
#: Those of which a million is as cheap as one.
UNBOUNDED = {"layout_pool", "max_episode_steps"}


@pytest.mark.parametrize("count", [12, pytest.param(2000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_damaged_files(file: File, count: int, tmp_path: Path) -> None:
    found = list(file_failures(file, count, 0, tmp_path))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("config", CONFIGS)
def test_settings(config: Any, is_whole: bool) -> None:
    wrong: list[str] = []
    for settings in [*single(config), *pairs(config, 3000)] if is_whole else some(config, 100):
        name = f"{config.__name__} with {settings}"
        wrong += attempt(name, settings, lambda given=settings: config(**given))  # type: ignore[misc]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("count", [10, pytest.param(None, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly, loads=pytest.mark.slow))
def test_options(spec: Any, count: int | None) -> None:
    cases = options(spec)
    chosen = np.random.default_rng(0).permutation(len(cases))[:count]
    wrong = list(option_failures(spec, [cases[i] for i in chosen]))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("config", [*CONFIGS, HouseholdConfig])
def test_types_and_ranges_are_those_of_the_descriptions(config):
    assert list(undeclared(config)) == []


@pytest.mark.parametrize(
    ("config", "name"),
    [(config, field.name) for config in CONFIGS for field in fields(config) if field.name in NUMBERS],
)
def test_numbers(config, name):
    value = 4 if (config.__name__, name) == ("RoomsConfig", "rooms") else NUMBERS[name]
    expected = tuple(value) if isinstance(value, list) else value
    for numpy in [np.array(value), np.int64(value)] if isinstance(value, int) else [np.array(value)]:
        got = getattr(config(**{name: numpy}), name)
        assert got == expected
        assert {type(number) for number in (got if isinstance(got, tuple) else (got,))} == {int}
    if name not in UNBOUNDED:
        task = next(task for task in TASKS.values() if task.config_type is config)
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            task(1, **{name: [10**6] * 2 if isinstance(value, list) else 10**6})


def test_configs_are_frozen_and_have_keywords_only():
    for config in CONFIGS:
        with pytest.raises(FrozenInstanceError):
            setattr(config(), fields(config)[0].name, None)
        assert all(field.kw_only for field in fields(config))


@pytest.mark.slow
@pytest.mark.parametrize("task", [ExtObjNav, Coverage])
def test_scene_ids_are_whole(task):
    world = make_house_world("procedural", rooms=(2, 2))
    make_house = world.make_house
    world.make_house = lambda index: replace(make_house(index), name=f"{'x' * 200} {index}")
    env = TrialVectorEnv(task, 2, world=world)
    info = env.reset(seed=0)[1]
    assert len(set(info["scene_id"])) == 2
    assert all(name.startswith("x" * 200) for name in info["scene_id"])
    env.close()
