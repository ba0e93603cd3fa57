import sys
from pathlib import Path
from types import ModuleType

import pytest

from memenvs.agents.study import Study, find_studies, load_study


@pytest.fixture(scope="module")
def file(request: pytest.FixtureRequest) -> Path:
    """The file of the study that the test file is named after."""
    return find_studies()[request.module.__name__.rpartition("test_")[2]]


@pytest.fixture(scope="module")
def study(file: Path) -> Study:
    return load_study(file)


@pytest.fixture(scope="module")
def module(study: Study) -> ModuleType:
    """The module of the study that makes its tables."""
    return sys.modules[study.tables.__module__]
