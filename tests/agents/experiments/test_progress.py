"""Texts of progress bars."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memenvs.agents.experiments.progress import ScoreColumn, SpeedColumn, evaluation_bar


def task(**fields: Any) -> Any:
    return SimpleNamespace(completed=3, fields=fields, speed=fields.get("speed"))


def test_columns() -> None:
    for speed, text in ((None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")):
        assert SpeedColumn("updates").render(task(speed=speed)).plain == f"3 updates{text}"
    column = ScoreColumn("return")
    assert column.render(task(score=1.234)).plain == "return 1.23"
    assert column.render(task(score=float("nan"))).plain == ""  # not known yet


def test_a_bar_of_shares(capsys: pytest.CaptureFixture[str]) -> None:
    with evaluation_bar("playing", quiet=True) as progress:
        assert progress is None
    assert capsys.readouterr().out == ""
    with evaluation_bar("playing") as progress:
        assert progress is not None
        progress(0.25)
    line = capsys.readouterr().out
    assert line.startswith("playing ") and " 25% " in line
