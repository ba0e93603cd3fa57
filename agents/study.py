"""Studies: many runs that are compared, as data.

A study is a file `study.py` with a `STUDY`. Beside it is `rows.jsonl`, with a line of JSON for each finished run.
Beside another `NAME.py` it is `NAME.jsonl`. The command `study` trains the runs that have no row yet, evaluates them,
appends their rows, and prints the tables; `memenvs.agents.work` does that.

Fields of a row:
    task, method, seed: Which run it is; the seed of a scripted policy is null.
    env, steps: Environment id, and total steps of the run.
    settings: `settings_hash` of the run.
    cpu_seconds: CPU seconds of training and evaluation; null where the run was resumed.
    versions: Versions of Python and packages as the run began, where they are known.
    evaluations: Name of an evaluation -> what its function returned.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import VERSIONS, RunDirectory, versions
from memenvs.agents.experiments.train import train_run
from memenvs.checks import choices_for
from memenvs.files import list_files, write_file
from memenvs.json_records import nan_for_null, parse_json
from memenvs.registry import find_environment

if TYPE_CHECKING:
    from memenvs.agents.experiments.trial_evaluator import TrialResults

STUDY, ROWS = "study.py", "rows.jsonl"
"""Names of the file of a study and of that of its rows."""
EVALUATION = "evaluation"
"""Name of the evaluation of a study that names none."""
DROPPED = ("stderr_clustered", "count")
"""Parts of an evaluated metric that no table shows."""
FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "task": str,
    "method": str,
    "seed": (int, NoneType),
    "settings": str,
    "evaluations": dict,
}
"""Fields that every row has, and their types."""
Cell = tuple[str, str, int | None]
"""Task, method and seed of a run; the seed of a scripted policy is None."""


class Table(NamedTuple):
    """A table of a study.

    Attributes:
        title: Line above it; "" for none.
        header: Names of the columns.
        lines: Cells of each line, as many as columns.
    """

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[Any]]

    def markdown(self) -> str:
        """The table as Markdown, with its title above it."""
        lines = [self.header, ["---"] * len(self.header), *self.lines]
        table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines).replace("+-", "±")
        return f"{self.title}\n\n{table}\n" if self.title else f"{table}\n"


class Rows:
    """Rows of a study, by task and method.

    Args:
        rows: Rows in any order.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows: dict[tuple[str, str], dict[int | None, Mapping[str, Any]]] = {}
        for row in rows:
            self._rows.setdefault((row["task"], row["method"]), {})[row["seed"]] = row

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (row for seeds in self._rows.values() for row in seeds.values())

    def __contains__(self, cell: object) -> bool:
        """True if there is a row of this task, method and seed."""
        return isinstance(cell, tuple) and cell[2] in self._rows.get(cell[:2], {})

    def of(self, task: str, method: str) -> list[Mapping[str, Any]]:
        """Rows of a method in a task, one per seed, in the order of seeds."""
        seeds = self._rows.get((task, method), {})
        return [seeds[seed] for seed in sorted(seeds, key=lambda seed: (seed is None, seed))]

    def methods(self, task: str) -> list[str]:
        """Methods of a task that have rows."""
        return [method for own, method in self._rows if own == task]

    def results(self, task: str, method: str, evaluation: str = EVALUATION) -> list[Any]:
        """Results of an evaluation, of the seeds that have it, in their order."""
        rows = self.of(task, method)
        return [row["evaluations"][evaluation] for row in rows if evaluation in row["evaluations"]]

    def means(
        self, task: str, method: str, metric: str, evaluation: str = EVALUATION, policy: str = "agent"
    ) -> np.ndarray:
        """Mean of a metric in an evaluation of `play_trials`.

        Returns:
            float64, (R,) of R seeds, or (R, E) of a metric by episode of the trial, where E is the smallest number of
            episodes that a run has. (0,) where no run has the evaluation.

        Raises:
            KeyError: A run has no such metric or policy.
        """
        results = self.results(task, method, evaluation)
        means = [np.array(result[policy]["metrics"][metric]["mean"], np.float64) for result in results]
        if not means or means[0].ndim == 0:
            return np.array(means)
        episodes = min(map(len, means))
        return np.array([mean[:episodes] for mean in means])


