"""Runs that learn to answer questions about a robot's days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment
from memenvs.agents.verbalization.config import AnswererConfig
from memenvs.agents.verbalization.prediction import AnsweringModel, QuestionAnswering
from memenvs.agents.verbalization.text_prediction import TextAnswering
from memenvs.checks import choices_for
from memenvs.registry import find_environment
from memenvs.verbalization.config import EpisodicQAConfig


class QuestionExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in EpisodicQA."""

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> AnsweringModel:
        """Make the model of a run; see `PredictionExperiment.make_model`."""
        return make_question_answering(config.env, env_kwargs, config.policy)


def make_question_answering(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> AnsweringModel:
    """Make the model of an environment's histories and questions.

    Args:
        env: Id of an EpisodicQA.
        env_kwargs: Fields of `EpisodicQAConfig`.
        settings: Fields of `AnswererConfig`.

    Raises:
        ValueError: The environment is another one, or a setting is not allowed.
        TypeError: A setting does not exist.
        FileNotFoundError: Weights of the text model are missing.
        ImportError: They need the extra `text`.
    """
    spec = find_environment(env)
    if spec.family != "verbalization":
        raise ValueError(f"env must be an EpisodicQA, such as 'memenvs/EpisodicQA-v0', got {env!r}")
    own = {name: value for name, value in spec.defaults.items() if not name.startswith("trial_")}
    known = [each.name for each in fields(AnswererConfig)]
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown setting {name!r} of the model; {choices_for(name, known)}")
    config, answerer = EpisodicQAConfig(**{**own, **env_kwargs}), AnswererConfig(**settings)
    return TextAnswering(config, answerer) if answerer.answers == "text" else QuestionAnswering(config, answerer)
