from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import pytest

import memenvs  # noqa: F401  (registers)
from tests.vln.toys import write_data


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the toy house."""
    return write_data(tmp_path_factory.mktemp("vln"))


@pytest.fixture
def make(toy_data: Path) -> Callable[..., gym.Env]:
    """Makes an environment in the toy house."""
    toy = {"world": "mp3d", "features": "none", "split": "train", "data_dir": str(toy_data)}
    return lambda task="R2R", **settings: gym.make(f"memenvs/VLN-{task}-v0", **{**toy, **settings})
