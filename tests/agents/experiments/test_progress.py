"""Texts of the bar of training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from memenvs.agents.experiments.progress import ScoreColumn, SpeedColumn


def task(**fields: Any) -> Any:
    return SimpleNamespace(completed=3, fields=fields, speed=fields.get("speed"))


def test_columns() -> None:
    for speed, text in ((None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")):
        assert SpeedColumn("updates").render(task(speed=speed)).plain == f"3 updates{text}"
    column = ScoreColumn("return")
    assert column.render(task(score=1.234)).plain == "return 1.23"
    assert column.render(task(score=float("nan"))).plain == ""  # not known yet
