"""Figures of the runs in results/, for the pages of memories, algorithms and presets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from generate.markdown import table
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.statistics import format_digits
from memenvs.agents.memory import MEMORIES
from memenvs.agents.presets import PRESETS, find_preset
from memenvs.agents.presets.preset import SEPARATOR
from memenvs.agents.sat.config import BalletModelConfig
from memenvs.agents.studies.in_context_tables import LAST_EPISODE
from memenvs.agents.studies.study_results import has_results, metric_means, read_result
from memenvs.agents.study import Study, find_studies, load_study
from memenvs.files import list_files

ROOT = Path(__file__).parents[2]
#: Overrides of a run that make no other agent of it: the first stage that it starts from, the size of its evaluation,
#: the device that it learned on.
SAME_AGENT = ("encoder_from", "eval_trials", "device")


@dataclass(frozen=True)
class Result:
    """Runs of one preset with different seeds.

    Attributes:
        preset: Name that `find_preset` knows.
        config: Settings of the preset.
        folders: Folder of each run, or its place beside the table that has its row.
    """

    preset: str
    config: RunConfig
    folders: tuple[Path, ...]

    @property
    def study(self) -> str:
        """Name of the folder of results/."""
        return self.folders[0].parent.name

    def score(self) -> str:
        """Mean and 95 % interval over seeds; of trials, those of the first and the last episode."""
        means = metric_means(self.folders, self.config.score)
        if means.ndim == 1 or means.shape[1] == 1:
            return format_digits(means.reshape(len(means)))
        means = means[:, :LAST_EPISODE]
        first, last = (format_digits(means[:, episode]) for episode in (0, -1))
        return f"{first} to {last} (episodes 1 to {means.shape[1]})"

    def hours(self) -> float | None:
        """Mean hours of learning on one core, where the runs have recorded them."""
        if not has_results(self.folders[0], "curve"):
            return None
        return float(np.mean([read_result(folder, "curve")["hours"][-1] for folder in self.folders]))


@cache
def all_results() -> tuple[Result, ...]:
    """Presets and variants with runs in results/; ablations that are none of them are left out."""
    found: dict[tuple[str, str], list[Path]] = {}
    for file in list_files(ROOT / "results", "*/*.jsonl"):
        for row in map(json.loads, file.read_text().splitlines()):
            if "preset" in row and "evaluation" in row["evaluations"] and set(row["overrides"]) <= set(SAME_AGENT):
                found.setdefault((file.parent.name, row["preset"]), []).append(file.with_name(row["run"]))
    return tuple(Result(name, find_preset(name), tuple(runs)) for (_, name), runs in found.items())


def memory_of(config: RunConfig) -> str | None:
    """Name of the memory that a run learns with; None for a model that has none of `MEMORIES`."""
    if config.kind.name == "imitation":
        return None
    memory: str = config.policy.get(
        "memory", BalletModelConfig().memory if config.kind.name == "supervised" else "relic"
    )
    return "dnc" if memory.startswith("dnc") else memory


def results_table(results: Iterable[Result]) -> str:
    """Tabulate results, one row a preset, with links to their studies; empty without any."""
    rows = [
        (
            f"`{each.preset}`",
            environment_name(each.config),
            each.config.score,
            each.score().replace("+-", "±"),
            len(each.folders),
            study_link(each),
        )
        for each in results
    ]
    return table(("preset", "environment", "metric", "result", "seeds", "study"), rows) if rows else ""


def study_link(result: Result) -> str:
    """Link to the results page of a study."""
    page, _ = study_page(result.study)
    title = (ROOT / "docs" / page).read_text().partition("\n")[0].removeprefix("# ").partition(":")[0]
    return f"[{title}](../{page})"


@cache
def study_page(study: str) -> tuple[str, str]:
    """Page of a study, relative to docs/, and the command that makes all of its runs.

    The page is NAME.md of the note `results_NAME.md`, or the one whose table `docs/results.py STUDY` prints. A study
    without a page has its note alone.

    Raises:
        ValueError: No note has a command that reads the study's folder of results/.
    """
    docs = ROOT / "docs"
    for note in list_files(docs / "research_notes", "*.md"):
        found = re.search(rf"made by: (.*) --show(.*) --out results/{study}( .*)? -->", note.read_text())
        if found:
            printed = f"made by: python docs/results.py {study} -->"
            own = docs / note.name.removeprefix("results_")
            pages = [each for each in list_files(docs, "*.md") if each == own or printed in each.read_text()]
            page = own if own in pages else [*pages, note][0]
            return page.relative_to(docs).as_posix(), "".join(each or "" for each in found.groups())
    raise ValueError(f"no page docs/research_notes/*.md shows results/{study}")


def studies_with(applies: Callable[[RunConfig], bool]) -> list[str]:
    """Names of the studies that have a run whose settings fulfil a condition."""
    return [name for name, study in _studies().items() if any(map(applies, _configs(study)))]


def study_links(names: Iterable[str]) -> str:
    """Link to the pages of studies; empty without any."""
    links = ", ".join(f"[{_studies()[name].title}](../studies/{name}.md)" for name in names)
    return f"Studies: {links}." if links else ""


@cache
def _studies() -> dict[str, Study]:
    return {name: load_study(file) for name, file in find_studies().items()}


def _configs(study: Study) -> Iterator[RunConfig]:
    return (config for methods in study.configs.values() for config in methods.values())


def presets_with(memory: str) -> list[str]:
    """List the presets with a memory, or the first variant that has it."""
    return [names[memory] for names in _first_by_memory() if memory in names]


@cache
def _first_by_memory() -> list[dict[str | None, str]]:
    """Of each preset: memory -> its name, or that of the first variant with this memory."""
    found = []
    for name, preset in PRESETS.items():
        names: dict[str | None, str] = {}
        for each in (name, *(f"{name}{SEPARATOR}{variant}" for variant in preset.variants)):
            names.setdefault(memory_of(find_preset(each)), each)
        found.append(names)
    return found


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
    return re.sub(r"`([\w+-]+)`", lambda found: _linked_name(found[1]), text)


def _linked_name(name: str) -> str:
    return f"[`{name}`](../memories/{memory_page(name)})" if name in MEMORIES else f"`{name}`"
