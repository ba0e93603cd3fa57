"""Answers in words: texts to learn, loss, writing, runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from memenvs.agents.algorithms.supervised import load_model
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.papers.emv.learner import SHORT_ANSWER, QuestionBatch, TextAnswering
from memenvs.agents.papers.emv.texts import target_text
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.score import CORRECT, score_answer
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, END, PAD, TOKENIZER, UNKNOWN
from memenvs.verbalization.language.wordings import KINDS
from tests.agents.papers.emv.small_runs import DATA, QUEUES, T5_SIZES, make_small, save_untrained

SMALL = {"answers": "text", "text": {"sizes": T5_SIZES}, "dim": 8, "questions": 4}


def make(memory: str = "ct-lt", **changes) -> TextAnswering:
    kwargs = QUEUES if memory == "ct-lt" else {}
    return make_small({**SMALL, "memory": memory, "memory_kwargs": kwargs, **changes})


def test_right_answers_about_problems_are_not_cut():
    """They are the longest but for summaries; those of this data have up to 74 tokens."""
    config = EpisodicQAConfig(kinds=["problems"], scale="smoke", questions=40, lengths=(50,), split="test")
    dialogs, longest = load_dialogs(config), 0
    for number in range(len(dialogs)):
        if dialogs.usable(number) == number:
            log = Log(dialogs.history(number))
            for question in range(40):
                text = target_text(log, dialogs.question(number, question).qa, config.language().hands)
                longest = max(longest, len(TOKENIZER.encode(text)))
    assert 60 < longest <= SHORT_ANSWER


@pytest.mark.slow
def test_answers_to_learn_are_right_and_can_be_known(arrays):
    """Each is parsed as a right answer, has known tokens, and does not depend on how the gold answer is phrased."""
    tokenizer, dialogs, kinds = TOKENIZER, arrays.dialogs, set()
    hands = dialogs.config.language().hands
    for number in range(0, len(dialogs), 3):
        log = Log(dialogs.history(number))
        for question in range(4):
            qa = dialogs.question(number, question).qa
            text = target_text(log, qa, hands)
            assert score_answer(text, qa, None).category == CORRECT, (qa, text)
            tokens = tokenizer.encode(text)
            assert UNKNOWN not in tokens and len(tokens) <= ANSWER_TOKENS and tokens[-1] == END
            assert score_answer(tokenizer.decode(tokens), qa, None).category == CORRECT, (qa, text)
            kinds.add(qa.kind)
            if len(qa.answer.clauses) > 1 and qa.kind == "action":
                answer = qa.answer._replace(clauses=qa.answer.clauses[::-1])
                assert target_text(log, replace(qa, answer=answer), hands) == text
    assert kinds == set(KINDS)


@pytest.mark.slow
def test_loss_and_answers_are_those_of_each_question_alone(arrays, frame_counts):
    """Parts by length, other questions and padding change nothing; the memory and the resolved times do."""
    longest, shortest = int(frame_counts.argmax()), int(np.where(frame_counts > 0, frame_counts, 10**6).argmin())
    batch = QuestionBatch(arrays, np.array([longest, shortest]), np.array([[0, 1], [2, 3]]))
    for memory in ("ct-lt", "none"):
        model = make(memory).double()
        with torch.no_grad():
            model.model.t5.model.shared.weight[PAD] = 0  # else an untrained decoder repeats the start
        losses, count, texts = 0.0, 0, []
        for row, which in zip(batch.histories, batch.questions, strict=True):
            for question in which:
                alone = QuestionBatch(arrays, np.array([row]), np.array([[question]]))
                ((query, answer),) = model._pairs(alone)
                context, valid = model.eval().read(alone, [query], *model.encode(alone))
                logits = model.model.t5.decode(torch.from_numpy(answer)[None], context, valid)[0]
                losses += F.cross_entropy(logits, torch.from_numpy(answer), reduction="sum").item()
                count += len(answer)
                texts += model.answer_texts(alone)[0]
        loss, log = model.train().loss(batch)
        assert log["answer_loss"] == pytest.approx(losses / count, rel=1e-6)
        assert ("auxiliary_loss" in log) == (memory == "ct-lt") == (loss.item() > log["answer_loss"])
        written = model.eval().answer_texts(batch)
        assert [text for row in written for text in row] == texts and len(set(texts)) > 1
    model = make().eval()
    vectors, mask = model.encode(batch)
    other = model.answer_loss(batch, vectors.flip(0), mask.flip(0))[1]
    assert model.loss(batch)[1]["answer_loss"] != other["answer_loss"]
    moved = replace(batch, arrays=replace(arrays, times=np.roll(arrays.times, 1, 0)))
    assert len({make("none").eval().loss(questions)[1]["answer_loss"] for questions in (batch, moved)}) == 2


def test_dropout_follows_from_the_batch(arrays):
    """Its seed is that of the batch; torch's own generator stays unchanged."""
    batch = QuestionBatch(arrays, np.array([0]), np.array([[0, 1]]))
    dropping = make("none", text={"sizes": {**T5_SIZES, "dropout_rate": 0.5}}).train()
    before = torch.random.get_rng_state()
    a, b, c = (dropping.loss(replace(batch, seed=seed))[0].item() for seed in (1, 1, 2))
    assert a == b != c and torch.equal(torch.random.get_rng_state(), before)
    seeds = {dropping.sample(1, np.random.default_rng(step), "train", step).seed for step in range(3)}
    assert len(seeds) == 3


def test_a_checkpoint_is_refused_with_another_tokenizer_and_by_slots(tmp_path):
    file = tmp_path / "checkpoint.zip"
    save_untrained(file, {**SMALL, "memory_kwargs": QUEUES})
    model = make()
    load_model(model, file)
    for name, value in (("grammar", 0), ("tokenizer", "0" * 16)):
        model.inputs = lambda name=name, value=value: {**TextAnswering.inputs(model), name: value}
        with pytest.raises(ValueError, match=rf"checkpoint.zip: must be of the {name} {value}, got"):
            load_model(model, file)
    with pytest.raises(ValueError, match=r"checkpoint.zip: model.safetensors: does not fit the policy"):
        load_model(make_question_answering("memenvs/EpisodicQA-v0", DATA, {"dim": 8, "memory_kwargs": QUEUES}), file)


def test_wrong_settings_are_named():
    for settings, error, message in (
        ({"answers": "structured", "text": {"retrieval": True}}, ValueError, "text must be empty unless"),
        ({"rename": False}, ValueError, "rename must be left out with answers 'text', which have no other names"),
        ({"text": {"sizes": {"width": 3}}}, TypeError, "unknown size 'width' of T5"),
        ({"text": {"sizes": {"d_model": 20}}}, ValueError, "d_model must be a multiple of the width .*, 8, got 20"),
        ({"text": {"weight": "a"}}, TypeError, "weight"),
    ):
        with pytest.raises(error, match=message):
            make("ct-lt", **settings)
