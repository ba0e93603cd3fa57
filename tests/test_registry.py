from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import pytest

from memenvs.checks import choices_for
from memenvs.registry import ENVIRONMENTS, find_environment, register_all

HEAVY = (
    "torch",
    "numba",
    "llvmlite",
    "PIL",
    "stable_baselines3",
    "trimesh",
    "pygame",
    "imageio",
    "minigrid",
    "miniworld",
)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "make",
    [
        "import memenvs; make = gymnasium.make",
        "make = lambda id: gymnasium.make('memenvs:' + id)",
        "make = lambda id: gymnasium.make_vec('memenvs:' + id, num_envs=2)",
    ],
    ids=["import", "module", "vector"],
)
def test_import_routes(make):
    ids = [row.id for row in ENVIRONMENTS]
    assert run(f"import gymnasium; {make}; print(*[make(id).spec.id for id in {ids}])").split() == ids


@pytest.mark.parametrize(
    "package", ["memenvs", "memenvs.core", "memenvs.__main__", "memenvs.vln.cli", "memenvs.wrappers"]
)
def test_import_is_light(package):
    loaded = run(f"import sys, {package}; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_import_has_no_other_effect():
    before = "import random, warnings, os, numpy as np, gymnasium\n"
    state = "(random.getstate(), str(np.random.get_state()), len(warnings.filters), dict(os.environ))"
    assert run(f"{before}a = {state}\nimport memenvs, memenvs.wrappers\nprint(a == {state})").strip() == "True"


def test_find():
    assert find_environment("Darkroom-v0") is find_environment("memenvs/Darkroom-v0")
    with pytest.raises(ValueError, match=r"unknown id 'Lightroom-v0'; choose from \['memenvs/ExtObjNav-v0'"):
        find_environment("Lightroom-v0")
    for almost in ("Darkrom-v0", "memenvs/darkroom-v0"):
        with pytest.raises(ValueError, match=r"\]\. Did you mean 'memenvs/Darkroom-v0'\?"):
            find_environment(almost)


def test_ids_are_unique_and_registering_again_changes_nothing():
    assert len({row.id for row in ENVIRONMENTS}) == len(ENVIRONMENTS)
    before = dict(gym.registry)
    register_all()
    assert gym.registry == before


def test_a_name_cut_short_means_the_one_that_begins_so():
    assert choices_for("val", ["train", "validation", "all"]).endswith("Did you mean 'validation'?")
    assert choices_for("lvfo", ["LIFO", "LVFO", "MVFO"]).endswith("Did you mean 'LVFO'?")
    assert choices_for("", ["train"]) == "choose from ['train']"


def test_of_many_names_the_nearest_are_shown():
    many = [f"{word}-{k}" for word in ("coverage", "roaming", "search") for k in range(20)]
    assert choices_for("search-1", many).startswith("the nearest of 60 are ['search-1', 'search-10', ")
    assert choices_for("roming-7", many).startswith("the nearest of 60 are ['roaming-7', ")
    assert choices_for("?", many) == f"the nearest of 60 are {many[:8]}"
