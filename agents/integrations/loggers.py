"""Experiment trackers behind the logger of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter


class TrackerWriter(KVWriter):
    """Pass every logged number to a function such as `wandb.log` or `mlflow.log_metrics`.

    Texts, images and values excluded from the format `name` are left out.

    Args:
        log: Called with the numbers, name -> float, and `step=`, the environment steps so far.
        name: Format name, by which `Logger.record(..., exclude=name)` leaves a value out.
    """

    def __init__(self, log: Callable[..., Any], name: str = "tracker") -> None:
        self._log = log
        self._name = name

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...]], step: int = 0) -> None:
        """Pass one dump on."""
        numbers = {
            key: float(value)
            for key, value in key_values.items()
            if isinstance(value, (int, float, np.number)) and self._name not in (key_excluded.get(key) or ())
        }
        if numbers:
            self._log(numbers, step=step)

    def close(self) -> None:
        """Leave the tracker open: its owner ends it, by `wandb.finish()` or `mlflow.end_run()`."""
