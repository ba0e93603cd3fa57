"""Trained models that answer questions, from their runs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import torch

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.supervised import load_model
from memenvs.agents.experiments.directory import CHECKPOINT
from memenvs.agents.verbalization.experiment import make_question_answering
from memenvs.agents.verbalization.prediction import AnsweringModel

MEMBERS = ("config.json", "model.safetensors")
"""Members of a checkpoint that answering needs; training needs more."""


def load_answering(path: str | PathLike[str]) -> AnsweringModel:
    """Load a trained model. Nothing in a file is executed.

    Args:
        path: Folder of a run of the learner `questions`, or a checkpoint.

    Raises:
        FileNotFoundError: There is no checkpoint.
        ValueError: The file is not whole, of another version, or of another kind of model.
    """
    file = Path(path) / CHECKPOINT if Path(path).is_dir() else Path(path)
    members = archive.read(file, MEMBERS)
    saved = archive.parse_json(file, members, "config.json", ("env", "env_kwargs", "policy"))
    try:
        with torch.random.fork_rng(devices=[]):  # the first weights are drawn, and replaced
            model = make_question_answering(saved["env"], saved["env_kwargs"], saved["policy"])
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{file}: is no model that answers questions about a robot's history ({error})") from None
    load_model(model, file, members)
    return model.eval()
