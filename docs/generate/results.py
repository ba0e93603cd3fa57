"""Figures of the rows of studies, for the pages of memories, algorithms and presets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from generate.markdown import table
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.statistics import format_digits
from memenvs.agents.memory import MEMORIES
from memenvs.agents.papers.sat.config import BalletModelConfig
from memenvs.agents.presets import PRESETS
from memenvs.agents.study import ROWS, Rows, find_studies, load_study, read_rows, settings_hash

#: Evaluation of a run that counts: the first of these that it has. "homes" has the mean of each metric by home.
EVALUATIONS = ("evaluation", "homes")


@dataclass(frozen=True)
class Result:
    """Runs of one method in one task of a study, with different seeds.

    Attributes:
        study: Name of the study.
        task: Name of the task.
        method: Name of the method.
        config: Settings, without the seed.
        scores: float64, (seeds,), or (seeds, episodes) of a trial of several.
        seconds: CPU seconds of a run, where they were measured.
    """

    study: str
    task: str
    method: str
    config: RunConfig
    scores: np.ndarray
    seconds: float | None

    def score(self) -> str:
        """Mean and 95 % interval over seeds; of trials, those of the first and the last episode."""
        if self.scores.ndim == 1 or self.scores.shape[1] == 1:
            return format_digits(self.scores.reshape(len(self.scores)))
        first, last = (format_digits(self.scores[:, episode]) for episode in (0, -1))
        return f"{first} to {last} (episodes 1 to {self.scores.shape[1]})"

    @property
    def command(self) -> str:
        """Command that makes all runs of the study."""
        return f"memenvs study {self.study}"


@cache
def all_results() -> tuple[Result, ...]:
    """Every method in every task of the studies that has rows of trained agents."""
    results = []
    for name, file in find_studies().items():
        study, rows = load_study(file), read_rows(file.with_name(ROWS))
        for task, configs in study.configs.items():
            for method, config in configs.items():
                scores = _scores(rows, task, method, config.score)
                if len(scores):
                    seconds = [row.get("cpu_seconds") for row in rows.of(task, method)]
                    measured = [second for second in seconds if second is not None]
                    mean = float(np.mean(measured)) if measured else None
                    results.append(Result(name, task, method, config, scores, mean))
    return tuple(results)


def _scores(rows: Rows, task: str, method: str, metric: str) -> np.ndarray:
    """Scores of the first of `EVALUATIONS` that a method has; empty without any."""
    if rows.results(task, method, EVALUATIONS[0]):
        return rows.means(task, method, metric)
    return np.array([np.mean(homes[metric]) for homes in rows.results(task, method, EVALUATIONS[1])])


def results_of_preset(name: str) -> list[Result]:
    """Results with the settings of a preset. Devices and sizes of evaluations may differ."""
    same = _as_trained(PRESETS[name].config)
    return [result for result in all_results() if _as_trained(result.config) == same]


def _as_trained(config: RunConfig) -> str:
    """Hash of the settings on which training depends: those of evaluation and device are the defaults."""
    evaluation = ("seed", "device", "encoder_from", "eval_kwargs", "eval_steps", "eval_trials", "eval_all_layouts")
    defaults = RunConfig()
    return settings_hash(replace(config, **{name: getattr(defaults, name) for name in evaluation}))


def memory_of(config: RunConfig) -> str | None:
    """Name of the memory that a run learns with; None for a model that has none of `MEMORIES`."""
    if config.kind.name == "imitation":
        return None
    memory: str = config.policy.get(
        "memory", BalletModelConfig().memory if config.kind.name == "supervised" else "relic"
    )
    return "dnc" if memory.startswith("dnc") else memory


def results_table(results: Iterable[Result]) -> str:
    """Tabulate results with links to their studies; empty without any."""
    rows = [
        (
            f"[{result.study}](../studies/{result.study}.md)",
            result.task,
            result.method,
            environment_name(result.config),
            result.config.score,
            result.score().replace("+-", "±"),
            len(result.scores),
        )
        for result in results
    ]
    return table(("study", "task", "method", "environment", "metric", "result", "seeds"), rows) if rows else ""


def environment_name(config: RunConfig) -> str:
    """The id without the namespace."""
    return config.env.partition("/")[2]


def flat_settings(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value of nested settings."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        flat |= flat_settings(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key: value}
    return flat


def memory_page(memory: str) -> str:
    """File of a memory's page, such as t_fifo_a.md."""
    return re.sub(r"\W", "_", memory) + ".md"


def linked(text: str) -> str:
    """Make a text of a docstring Markdown: links to memories and papers, and squares."""
    text = re.sub(r"\b([A-Z])\^2", r"\1²", text)
    text = re.sub(r"arXiv:(\d{4}\.\d{5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)
    text = re.sub(r"doi:(10\.[^\s)]+)", r"[doi:\1](https://doi.org/\1)", text)
    return re.sub(r"`([\w+-]+)`", lambda match: _linked_name(match[1]), text)


def _linked_name(name: str) -> str:
    return f"[`{name}`](../memories/{memory_page(name)})" if name in MEMORIES else f"`{name}`"
