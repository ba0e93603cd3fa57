"""Runs that learn to answer questions about a robot's days, and their models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.supervised import MODEL_ONLY, PredictionModel, load_model
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import CHECKPOINT, first_stage_checkpoint
from memenvs.agents.experiments.prediction_experiment import PredictionExperiment
from memenvs.agents.papers.emv.config import AnswererConfig
from memenvs.agents.papers.emv.learner import AnsweringModel, SlotAnswering, TextAnswering
from memenvs.checks import choices_for
from memenvs.registry import find_environment
from memenvs.verbalization.config import EpisodicQAConfig

MEMORY_SETTINGS = ("memory", "memory_kwargs", "size", "dim")
"""Settings of the model that a run shares with the one whose memory it starts with."""
HEAD_SETTINGS = ("head_dim", "head_heads", "head_layers")
"""Settings of the head, also shared if it retrieves for answers in words."""
FRAME_SETTINGS = ("preset", "key_frames", "modalities", "objects", "locations", "scale", "data_seed")
"""Settings of the environment that decide what the numbers of a key frame mean, so that the two share them."""

_FOR_POLICIES: dict[str, Any] = {"sampling": "even", "lengths": (5,), "frames_per_step": 4}
"""Settings of ids for policies that act. In supervised learning the defaults stay, with which results were measured."""


class QuestionExperiment(PredictionExperiment):
    """Runs of a `SupervisedLearner` in EpisodicQA.

    `encoder_from` gives them the memory, the embedding of key frames and the shared vectors; with
    `policy.freeze_memory` it is needed.
    """

    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> AnsweringModel:
        """Make the model of a run; see `PredictionExperiment.make_model`."""
        return make_question_answering(config.env, env_kwargs, config.policy)

    def load_first_stage(self, config: RunConfig, model: PredictionModel) -> None:
        """Load memory and head of another run; see `PredictionExperiment.load_first_stage`."""
        assert isinstance(model, AnsweringModel)
        if config.encoder_from is not None:
            load_memory(model, first_stage_checkpoint(config, "run or checkpoint whose memory this run starts with"))
        elif model.settings.freeze_memory:
            raise ValueError(
                "policy.freeze_memory needs encoder_from, the run or checkpoint whose memory is kept, got None"
            )


def make_question_answering(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> AnsweringModel:
    """Make the model of an environment's histories and questions.

    Args:
        env: Id of an EpisodicQA.
        env_kwargs: Fields of `EpisodicQAConfig`.
        settings: Fields of `AnswererConfig`.

    Raises:
        ValueError: The environment is another one, or a setting is not allowed.
        TypeError: A setting does not exist.
        ImportError: Answers in words need the extra `text`.
    """
    spec = find_environment(env)
    if spec.family != "verbalization":
        raise ValueError(f"env must be an EpisodicQA, such as 'memenvs/EpisodicQA-v0', got {env!r}")
    left_out = _FOR_POLICIES.items()
    own = {
        name: value
        for name, value in spec.defaults.items()
        if (name, value) not in left_out and not name.startswith("trial_")
    }
    allowed = [setting.name for setting in fields(AnswererConfig)]
    for name in settings:
        if name not in allowed:
            raise TypeError(f"unknown setting {name!r} of the model; {choices_for(name, allowed)}")
    config, answerer = EpisodicQAConfig(**{**own, **env_kwargs}), AnswererConfig(**settings)
    return TextAnswering(config, answerer) if answerer.answers == "text" else SlotAnswering(config, answerer)


def load_answering(path: str | PathLike[str]) -> AnsweringModel:
    """Load a trained model. Nothing in a file is executed.

    Args:
        path: Folder of a run of the learner `questions`, or a checkpoint.

    Raises:
        FileNotFoundError: There is no checkpoint.
        ValueError: The file is not whole, of another version, or of another kind of model.
    """
    file = Path(path) / CHECKPOINT if Path(path).is_dir() else Path(path)
    if Path(path).is_dir() and not file.is_file():
        raise FileNotFoundError(f"{path} is no folder of a run that answers questions: it has no {CHECKPOINT}")
    members = archive.read(file, ("config.json",), MODEL_ONLY.__contains__)
    try:
        saved = archive.parse_json(file, members, "config.json", ("env", "env_kwargs", "policy"))
        archive.require(file, members, MODEL_ONLY)
        with torch.random.fork_rng(devices=[]):  # the first weights are drawn, and replaced
            model = make_question_answering(saved["env"], saved["env_kwargs"], saved["policy"])
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{file}: is no model that answers questions about a robot's history ({error})") from None
    load_model(model, file, members)
    return model.eval()


def load_memory(model: AnsweringModel, path: Path) -> None:
    """Take over the memory of a trained model, and its head if that retrieves.

    The embedding of key frames and the shared vectors belong to the memory. One of the two models may answer in words
    and the other one in slots.

    Args:
        model: Model whose weights are replaced.
        path: Checkpoint of a run of the learner `questions`.

    Raises:
        ValueError: As `load_answering`, or a setting of the memory, of the key frames or of a head that retrieves
            differs, or there is no such head.
    """
    try:
        source = load_answering(path)
    except ValueError as error:
        raise ValueError(f"encoder_from: {error}") from None
    retrieval = model.model.retrieval if isinstance(model, TextAnswering) else None
    if retrieval is not None and not isinstance(source, SlotAnswering):
        raise ValueError(f"encoder_from: {path} must have structured answers for text.retrieval, got 'text'")
    settings = MEMORY_SETTINGS if retrieval is None else MEMORY_SETTINGS + HEAD_SETTINGS
    for names, *both in (
        (settings, source.settings, model.settings),
        (FRAME_SETTINGS, source.config, model.config),
    ):
        for name in names:
            saved, own = (json.loads(json.dumps(getattr(config, name))) for config in both)
            if saved != own:
                raise ValueError(f"encoder_from: {path} must have the {name} {own!r} of this run, got {saved!r}")
    theirs, ours = source.model.memory_parts(), model.model.memory_parts()
    if retrieval is not None:
        assert isinstance(source, SlotAnswering)
        theirs["head"], ours["head"] = source.model.head, retrieval.head
    for name, part in ours.items():
        part.load_state_dict(theirs[name].state_dict())
