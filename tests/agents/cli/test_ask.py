"""`ask`: questions as arguments, in a file, typed; wrong ones are named. `answer`: files."""

import io
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from memenvs.agents.cli.ask import EXAMPLES
from memenvs.agents.papers.emv.conversation import Conversation, fill_in_answers
from memenvs.agents.papers.emv.experiment import load_answering
from memenvs.cli import main
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.language.question_sets import QuestionSet, score_file, write_questions
from memenvs.verbalization.language.score import CATEGORIES, CORRECT
from memenvs.verbalization.splits import load_data
from tests.agents.learners import learner
from tests.agents.papers.emv.small_runs import POLICY, save_untrained

TEXT = {"answers": "text", "text": {"sizes": {"d_model": 16, "num_layers": 1, "num_heads": 2}}, "dim": 8}
TEXT |= {"memory": "lstm-on", "memory_kwargs": {"dim": 8, "layers": 1}}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """Checkpoints of a structured and of a text model, and the folder of a run."""
    folder = tmp_path_factory.mktemp("models")
    for name, policy in (("structured", POLICY), ("text", TEXT)):
        (folder / f"{name}-run").mkdir()
        save_untrained(folder / f"{name}-run" / "checkpoint.zip", policy)
        shutil.copy(folder / f"{name}-run" / "checkpoint.zip", folder / f"{name}.zip")
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.slow
def test_answers_as_one_document(models, capsys):
    """The same for a run and for its checkpoint; bad questions name their words."""
    documents = []
    for model in ("structured", "structured-run", "text"):
        arguments = ["ask", str(models[model]), "--life", "7", "--episodes", "2", "--gold", "--json"]
        questions = ["where did you put the red cup?", "Which object did you GRASP yesterday", "how is the weather?"]
        for question in questions:
            arguments += ["--question", question]
        assert main(arguments) == 2
        printed = capsys.readouterr()
        assert "1 of 3 questions have no answer; the first: question 'how is the weather?'" in printed.err
        document = json.loads(printed.out)
        documents.append(document)
        assert document["life"]["seed"] == 7 and len(document["life"]["episodes"]) == 2
        *answers, wrong = document["answers"]
        assert wrong["unknown_words"] == ["weather"] and "answer" not in wrong
        for question, answer in zip(questions, answers, strict=False):
            assert answer["question"] == question and answer["answer"] and answer["gold"]
            words = [question.lower().removesuffix("?") for question in questions]
            assert answer["category"] in CATEGORIES and answer["parsed_as"].removesuffix("?") in words
            if model != "text":  # an untrained one writes nothing
                assert sum(answer["episodes"]) == pytest.approx(1) and len(answer["episodes"]) == 2
            shares = [frame["share"] for frame in answer["key_frames"]]
            assert shares == sorted(shares, reverse=True)
    del documents[0]["model"], documents[1]["model"], documents[2]["model"]
    assert documents[0] == documents[1] != documents[2] and documents[0]["life"] == documents[2]["life"]


