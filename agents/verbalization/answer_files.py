"""A model's answers to a file of `memenvs verbalization questions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from memenvs.agents.verbalization.arrays import make_arrays
from memenvs.agents.verbalization.given_questions import GivenQuestions, answer_in_words
from memenvs.agents.verbalization.prediction import AnsweringModel, QuestionBatch
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.encoding import encode_pool
from memenvs.verbalization.language.question_sets import QuestionSet, read_questions, write_questions
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import Data, load_data

HISTORIES = 50
"""Histories that are answered together."""


def fill_in_answers(model: AnsweringModel, path: Path, progress: Callable[[float], None] = lambda share: None) -> int:
    """Fill a model's answers into a file of questions; answers that are there are replaced.

    Args:
        model: The model; it reads the key frames as in its training, whatever the scale of the file's data.
        path: A file that `memenvs.verbalization.language.question_sets.write_questions` has written.
        progress: Called with the share that is done.

    Returns:
        Number of answers.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is of another grammar version, or a setting is wrong; the message names it.
    """
    questions = read_questions(path)
    given: dict[int, list[QuestionAnswer]] = {}
    for item in questions.items():
        given.setdefault(int(item.id.partition("-")[0]), []).append(item.gold)
    config = _config(model.config, questions)
    arrays = make_arrays(GivenQuestions(config, _data(model.config, config), given), lambda share: progress(share / 2))
    model.eval()
    answers: dict[str, str] = {}
    everything = np.arange(len(arrays.numbers))
    for rows in np.split(everything, range(HISTORIES, len(everything), HISTORIES)):
        batch = QuestionBatch(arrays, rows, np.tile(np.arange(questions.questions), (len(rows), 1)))
        for row, found in zip(rows.tolist(), answer_in_words(model, batch), strict=True):
            answers |= {f"{arrays.numbers[row]}-{number}": text for number, (text, _) in enumerate(found)}
        progress((1 + (rows[-1] + 1) / len(everything)) / 2)
    return write_questions(path, questions, answers)


def _config(own: EpisodicQAConfig, questions: QuestionSet) -> EpisodicQAConfig:
    """Return the settings of a file's histories, with key frames as the model knows them."""
    return EpisodicQAConfig(
        preset=questions.preset,  # type: ignore[arg-type]
        lengths=questions.lengths,
        split=questions.split,
        scale=questions.scale,
        data_seed=questions.data_seed,
        paraphrases=questions.paraphrases,
        kinds=KINDS,
        key_frames=own.key_frames,
        modalities=own.modalities,
    )


def _data(own: EpisodicQAConfig, config: EpisodicQAConfig) -> Data:
    """Load histories, with symbols numbered and signals scaled by the split on which the model was trained."""
    data = load_data(config.household(), config.split, config.lengths, config.scale, config.data_seed)
    trained = load_data(own.household(), "train", scale=own.scale, data_seed=own.data_seed)
    frames = encode_pool(data.histories.pool, trained.dictionary, trained.scaling)
    return replace(data, frames=frames, dictionary=trained.dictionary, scaling=trained.scaling)
