"""Learning-rate schedules, worked by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memenvs.agents import PPOConfig
from memenvs.agents.algorithms.schedules import cosine_schedule, linear_schedule
from memenvs.agents.algorithms.supervised_config import SupervisedConfig


def test_linear_by_hand() -> None:
    for initial, final, warmup, step, rate in (
        (2.0, None, 0, 0, 2.0),
        (2.0, 0.5, 0, 0, 2.0),
        (2.0, 0.5, 0, 40, 0.6 * 2.0 + 0.4 * 0.5),
        (2.0, 0.5, 0, 300, 0.5),
        (2.0, None, 3, 0, 2.0 / 4),  # the warm-up rises in four equal steps
        (2.0, None, 3, 2, 2.0 * 3 / 4),
        (2.0, None, 3, 3, 2.0),
        (2.0, 0.5, 3, 2, (0.98 * 2.0 + 0.02 * 0.5) * 3 / 4),  # both at a time
    ):
        assert linear_schedule(initial, final, warmup, step, 100) == pytest.approx(rate)


def test_cosine_by_hand() -> None:
    for initial, final, warmup, step, total, rate in (
        (2.0, 0.5, 0, 0, 100, 2.0),
        (2.0, 0.5, 0, 25, 100, 0.5 + 0.75 * (1 + math.cos(math.pi / 4))),
        (2.0, 0.5, 0, 100, 100, 0.5),
        (2.0, 0.5, 0, 900, 100, 0.5),
        (2.0, 0.5, 20, 0, 120, 0.002),  # a thousandth
        (2.0, 0.5, 20, 19, 120, 2.0 * (0.001 + 0.999 * 19 / 20)),
        (2.0, 0.5, 20, 20, 120, 2.0),
        (2.0, None, 20, 70, 120, 2.0),
        (2.0, 0.5, 20, 20, 20, 2.0),  # the run ends with the warm-up, or before
        (2.0, 0.5, 20, 21, 20, 0.5),
    ):
        assert cosine_schedule(initial, final, warmup, step, total) == pytest.approx(rate), (step, total)


def test_learners_use_them() -> None:
    settings: Any = {"learning_rate": 2.0, "final_learning_rate": 0.5, "warmup_steps": 20}
    for step in (5, 70):
        assert PPOConfig(**settings).learning_rate_at(step, 120) == cosine_schedule(2.0, 0.5, 20, step, 120)
        assert SupervisedConfig(**settings).learning_rate_at(step, 120) == linear_schedule(2.0, 0.5, 20, step, 120)
