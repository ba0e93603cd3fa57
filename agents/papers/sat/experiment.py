"""Runs that learn to answer queries about what they have watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memenvs.agents.algorithms.supervised import PredictionModel
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment, trained_model
from memenvs.agents.experiments.report import Report, figure_png
from memenvs.agents.papers.sat.figures import sample_answers, strip_figure
from memenvs.agents.papers.sat.learner import SATPrediction, make_prediction
from memenvs.files import write_file
from memenvs.query_task import PictureTask, make_query_task

ANSWERS = "answers.png"
"""Picture in the folder of a run."""


class SATExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in a `PictureTask`."""

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> PredictionModel:
        """Make the model of a run by its environment; see `PredictionExperiment.make_model`."""
        task = make_query_task(config.env, env_kwargs)
        if not isinstance(task, PictureTask):
            raise ValueError(f"env must be one whose steps show pictures, got {config.env!r}")
        return make_prediction(task, config.policy)

    def evaluate(
        self, run: RunDirectory, name: str = "evaluation", *, seed: int = 1, quiet: bool = False, **changes: Any
    ) -> dict[str, Any]:
        """Evaluate, and draw answers; see `PredictionExperiment.evaluate`."""
        result = super().evaluate(run, name, seed=seed, quiet=quiet, **changes)
        if name == "evaluation":
            draw_answers(run, seed)
        return result

    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        """Add learning curves, scores and answers; see `Experiment.add_to_report`."""
        super().add_to_report(report, runs)
        for run in runs:
            file = run.path / ANSWERS
            if file.is_file():
                name = "" if len(runs) == 1 else run.path.resolve().name
                caption = f"{name} The right pictures, and those of the model.".strip()
                report.picture(f"{name}_{file.stem}".strip("_"), file.read_bytes(), caption)


def draw_answers(run: RunDirectory, seed: int = 1) -> None:
    """Draw answers of a run that answers with pictures into its folder."""
    model = trained_model(run)
    if not isinstance(model, SATPrediction) or model.model.task.pictures == "frames" or model.model.task.classes:
        return
    truth, answers = sample_answers(model, seed)
    write_file(run.path / ANSWERS, figure_png(strip_figure(truth, {"model": answers})))
