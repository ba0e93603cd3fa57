"""The sizes of networks and the progress bar of a training."""

from __future__ import annotations

from rich.console import Console
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
from torch import nn

from memenvs.agents.memory import Memory
from memenvs.agents.memory.reader import MemoryReader


class SpeedColumn(ProgressColumn):
    """Steps so far and per second.

    Args:
        unit: Name of the steps.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = ""
        if task.speed is not None:
            rate = f"{task.speed:,.0f}" if task.speed >= 10 else f"{task.speed:.2g}"
            speed = f"  {rate} {self._unit}/s"
        return Text(f"{task.completed:,.0f} {self._unit}{speed}")


def count_weights(network: nn.Module) -> dict[str, int]:
    """Weights of a policy or model, "all", and of its "memory" if it has one.

    Of a model that reads tokens without a `Memory` it is the reader.
    """
    memory = next((part for part in network.modules() if isinstance(part, Memory | MemoryReader)), None)
    parts = {"all": network} if memory is None else {"all": network, "memory": memory}
    return {name: sum(parameter.numel() for parameter in part.parameters()) for name, part in parts.items()}


def training_bar(network: nn.Module, unit: str = "steps", score: str = "return") -> Progress:
    """Print the weights of a network and make a bar, both on standard error.

    The bar shows the share done, steps/s, score, time spent and time left.

    Args:
        network: Policy or model that is trained.
        unit: Name of the steps.
        score: Name of the task's field `score`.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        SpeedColumn(unit),
        TextColumn(score + " {task.fields[score]:.2f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=60.0,
    )
    weights = ", ".join(f"{name} {count:,}" for name, count in count_weights(network).items())
    bar.console.print(f"weights: {weights}", highlight=False)
    return bar
