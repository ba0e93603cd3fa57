from __future__ import annotations

import sys
from types import ModuleType

import pytest

from memenvs.agents.study import Study, load_study


@pytest.fixture(scope="module")
def study(request: pytest.FixtureRequest) -> Study:
    """The study of the test file, in its `FILE`."""
    return load_study(request.module.FILE)


@pytest.fixture(scope="module")
def module(study: Study) -> ModuleType:
    """The module of the study that makes its tables."""
    return sys.modules[study.tables.__module__]
