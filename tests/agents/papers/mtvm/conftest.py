from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memenvs.agents import make_vec_env
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from tests.agents.papers.mtvm.learners import DRY, ENV, SIZES, kwargs
from tests.vln.toys import write_data


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the toy house."""
    return write_data(tmp_path_factory.mktemp("vln"))


@pytest.fixture
def make_learner(toy_data: Path) -> Callable[..., ImitationA2C]:
    """A function that makes a learner of N copies of the toy house."""

    def _make(
        n: int = 3, *, network: dict[str, Any] | None = None, env: dict[str, Any] | None = None, **settings: Any
    ) -> ImitationA2C:
        policy = {"size": "tiny", "network": SIZES | DRY | (network or {})}
        base = {"learning_rate": 1e-2, "word_drop": 0.5}
        venv = make_vec_env(ENV, n, **kwargs(toy_data, **(env or {})))
        learner = ImitationA2C("MTVMPolicy", venv, policy_kwargs=policy, seed=7, device="cpu", **(base | settings))
        venv.seed(7)  # environment i has the same episodes among few and many, some longer and some shorter
        return learner

    return _make
