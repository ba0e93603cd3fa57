"""EpisodicQA: which memory of constant size answers about a robot's days."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.papers.emv.data import load_arrays
from memenvs.agents.papers.emv.learner import AnsweringModel, QuestionBatch
from memenvs.agents.papers.emv.slots import kinds_of
from memenvs.agents.presets import find_preset
from memenvs.agents.study import EVALUATION, Played, Study, changed
from memenvs.verbalization.language.score import CATEGORIES, CORRECT
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import split_size

from .tables import FOLDS, LONG_LENGTHS, MANY_LENGTH, TASK, TIMES, draw, make_tables

#: Histories that are answered together.
HISTORIES = 50
#: Questions about each history that is longer than those of the tests.
LONG_QUESTIONS = 20
#: Changes of the preset in which all wide models agree: vectors of twice as many numbers, and more long histories.
WIDE: dict[str, Any] = {
    "total_steps": 5000,
    "questions.learning_rate": 1e-3,
    "policy.dim": 128,
    "policy.head_dim": 192,
    "policy.weight_by_length": True,
}
#: A head of twice the width: a batch takes about twice as long, so there are fewer. Long histories join earlier.
WIDE_HEAD = {**WIDE, "total_steps": 3200, "policy.head_dim": 384, "policy.curriculum": [80, 160, 280]}
#: The best one of four for the LSTM with this head (`rates.py`): that of the models with a narrow head.
LSTM_SCHEDULE = {"policy.curriculum": find_preset("episodic-qa").policy["curriculum"]}
#: Answers in words: memory and head of a run with structured answers stay as they are, and a T5 reads them. A batch
#: has fewer answers, since one takes as long as many structured ones.
WORDS: dict[str, Any] = {
    **WIDE,
    "total_steps": 600,
    "questions.learning_rate": 2e-3,
    "questions.batch_size": 16,
    "questions.validation_episodes": 50,
    "policy.answers": "text",
    "policy.text": {"retrieval": True},
    "policy.questions": 8,
    "policy.curriculum": [],
    "policy.freeze_memory": True,
}


def make_configs() -> dict[str, RunConfig]:
    """Settings of each memory and training."""
    preset = find_preset("episodic-qa")
    queues = preset.policy["memory_kwargs"]
    two_levels = {**queues, "compressed_lengths": [2, 2], "ratios": [4, 2]}
    lstm = {"dim": 64, "layers": 2, "capacity": 21}
    methods = {
        "ct-lt": {},
        "ct": memory("ct", queues),
        "ct-26": memory("ct", {**queues, "compressed_lengths": [10]}),
        "ml-ct-lt": memory("ml-ct-lt", two_levels),
        "lstm-o1": {**memory("lstm-o1", lstm), "questions.learning_rate": 2e-3},  # learns far less with 4e-3
        "text-only": memory("none", {}),
        "longer": {"total_steps": 9000, "questions.learning_rate": 2e-3, "policy.head_dim": 192},
    }
    wide_queues = {**queues, "dim": 128, "mlp_dim": 256}
    for end, own in (
        ("", memory("ct-lt", wide_queues)),
        ("-ct", memory("ct", wide_queues)),
        ("-lstm-o1", memory("lstm-o1", {**lstm, "dim": 128})),
    ):
        methods[f"wide{end}"] = {**WIDE, **own}
        methods[f"wide-head{end}"] = {**WIDE_HEAD, **own}
        methods[f"wide-text{end}"] = {**WORDS, **own, "encoder_from": f"{TASK}-wide{end}-{{seed}}"}
    methods["wide-head-lstm-own"] = {**methods["wide-head-lstm-o1"], **LSTM_SCHEDULE}
    return {name: changed(preset, changes) for name, changes in methods.items()}


def memory(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Changes to a run with another memory."""
    return {"policy.memory": name, "policy.memory_kwargs": settings}


def scores(played: Played) -> dict[str, Any]:
    """Scores in the test histories, as `memenvs evaluate` computes them."""
    assert played.run is not None
    result: dict[str, Any] = played.config.make_experiment().evaluate(played.run, quiet=played.quiet)
    return result