@dataclass(frozen=True)
class Played:
    """A run that has been trained, or a scripted policy, for the evaluations of a study.

    Attributes:
        task: Name of its task.
        method: Name of its method, or of a scripted policy.
        config: Settings; of a scripted policy those of the evaluation alone.
        run: Folder of the run; None for a scripted policy.
        smoke: Whether this only shows that everything runs: trials and steps are then those of `config` at most.
        quiet: Whether no progress bar is shown.
    """

    task: str
    method: str
    config: RunConfig
    run: RunDirectory | None
    smoke: bool = False
    quiet: bool = True

    def play(self, seed: int = 1, *, policy: Any = None, demonstrations: int = 0, **changes: Any) -> TrialResults:
        """Play the evaluation trials.

        Args:
            seed: Seed of the evaluation.
            policy: Policy to play; None for that of the run, or the scripted one.
            demonstrations: Episodes of the oracle at the start of each trial, of a trained run.
            **changes: Fields of the settings to change, such as `eval_trials` or `eval_kwargs`.

        Raises:
            ValueError: A scripted policy cannot play so.
        """
        from memenvs.agents.experiments.evaluate import evaluate_rule, evaluate_run  # torch takes seconds

        if self.smoke:
            limits = {name: getattr(self.config, name) for name in ("eval_trials", "eval_steps") if name in changes}
            changes |= {name: min(changes[name], limit) for name, limit in limits.items()}
        if self.run is None:
            if policy is not None or demonstrations:
                raise ValueError(f"policy and demonstrations are of a trained run, got them for {self.method!r}")
            return evaluate_rule(replace(self.config, **changes), self.method, seed, self.quiet)
        options: dict[str, Any] = {"demonstrations": demonstrations, "quiet": self.quiet, **changes}
        return evaluate_run(self.run, policy, seed=seed, **options)


def play_trials(played: Played, *metrics: str, seed: int = 1, **changes: Any) -> dict[str, Any]:
    """Evaluation of a study: means and errors of the metrics of the evaluation trials.

    Args:
        played: The run.
        *metrics: Names of the metrics to keep; none for all.
        seed: Seed of the evaluation.
        **changes: As `Played.play`.

    Returns:
        "agent" -> `TrialResults.to_json` without what no table shows.
    """
    return {"agent": compact(played.play(seed, **changes).to_json(), metrics)}


def play_milestone(played: Played, steps: int, *metrics: str, seed: int = 1, **changes: Any) -> dict[str, Any] | None:
    """Evaluation of a study: as `play_trials`, of the run as it was earlier in training.

    Args:
        played: The run.
        steps: Steps after which its policy was kept.
        *metrics: Names of the metrics to keep; none for all.
        seed: Seed of the evaluation.
        **changes: As `Played.play`.

    Returns:
        As `play_trials`; None where no policy was kept then.
    """
    from memenvs.agents.experiments.evaluate import trained_policy  # torch takes seconds

    name = f"checkpoint_{steps}.zip"
    if played.run is None or not (played.run.path / name).is_file():
        return None
    return play_trials(played, *metrics, seed=seed, policy=trained_policy(played.run, seed, name), **changes)


def compact(content: Any, metrics: Sequence[str] = ()) -> Any:
    """Drop what no table shows: the keys in `DROPPED`, and metrics that are not named."""
    if not isinstance(content, dict):
        return content
    if any(name in content for name in metrics):
        content = {name: value for name, value in content.items() if name in metrics}
    return {name: compact(value, metrics) for name, value in content.items() if name not in DROPPED}


def grid(tasks: Mapping[str, RunConfig], methods: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, RunConfig]]:
    """Settings of each method in each task.

    Args:
        tasks: Name -> complete settings, those of a run without its seed.
        methods: Name -> changes of the settings: dotted name -> value, such as {"policy.memory": "lstm"}; "learner"
            takes a whole config, such as that of another learner.

    Returns:
        Task -> method -> settings.
    """
    return {
        task: {method: changed(config, changes) for method, changes in methods.items()}
        for task, config in tasks.items()
    }


