"""What progress bars say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memenvs.agents.experiments.progress import ScoreColumn, SpeedColumn, share_bar


def task(**fields: Any) -> Any:
    return SimpleNamespace(completed=3, fields=fields, speed=fields.get("speed"))


@pytest.mark.parametrize(("speed", "said"), [(None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")])
def test_speed(speed: float | None, said: str) -> None:
    assert SpeedColumn("updates").render(task(speed=speed)).plain == f"3 updates{said}"


def test_a_score_that_is_not_known_is_not_shown() -> None:
    column = ScoreColumn("return")
    assert (
        column.render(task(score=float("nan"))).plain == "" and column.render(task(score=1.234)).plain == "return 1.23"
    )


def test_a_bar_of_shares(capsys: pytest.CaptureFixture[str]) -> None:
    with share_bar("playing", quiet=True) as progress:
        assert progress is None
    assert capsys.readouterr().out == ""
    with share_bar("playing") as progress:
        assert progress is not None
        progress(0.25)
    line = capsys.readouterr().out
    assert line.startswith("playing ") and " 25% " in line
