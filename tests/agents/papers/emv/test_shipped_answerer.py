"""The model that answers questions and comes with the package."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from memenvs.agents.cli.ask import ANSWERER, EXAMPLES
from memenvs.agents.papers.emv.conversation import Conversation
from memenvs.agents.papers.emv.data import load_arrays
from memenvs.agents.papers.emv.experiment import load_answering
from memenvs.agents.papers.emv.learner import QuestionBatch
from memenvs.agents.study import ROWS, find_studies, load_study, read_rows
from memenvs.cli import main
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.language.score import CORRECT

FILE = find_studies()["episodic_qa"]
#: The run whose weights it has.
CELL = ("episodic-qa", "longer", 2)


def test_it_is_small_and_of_its_study():
    model, config = load_answering(ANSWERER), load_study(FILE).config(CELL)
    assert ANSWERER.stat().st_size < 3_000_000
    assert model.settings.memory == "ct-lt" == config.policy["memory"]
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    assert model.config.scale == config.env_kwargs["scale"]


def test_examples_are_answered_rightly(capsys):
    """Those that a conversation begins with, and that of `--help`."""
    with pytest.raises(SystemExit):
        main(["ask", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    life, question = re.findall(r'memenvs ask --life (\d+) --question "(.*?)" --gold', text)[0]
    default = int(re.findall(r"number of the life, any \(default: (\d+)\)", text)[0])
    model = load_answering(ANSWERER)
    for conversation, questions in (
        (Conversation(model, int(life)), [question]),
        (first := Conversation(model, default), first.examples(EXAMPLES)),
    ):
        for text in questions:
            assert conversation.ask(text).category == "correct", text


@pytest.mark.nightly
def test_it_answers_as_the_table_says():
    """Right answers about histories of one episode; the weights were rounded to bfloat16, to keep the wheel small."""
    model = load_answering(ANSWERER)
    evaluation = load_study(FILE).config(CELL).eval_kwargs
    dialogs = load_dialogs(replace(model.config, **{**evaluation, "lengths": tuple(evaluation["lengths"])}))
    histories = dialogs.by_length[1]
    questions = np.tile(np.arange(evaluation["questions"]), (len(histories), 1))
    batch = QuestionBatch(load_arrays(dialogs), histories, questions)
    right = sum(score.category == CORRECT for row in model.score_answers(batch) for score in row)
    answers = read_rows(FILE.with_name(ROWS)).results(*CELL[:2], "answers")[CELL[2]]
    expected = np.sum(answers["correct"][0]) / np.sum(answers["questions"][0])
    assert right / batch.questions.size == pytest.approx(expected, abs=0.01) and expected > 0.65