def changed(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Settings with some of them changed, by their dotted names; see `grid`."""
    learner = {"learner": changes["learner"]} if "learner" in changes else {}
    return replace(with_overrides(config, [item for item in changes.items() if item[0] != "learner"]), **learner)


def settings_hash(config: RunConfig) -> str:
    """Hash of all settings of a run, 16 hexadecimal digits.

    Of `encoder_from` only the name of the folder counts, since folders of runs are moved. Settings that are None do not
    count, so that a row stays valid when a version adds one that is off by default, or a learner.
    """
    data = _without_none(config.without_path().to_json())
    if data.get("eval_envs") == data.get("n_envs"):  # as in rows of before this setting
        data.pop("eval_envs", None)
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def _without_none(data: Any) -> Any:
    """Drop the keys of a mapping and of those in it whose value is None."""
    if not isinstance(data, dict):
        return data
    return {name: _without_none(value) for name, value in data.items() if value is not None}


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run of PPO to a single rollout in four environments, evaluated in four trials."""
    return replace(config, n_envs=4, eval_envs=4, total_steps=1, eval_trials=4)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Runs that are compared: settings, evaluations, tables and figures.

    Attributes:
        title: Title of the report.
        configs: Task -> method -> settings, without their seed; `grid` makes them. In `encoder_from`, the name of
            another run of the study, "{seed}" stands for the seed.
        seeds: Seeds of each run.
        sources: Methods that only give others their first weights. They have no rows, and are trained where a run that
            begins with one is.
        evaluations: Name -> function of a trained run, or of a scripted policy, that returns plain data; None where the
            evaluation is not made, such as without `MEMENVS_DATA`.
        scripted: Policies that do not learn, such as "random" and "oracle", played once a task. A rule that the id of
            a task does not have is left out.
        tables: Makes the tables. Any row may be missing.
        figures: Name of the file, without its ending -> function that draws it; or a function that returns None where
            rows are missing.
        smoke: Shortens the settings of a run to seconds.
        run_name: Name of the folder of a run, which `encoder_from` names.
    """

    title: str
    configs: Mapping[str, Mapping[str, RunConfig]]
    seeds: Sequence[int] = (0, 1, 2)
    sources: Sequence[str] = ()
    evaluations: Mapping[str, Callable[[Played], Any]] = field(default_factory=lambda: {EVALUATION: play_trials})
    scripted: Sequence[str] = ()
    tables: Callable[[Rows], Sequence[Table]]
    figures: Mapping[str, Callable[[Rows], Figure | None]] = field(default_factory=dict)
    smoke: Callable[[RunConfig], RunConfig] = shorten
    run_name: str = "{task}-{method}-{seed}"

    def config(self, cell: Cell) -> RunConfig:
        """Settings of a run; of a scripted policy those of the evaluation alone.

        Raises:
            ValueError: The study has no such task or method.
        """
        task, method, seed = cell
        _check("task", task, self.configs)
        methods = self.configs[task]
        if seed is None:
            return _without_training(next(iter(methods.values())))
        _check("method", method, methods)
        config = methods[method]
        source = config.encoder_from and config.encoder_from.format(seed=seed)
        return replace(config, seed=seed, encoder_from=source)

    def cells(self, tasks: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
        """Runs of the study: scripted policies first, then seed by seed.

        Args:
            tasks: Tasks; none for all.
            methods: Methods or scripted policies; none for all.
            seeds: Seeds.

        Raises:
            ValueError: The study has no such task or method, and the message lists those that it has; or none of the
                tasks has one of the methods. No task has a scripted policy of the study.
        """
        every = {*self.scripted, *(name for own in self.configs.values() for name in own)}
        for name in tasks:
            _check("task", name, self.configs)
        for name in methods:
            _check("method", name, every)
        chosen = methods or every
        rules = {
            task: (*find_environment(self.config((task, "", None)).env).policies, "random", "oracle")
            for task in self.configs
        }
        for name in self.scripted:
            _check("scripted policy", name, {rule for names in rules.values() for rule in names})
        cells: list[Cell] = [
            (task, name, None)
            for task in tasks or self.configs
            for name in self.scripted
            if name in chosen and name in rules[task]
        ]
        for seed in seeds:
            for task in tasks or self.configs:
                cells += [(task, name, seed) for name in self.configs[task] if name in chosen]
        if methods and seeds and not cells:
            names = {name: list(own) for name, own in self.configs.items() if name in (tasks or self.configs)}
            raise ValueError(f"no task has one of the methods {list(methods)}; methods by task: {names}")
        return cells

    def name(self, cell: Cell) -> str:
        """Name of the folder of a run, with "-" for spaces; of a rule the seed is "scripted"."""
        task, method, seed = cell
        number = "scripted" if seed is None else seed
        return self.run_name.format(task=task, method=method, seed=number).replace(" ", "-")

    def source(self, cell: Cell) -> Cell | None:
        """The run whose weights another one begins with; None where it begins with new weights.

        Raises:
            ValueError: The study has no run of the name that `encoder_from` gives.
        """
        name, seed = self.config(cell).encoder_from, cell[2]
        if name is None or seed is None:
            return None
        names = {self.name(other): other for other in self.cells((), (), [seed])}
        _check("run", name, names)
        return names[name]

    def measure(self, cell: Cell, out: Path, *, smoke: bool = False, quiet: bool = True) -> dict[str, Any]:
        """Train or resume a run and evaluate it, or play a scripted policy.

        Args:
            cell: The run.
            out: Folder with the folders of runs.
            smoke: Shorten it to seconds.
            quiet: Show no progress bar.

        Returns:
            The row.
        """
        config, began = self.runnable(cell, out, smoke), time.process_time()
        row: dict[str, Any] = dict(zip(("task", "method", "seed"), cell, strict=True))
        row |= {"env": config.env, "steps": 0, "settings": settings_hash(config)}
        if cell[2] is None:
            evaluations = self._evaluate(Played(*cell[:2], config, None, smoke, quiet))
            return row | {"versions": versions(), "evaluations": evaluations}
        with RunDirectory.open_or_create(out / self.name(cell), config) as run:
            is_whole = not run.has_checkpoint
            train_run(run, quiet=quiet)
            evaluations = self._evaluate(Played(*cell[:2], config, run, smoke, quiet))
            file = run.path / VERSIONS
            row |= {"steps": config.total_steps, "versions": parse_json(file.read_bytes(), str(file))}
        seconds = round(time.process_time() - began, 1) if is_whole else None
        return row | {"cpu_seconds": seconds, "evaluations": evaluations}

    def _evaluate(self, played: Played) -> dict[str, Any]:
        """Results of all evaluations that are made."""
        results = {name: evaluate(played) for name, evaluate in self.evaluations.items()}
        return {name: result for name, result in results.items() if result is not None}

    def runnable(self, cell: Cell, out: Path, smoke: bool = False) -> RunConfig:
        """Settings with which a run is trained in a folder."""
        config = self.config(cell)
        if smoke and cell[2] is None:
            return _without_training(self.smoke(next(iter(self.configs[cell[0]].values()))))
        if config.encoder_from is not None:
            config = replace(config, encoder_from=str(out / config.encoder_from))
        return self.smoke(config) if smoke else config

    def stale(self, rows: Rows) -> list[str]:
        """Names of the rows whose settings are not those that the study has now."""
        names = []
        for row in rows:
            cell = (row["task"], row["method"], row["seed"])
            try:
                same = settings_hash(self.config(cell)) == row["settings"]
            except ValueError:
                same = False
            if not same:
                names.append(self.name(cell))
        return names


def _without_training(config: RunConfig) -> RunConfig:
    """Settings of the evaluation of a run: all that the results of a scripted policy depend on."""
    names = ("env", "env_kwargs", "eval_kwargs", "eval_envs", "eval_steps", "eval_trials", "eval_all_layouts", "score")
    return RunConfig(**{name: getattr(config, name) for name in names})


def _check(kind: str, name: str, names: Iterable[str]) -> None:
    """Raise a ValueError if a study has no task or method of this name."""
    if name not in names:
        raise ValueError(f"unknown {kind} {name!r}; {choices_for(name, list(names))}")


def load_study(file: Path) -> Study:
    """Import the `STUDY` of a file.

    The file can import modules of its folder relatively, as `from .tables import ...`.

    Raises:
        FileNotFoundError: There is no such file.
        TypeError: It has no `STUDY` of class `Study`.
    """
    file = file.resolve()
    if not file.is_file():
        raise FileNotFoundError(f"no study {file}")
    package = f"memenvs_study_{hashlib.sha256(str(file.parent).encode()).hexdigest()[:16]}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(file.parent)]
    study = getattr(import_module(f"{package}.{file.stem}"), "STUDY", None)
    if not isinstance(study, Study):
        raise TypeError(f"{file} must define STUDY = Study(...), got {study!r}")
    return study


def find_studies() -> dict[str, Path]:
    """Name -> file of each study of this repository; none in an installed package."""
    folder = Path(__file__).resolve().parents[1] / "studies"
    return {file.parent.name: file for file in list_files(folder, f"*/{STUDY}")}


def rows_file_of(file: Path) -> Path:
    """File of the rows of a study: `rows.jsonl` of `study.py`, `NAME.jsonl` of `NAME.py`."""
    return file.with_name(ROWS if file.name == STUDY else f"{file.stem}.jsonl")


def read_rows(file: Path) -> Rows:
    """Read the rows of a study; none where there is no file.

    Raises:
        ValueError: A line is no row; the message names it.
    """
    rows = []
    for number, line in enumerate(file.read_bytes().splitlines() if file.is_file() else (), 1):
        row = parse_json(line, f"{file}, line {number}")
        if not isinstance(row, dict) or not all(isinstance(row.get(name, ...), kind) for name, kind in FIELDS.items()):
            raise ValueError(f"{file}, line {number}: a row must have task, method, seed, settings and evaluations")
        rows.append({**row, "evaluations": nan_for_null(row["evaluations"])})
    return Rows(rows)


def draw_figures(study: Study, rows: Rows, folder: Path) -> list[Path]:
    """Draw the figures of a study into a folder, as PNG files.

    Only figures that are not None are written.
    """
    from memenvs.agents.experiments.report import small_png

    files = []
    for name, draw in study.figures.items():
        figure = draw(rows)
        if figure is not None:
            write_file(folder / f"{name}.png", small_png(figure))
            files.append(folder / f"{name}.png")
    return files