def answers(played: Played) -> dict[str, Any]:
    """Right answers in the test histories of 1 to 10 episodes; see `count_answers`."""
    assert played.run is not None
    return count_answers(played.run, played.config.eval_kwargs)


def long_answers(played: Played) -> dict[str, Any]:
    """Right answers in histories far longer than any in training; see `count_answers`."""
    assert played.run is not None
    settings = played.config.eval_kwargs
    few = min(LONG_QUESTIONS, settings["questions"])
    return count_answers(played.run, {**settings, "lengths": list(LONG_LENGTHS), "questions": few})


def many_answers(played: Played) -> dict[str, Any]:
    """Right answers in `TIMES` as many histories of five episodes; see `count_answers`."""
    assert played.run is not None
    settings = played.config.eval_kwargs
    histories = TIMES * split_size(settings.get("scale", played.config.env_kwargs["scale"]), "test").histories
    return count_answers(played.run, {**settings, "lengths": [MANY_LENGTH], "histories": histories})


@torch.no_grad()
def count_answers(run: RunDirectory, changes: dict[str, Any]) -> dict[str, Any]:
    """Answer every question about every history.

    Args:
        run: The folder.
        changes: Changes to the settings of the environment.

    Returns:
        "lengths": lengths of histories. "correct" and "questions", by length, fold of the histories and kind: right
        answers and questions. "distance": by length, episodes back (1 is the newest) -> [right, answers]. "facts": by
        length [correct, incorrect, expected]. "categories": by length, the number of answers in each of `CATEGORIES`.
    """
    run.config.use_threads()
    model = trained_model(run, changes).eval()
    assert isinstance(model, AnsweringModel)
    dialogs = model.task.dialogs("test")
    arrays = load_arrays(dialogs)
    n_questions = model.config.questions
    kinds = kinds_of(arrays.slots)
    lengths = list(dialogs.by_length)
    shape = (len(lengths), FOLDS, len(KINDS))
    correct, count = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    distance: list[dict[int, list[int]]] = [{} for _ in lengths]
    facts = np.zeros((len(lengths), 3), np.int64)
    categories = np.zeros((len(lengths), len(CATEGORIES)), np.int64)
    for i, histories in enumerate(dialogs.by_length.values()):
        for part in np.split(histories, range(HISTORIES, len(histories), HISTORIES)):
            batch = QuestionBatch(arrays, part, np.tile(np.arange(n_questions), (len(part), 1)))
            for history, scores_of_history in zip(part.tolist(), model.score_answers(batch), strict=True):
                fold = int(np.searchsorted(histories, history)) % FOLDS
                for question, score in enumerate(scores_of_history):
                    qa = dialogs.question(history, question).qa
                    is_right = score.category == CORRECT
                    correct[i, fold, kinds[history, question]] += is_right
                    count[i, fold, kinds[history, question]] += 1
                    facts[i] += (score.correct, score.incorrect, score.expected)
                    categories[i, score.category - 1] += 1
                    if qa.distance is not None:
                        pair = distance[i].setdefault(qa.distance, [0, 0])
                        pair[0] += is_right
                        pair[1] += 1
    return {
        "lengths": lengths,
        "correct": correct.tolist(),
        "questions": count.tolist(),
        "distance": [{str(back): pairs[back] for back in sorted(pairs)} for pairs in distance],
        "facts": facts.tolist(),
        "categories": categories.tolist(),
    }


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to four batches about small histories."""
    small = {"scale": "smoke", "questions": 4}
    return replace(
        config,
        total_steps=4,
        env_kwargs={**config.env_kwargs, **small},
        eval_kwargs={**config.eval_kwargs, **small},
        eval_trials=4,
        learner=replace(config.learner, validation_episodes=4, batch_size=4),
        policy={**config.policy, "questions": 4},
    )


STUDY = Study(
    title="A robot's days: which memory answers questions about them",
    configs={TASK: make_configs()},
    evaluations={EVALUATION: scores, "answers": answers, "long": long_answers, "many": many_answers},
    tables=make_tables,
    figures={"episodic_qa": draw},
    smoke=smoke,
)
