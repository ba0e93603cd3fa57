"""Texts of the bar of training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from memenvs.agents.experiments.progress import SpeedColumn


def task(speed: float | None) -> Any:
    return SimpleNamespace(completed=3, speed=speed)


def test_speed() -> None:
    for speed, text in ((None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")):
        assert SpeedColumn("updates").render(task(speed)).plain == f"3 updates{text}"
