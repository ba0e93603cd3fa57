"""Questions about small histories, which the tests of EMV share."""

import numpy as np
import pytest

from memenvs.agents.papers.emv.data import QuestionArrays, load_arrays
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import load_dialogs
from tests.agents.papers.emv.small_runs import DATA


@pytest.fixture(scope="session")
def arrays() -> QuestionArrays:
    return load_arrays(load_dialogs(EpisodicQAConfig(**DATA)))


@pytest.fixture(scope="session")
def lengths(arrays: QuestionArrays) -> np.ndarray:
    """Episodes of each history."""
    return np.array([len(arrays.dialogs.history(number)) for number in range(len(arrays.dialogs))])


@pytest.fixture(scope="session")
def frame_counts(arrays: QuestionArrays) -> np.ndarray:
    """Key frames of each history."""
    return np.array([arrays.dialogs.history(number).num_frames for number in range(len(arrays.dialogs))])
