"""Files of evaluations in the folder of a run, checked as they are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.files import numbered_files
from memenvs.json_records import Field, nan_for_null, parse_json


def read_evaluation(run: RunDirectory, name: str = "evaluation.json") -> dict[str, dict[str, Any]]:
    """Read an evaluation; empty if there is no such file.

    Args:
        run: The folder.
        name: Name of the file.

    Returns:
        Policy name -> `TrialResults.to_json`; where a run learns to predict, as `evaluate_predictions` returns it.

    Raises:
        ValueError: The file cannot be read or is no evaluation.
    """
    file = run.path / name
    if not file.is_file():
        return {}
    root = _read_policies(file)
    for policy in _values(root):
        _check_number(policy["trials" if run.config.kind.acts else "episodes"])
        for metric in _values(policy["metrics"]):
            _check_curve(metric, run.config.kind.acts)
        itinerary = policy.get("itinerary")
        if itinerary is not None:
            itinerary["letters"].text()
            for metric_name in policy["metrics"].names():
                scores = itinerary["metrics"][metric_name]
                for score in scores.names():
                    _check_curve(scores[score], by_episode=score == "fresh")
    return root.value


def read_demonstrated(run: RunDirectory, score: str) -> dict[int, tuple[list[float], list[float]]]:
    """Score by episode in the evaluations after demonstrations of the oracle.

    Args:
        run: The folder.
        score: Name of the metric.

    Returns:
        Number of demonstrations -> score of each demonstration, and of each episode of the agent. Evaluations that lack
        the metric are left out.

    Raises:
        ValueError: A file cannot be read or is no evaluation.
    """
    curves = {}
    for count, file in numbered_files(run.path, "demonstrations_*.json").items():
        agent = _read_policies(file)["agent"]
        curve = agent["metrics"].get(score)
        if curve is None:
            continue
        _check_curve(curve, by_episode=True)
        demonstrated = agent["demonstrations"][score].items(1)
        for value in demonstrated:
            _check_number(value)
        curves[count] = ([value.value for value in demonstrated], curve.value["mean"])
    return curves


def _read_policies(file: Path) -> Field:
    """Read a file of evaluations; a null among the numbers of a policy is NaN."""
    value = parse_json(file.read_bytes(), str(file))
    for policy in value.values() if isinstance(value, dict) else ():
        if isinstance(policy, dict):
            parts = ("metrics", "demonstrations", "itinerary")
            policy |= {key: nan_for_null(policy[key]) for key in parts if policy.get(key)}
    return Field(value, str(file))


def _check_curve(metric: Field, by_episode: bool) -> None:
    """Raise a ValueError unless a metric has mean and standard error, by episode of the trial or one each."""
    means, errors = (metric[key].items() if by_episode else [metric[key]] for key in ("mean", "stderr"))
    if len(means) != len(errors):
        raise metric["stderr"].error(f"a list of {len(means)}, as many as there are means")
    for value in (*means, *errors):
        _check_number(value)


def _check_number(value: Field) -> None:
    """Raise a ValueError unless a value is a number or NaN."""
    if isinstance(value.value, bool) or not isinstance(value.value, int | float) or abs(value.value) == math.inf:
        raise value.error("a number")


def _values(parent: Field) -> list[Field]:
    """Values of a JSON object."""
    if not isinstance(parent.value, dict):
        raise parent.error("a JSON object")
    return [Field(value, parent.source, f"{parent.path}.{key}".lstrip(".")) for key, value in parent.value.items()]
