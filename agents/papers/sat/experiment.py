"""Runs that learn to answer queries about what they have watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memenvs.agents.algorithms.supervised import PredictionModel
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment, trained_model
from memenvs.agents.experiments.report import Report, figure_png
from memenvs.agents.papers.sat.figures import episode_memory_figure, sample_answers, strip_figure
from memenvs.agents.papers.sat.learner import SATPrediction, make_prediction
from memenvs.files import write_file
from memenvs.query_task import make_query_task

FIGURES = {
    "answers": "The right pictures, and those of the model.",
    "memory": "What the memory holds at each step of an episode: a column is the memory at one step.",
}
"""Stem of a picture in the folder of a run -> its caption in the report."""


class SATExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in a `QueryTask`."""

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> PredictionModel:
        """Make the model of a run by its environment; see `PredictionExperiment.make_model`."""
        return make_prediction(make_query_task(config.env, env_kwargs), config.policy)

    def evaluate(
        self, run: RunDirectory, name: str = "evaluation", *, seed: int = 1, quiet: bool = False, **changes: Any
    ) -> dict[str, Any]:
        """Evaluate, and draw answers and memory; see `PredictionExperiment.evaluate`."""
        result = super().evaluate(run, name, seed=seed, quiet=quiet, **changes)
        if name == "evaluation":
            draw_answers(run, seed)
        return result

    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        """Add learning curves, scores and figures; see `Experiment.add_to_report`."""
        super().add_to_report(report, runs)
        for run in runs:
            for stem, caption in FIGURES.items():
                file = run.path / f"{stem}.png"
                if file.is_file():
                    prefix = "" if len(runs) == 1 else f"{run.path.resolve().name}_"
                    report.picture(f"{prefix}{stem}", file.read_bytes(), f"{prefix.rstrip('_')} {caption}".strip())


def draw_answers(run: RunDirectory, seed: int = 1) -> None:
    """Draw answers and memory of a run of a picture task into its folder."""
    model = trained_model(run)
    if not isinstance(model, SATPrediction) or model.model.task.pictures == "frames":
        return
    if not model.model.task.classes:
        truth, answers = sample_answers(model, seed)
        write_file(run.path / "answers.png", figure_png(strip_figure(truth, {"model": answers})))
    if model.model.capacity is not None:
        write_file(run.path / "memory.png", figure_png(episode_memory_figure(model, seed)))