def test_standard_input(models, capsys, monkeypatch):
    """Each line is a question; blank lines are none; the gold answer is shown when it is wanted."""
    lines = "what time is it?\n\n what did you do in three days?\n"
    for more in ([], ["--gold"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        status = main(["ask", str(models["structured"]), *more])
        printed = capsys.readouterr()
        assert status == 2 and "1 of 2 questions" in printed.err
        assert printed.out.count("depends on episode") == 1 and "lies in the future; this life is from " in printed.out
        assert ("gold: It is " in printed.out) == bool(more)


@pytest.mark.parametrize(("time", "is_outside"), [("on May 1", True), ("today", False)])
def test_the_dates_of_the_life_are_shown(models, capsys, time, is_outside):
    """Beside questions as arguments, and once more where a question is about a time outside of them."""
    assert main(["ask", str(models["structured"]), "--life", "0", "--question", f"what did you do {time}?"]) == 0
    printed = capsys.readouterr().out
    dates = "from Sat 05 Sep 2020 10:26 to Sun 06 Sep 2020 18:40"
    assert printed.startswith(f"Life 0 of a household robot: 3 episodes, 26 key frames, {dates}.\nIt is now Sun 06 Sep")
    assert (f"nothing happened then: this life is {dates}" in printed) == is_outside


@pytest.mark.slow
def test_a_conversation(models, capsys, monkeypatch):
    """Gold answers of examples are correct; wrong input does not end it, and Ctrl-D does."""
    model = load_answering(models["structured"])
    conversation = Conversation(model, 0, 3)
    examples = conversation.examples(EXAMPLES)
    model.answers = lambda batch: [[qa.answer.clauses for qa in row] for row in model.gold(batch)]
    replies = [conversation.ask(text) for text in examples]
    assert len(set(examples)) > 1 and all(reply.category == "correct" for reply in replies)
    assert all(reply.answer == reply.gold and len(reply.shares) == 26 for reply in replies)
    typed = ["", examples[0], "frobnicate the cup", "what did you do in two days?", "where is it"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))

    def type_in(prompt: str) -> str:
        print(prompt)
        if not typed:
            raise EOFError
        return typed.pop(0)

    monkeypatch.setattr("builtins.input", type_in)
    assert main(["ask", str(models["structured"]), "--life", "0"]) == 0
    first, blank, answer, unknown, future, near, end = capsys.readouterr().out.split("> \n")
    assert first.startswith("Life 0 of a household robot: 3 episodes, ") and examples[0] in first
    assert not blank and not end.strip() and "depends on episode" in answer
    assert unknown.startswith("I do not know: frobnicate.") and "future" in future and "similar: '" in near


def test_wrong_arguments(models, tmp_path, capsys, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "broken.zip").write_bytes(b"PK")
    learner("none").save(tmp_path / "other.zip")  # an agent that acts
    question = ["--question", "what time is it?"]
    for arguments, message in (
        (["nowhere", *question], "no folder of a run and no checkpoint at nowhere"),
        ([str(tmp_path / "run"), *question], "is no folder of a run that answers questions: it has no checkpoint.zip"),
        ([str(tmp_path / "other.zip"), *question], "is no model that answers questions about a robot's history"),
        ([str(tmp_path / "broken.zip"), *question], "not a whole checkpoint"),
        ([str(models["text"]), "--episodes", "1001", *question], "episodes must be an integer of at least 1 and"),
    ):
        assert main(["ask", *arguments]) == 2
        assert message in capsys.readouterr().err
    for arguments, message in (
        (["--episodes", "0"], "at least 1, got '0'"),
        (["--life", "-1"], "at least 0, got '-1'"),
    ):
        with pytest.raises(SystemExit):
            main(["ask", "run", *arguments])
        assert message in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert main(["ask", str(models["text"]), "--json"]) == 2
    assert "--json needs --question" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["structured", "text"])
def test_a_file_of_questions(models, tmp_path, capsys, name):
    """Every answer is filled in, replaces an older one, and is read by the scorer; wrong files stay as they are."""
    path = tmp_path / "answers.json"
    assert write_questions(path, QuestionSet(scale="smoke", lengths=(1,), questions=2), {"0-1": "No."}) == 20
    before = json.loads(path.read_text())
    assert main(["answer", str(models[name]), str(path)]) == 0
    assert f"20 answers in {path}" in capsys.readouterr().out
    after = json.loads(path.read_text())
    answers = [row.pop("answer") for row in after["answers"]]
    assert all(answers) and [row.pop("answer") for row in before["answers"]][1] == "No." and before == after
    assert len(score_file(path)) == 20
    path.write_text(path.read_text().replace('"grammar": ', '"grammar": 9'))
    content = path.read_bytes()
    for file, message in ((path, "grammar"), (tmp_path / "none.json", "no file at")):
        assert main(["answer", str(models[name]), str(file)]) == 2 and message in capsys.readouterr().err
    assert path.read_bytes() == content


def test_gold_answers_in_a_file_are_right(models, tmp_path):
    """Ids belong to their questions; key frames are scaled by what the model was trained on, not by the file's data."""
    model = load_answering(models["structured"])
    path = tmp_path / "answers.json"
    write_questions(path, QuestionSet(scale="smoke", lengths=(1, 2), questions=9, data_seed=1))
    seen = []

    def gold(batch):
        seen.append(batch)
        return [[qa.answer.clauses for qa in row] for row in model.gold(batch)]

    model.answers = gold
    shares = []
    assert fill_in_answers(model, path, shares.append) == 180 and shares == sorted(shares) and shares[-1] == 1
    assert all(row.score.category == CORRECT for row in score_file(path))
    config = seen[0].arrays.dialogs.config
    trained, own = load_data(config.household(), "train", scale="smoke"), load_dialogs(replace(config, questions=16))
    symbols = set(seen[0].arrays.dialogs.data.dictionary.symbols)
    assert symbols == set(trained.dictionary.symbols) != set(own.data.dictionary.symbols)
    read, other = seen[0].arrays.dialogs.tables["sub"][:-1], own.data.frames.array("sub")
    signals = [x * by.std + by.mean for x, by in ((read, trained.scaling), (other, own.data.scaling))]
    np.testing.assert_allclose(signals[0][:, 6:], signals[1][:, 6:], rtol=1e-3, atol=1e-3)  # after empty objects
    assert not np.allclose(read, other, atol=1e-3)
