"""Runs that learn to answer questions about a robot's days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment
from memenvs.agents.verbalization.prediction import QuestionAnswering, make_question_answering


class QuestionExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in EpisodicQA."""

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> QuestionAnswering:
        """Make the `QuestionAnswering` of a run; see `PredictionExperiment.make_model`."""
        return make_question_answering(config.env, env_kwargs, config.policy)
