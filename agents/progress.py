"""The progress bar of a training."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class SpeedColumn(ProgressColumn):
    """Environment steps so far and per second."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = "" if task.speed is None else f"  {task.speed:,.0f} steps/s"
        return Text(f"{task.completed:,.0f} steps{speed}")


def progress_bar() -> Progress:
    """A bar with what is being done, share, steps/s, time spent and time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        SpeedColumn(),
        TextColumn("return {task.fields[score]:.2f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        speed_estimate_period=60.0,
    )
