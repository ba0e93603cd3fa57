import subprocess
import sys

import gymnasium as gym
import pytest

from memenvs.checks import choices_for
from memenvs.registry import ENVIRONMENTS, check_registered, find_environment, register_all

HEAVY = {"torch", "numba", "llvmlite", "PIL", "stable_baselines3", "trimesh", "pygame", "imageio", "minigrid"}


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_routes():
    """An id with the module's name needs no import, in single and vector form."""
    for make in ("gymnasium.make('memenvs:{}')", "gymnasium.make_vec('memenvs:{}', num_envs=2)"):
        call = make.format("memenvs/Darkroom-v0")
        assert run_python(f"import gymnasium; print({call}.spec.id)").split() == ["memenvs/Darkroom-v0"]


def test_import_is_light():
    modules = ("memenvs", "memenvs.core", "memenvs.__main__", "memenvs.vln.cli", "memenvs.wrappers")
    code = "import sys\n" + "".join(f"import {name}\nprint({name!r}, *sys.modules)\n" for name in modules)
    for name, *loaded in map(str.split, run_python(code).splitlines()):
        assert name in loaded and not HEAVY & set(loaded), name


def test_import_has_no_other_effect():
    before = "import random, warnings, os, numpy as np, gymnasium\n"
    state = "(random.getstate(), str(np.random.get_state()), len(warnings.filters), dict(os.environ))"
    assert run_python(f"{before}a = {state}\nimport memenvs, memenvs.wrappers\nprint(a == {state})").strip() == "True"


def test_find_environment():
    assert find_environment("Darkroom-v0") is find_environment("memenvs/Darkroom-v0")
    with pytest.raises(ValueError, match=r"unknown id 'Kitchen'; choose from \['memenvs/ExtObjNav-v0'"):
        find_environment("Kitchen")
    for similar in ("Darkrom-v0", "memenvs/darkroom-v0"):
        with pytest.raises(ValueError, match=r"; did you mean 'memenvs/Darkroom-v0'\?"):
            find_environment(similar)


def test_ids_are_unique_and_registering_again_changes_nothing():
    assert len({spec.id for spec in ENVIRONMENTS}) == len(ENVIRONMENTS)
    before = dict(gym.registry)
    register_all()
    assert gym.registry == before


def test_rows():
    for spec in ENVIRONMENTS:
        assert spec.id == f"memenvs/{spec.name}" and spec.needs == ""
        assert spec.random_below < spec.oracle_at_least
        assert spec.random_below >= 0 or spec.score_key == "return"  # such as minus an error
        assert spec.oracle_at_least <= 1 or spec.score_key in ("return", "cells", "gp")
        assert gym.registry[spec.id].kwargs == {"task": spec.task, **spec.defaults}


def test_ids_of_any_package_are_checked():
    for id in ("memenvs/Darkroom-v0", "memenvs:memenvs/Darkroom-v0", "memenvs/Darkroom", "CartPole-v1", "CartPole"):
        check_registered(id)
    for id, message in (
        ("CartPol", r"unknown id 'CartPol'; .*'CartPole-v1'"),
        ("CartPole-v1-v1", "unknown id 'CartPole-v1-v1'"),
        ("memenvs:memenvs/Darkrom-v0", "unknown id 'memenvs:memenvs/Darkrom-v0'; did you mean 'memenvs/Darkroom-v0'"),
        ("no_such_module:Maze-v0", "id 'no_such_module:Maze-v0': module 'no_such_module' cannot be imported"),
    ):
        with pytest.raises(ValueError, match=message):
            check_registered(id)


def test_the_most_similar_choices_are_named():
    assert choices_for("val", ["train", "validation", "all"]).startswith("did you mean 'validation'? Choose from")
    assert choices_for("lvfo", ["LIFO", "LVFO", "MVFO"]).startswith("did you mean 'LVFO'?")
    assert choices_for("", ["train"]) == "choose from ['train']"
    many = [f"{word}-{k}" for word in ("coverage", "roaming", "search") for k in range(20)]
    assert choices_for("roming-7", many).startswith("did you mean 'roaming-7' or ")
    assert choices_for("?", many) == "none of 60 is similar"
