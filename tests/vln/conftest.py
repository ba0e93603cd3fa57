from __future__ import annotations

from pathlib import Path

import pytest

from tests.vln.toys import write_data


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the toy house."""
    return write_data(tmp_path_factory.mktemp("vln"))
