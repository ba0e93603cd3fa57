"""Runs that learn Room Ballet by prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memenvs.agents.algorithms.supervised import PredictionModel
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment
from memenvs.agents.sat.prediction import make_prediction_model


class BalletExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in Room Ballet."""

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> PredictionModel:
        """Make the `BalletPrediction` of a run; see `PredictionExperiment.make_model`."""
        return make_prediction_model(config.env, env_kwargs, config.policy)
