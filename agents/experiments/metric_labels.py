"""Names of metrics on figures and in tables, in the field's terms and with units."""

from __future__ import annotations

LABELS = {
    "accuracy": "accuracy",
    "accuracy_kept": "accuracy, answer kept",
    "cells": "cells entered",
    "classes": "classes found",
    "cls": "CLS",
    "distance": "distance (m)",
    "geodesic": "distance to the goal (m)",
    "gp": "goal progress (m)",
    "kept": "answer kept in memory",
    "length": "steps",
    "mse": "mean squared error",
    "ndtw": "nDTW",
    "ne": "NE (m)",
    "num_steps": "steps of the task",
    "osr": "OSR",
    "path_length": "path length (m)",
    "ratio": "ratio of classes found",
    "sdtw": "SDTW",
    "soft_spl": "soft SPL",
    "spl": "SPL",
    "sr": "SR",
    "success": "success rate",
    "tl": "TL (m)",
}
"""Metric -> label, of those whose name is not its label."""


def metric_label(metric: str) -> str:
    """Return the label of a metric; its name with spaces where it has none."""
    return LABELS.get(metric, metric.replace("_", " "))
