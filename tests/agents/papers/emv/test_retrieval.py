"""Answers in words with retrieval: a trained head reads the memory before the T5 writes."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.papers.emv.conversation import frame_shares
from memenvs.agents.papers.emv.experiment import load_answering, load_memory
from memenvs.agents.papers.emv.learner import QuestionBatch, SlotAnswering, TextAnswering
from memenvs.agents.papers.emv.slots import ANSWER_SLOTS, EMIT, QUESTION_SLOTS
from memenvs.agents.papers.emv.texts import pad
from tests.agents.papers.emv.small_runs import POLICY, QUEUES, T5_SIZES, make_small, save_untrained, words_from

TEXT = {
    **POLICY,
    "answers": "text",
    "text": {"retrieval": True, "sizes": T5_SIZES},
    "freeze_memory": True,
    "questions": 4,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> tuple[SlotAnswering, TextAnswering]:
    """Make a model of structured answers, and one in words that retrieves with its head."""
    file = tmp_path_factory.mktemp("first") / CHECKPOINT
    save_untrained(file)
    source = load_answering(file)
    model = make_small(TEXT, seed=1)
    assert isinstance(source, SlotAnswering) and isinstance(model, TextAnswering)
    load_memory(model, file)
    for head in (source.model.head, model.model.retrieval.head):
        with torch.no_grad():
            head.slots.bias[1] += 0.5  # so that there are clauses at all
            head.given.weight *= 5  # so that they depend much on those before
    return source.eval(), model.eval()


def some(arrays, histories: int = 20) -> QuestionBatch:
    return QuestionBatch(arrays, np.arange(histories), np.tile(np.arange(4), (histories, 1)))


def retrieve(model: TextAnswering, batch: QuestionBatch) -> tuple[torch.Tensor, torch.Tensor]:
    slots, times = model.select(batch.arrays.slots, batch), model.select(batch.arrays.times, batch)
    return model.model.retrieval(model.model.codes, *model.encode(batch), slots, times)


@torch.no_grad()
def test_vectors_of_slots_against_a_slow_reference(arrays, models):
    """For each filled slot the mean embedding by the probabilities that the head has after the clauses before."""
    source, model = models
    batch, retrieval = some(arrays, 10), model.model.retrieval
    vectors, mask = retrieve(model, batch)
    reading = source.read(batch, *source.encode(batch))
    chosen = source.choose(reading)
    logits, (history, question, clause) = source.model.head.clause_logits(source.model.codes, reading, chosen)
    expected: list[list[torch.Tensor]] = [[] for _ in range(40)]
    for n, (h, q, c) in enumerate(zip(history.tolist(), question.tolist(), clause.tolist(), strict=True)):
        for number, name in enumerate(ANSWER_SLOTS):
            if name != "emit" and chosen[h, q, c, EMIT] and chosen[h, q, c, number]:
                shares, table = logits[number][n].softmax(0), retrieval.values[number - 1].weight
                mean = sum(share * row for share, row in zip(shares, table, strict=True))
                expected[4 * h + q].append(mean + retrieval.answer_slots[number - 1] + retrieval.clauses[c])
    assert len({len(rows) for rows in expected}) > 3
    assert mask.sum(1).tolist() == [len(rows) for rows in expected]
    for row, rows in enumerate(expected):
        if rows:
            torch.testing.assert_close(vectors[row, : len(rows)], torch.stack(rows), rtol=1e-4, atol=1e-4)
        assert not mask[row, len(rows) :].any()


@torch.no_grad()
def test_slots_are_those_of_the_words(arrays, models):
    """Without given slots the head gets those that the words are taken for, and a kind of time where one is named."""
    _, model = models
    batch = some(arrays)
    queries, slots = [query for query, _ in model._pairs(batch)], model.select(arrays.slots, batch)
    has_time = slots[..., -1] > 0
    history, question = has_time.nonzero()[5].tolist()
    taken = deepcopy(model)  # it takes all words for one question, but that it prefers none to its kind of time
    for linear, value in zip(taken.model.retrieval.question_slots, slots[history, question], strict=True):
        linear.bias[value] += 100.0
    taken.model.retrieval.question_slots[-1].bias[0] += 200.0
    one = slots[history, question].expand_as(slots).clone()
    one[..., -1] *= has_time
    encoded = model.encode(batch)
    as_words, untrained = (reader.read(batch, queries, *encoded)[0] for reader in (taken, model))
    for known_slots, is_taken in ((one, True), (slots, False)):
        context = model.read(batch, queries, *encoded, known_slots)[0]
        assert (context.shape == as_words.shape and torch.equal(context, as_words)) == is_taken
        assert context.shape != untrained.shape or not torch.equal(context, untrained)


def test_slots_are_given_in_training_alone(arrays, models, monkeypatch):
    _, model = models
    batch, calls = some(arrays, 2), []
    choose = model.model.retrieval.choose_slots
    monkeypatch.setattr(model.model.retrieval, "choose_slots", lambda *inputs: calls.append(1) or choose(*inputs))
    for compute, expected in ((model.loss, 0), (model.answer_texts, 1), (model.own_answer_loss, 1)):
        calls.clear()
        compute(batch)
        assert len(calls) == expected


def test_slots_of_questions_are_learned_from_words(arrays):
    """The loss of the slots alone makes the model know those of all questions of some histories."""
    model = make_small(TEXT)
    batch = some(arrays, 8)
    tokens = torch.from_numpy(pad([query for query, _ in model._pairs(batch)]))
    slots = model.select(arrays.slots, batch).flatten(0, 1)
    optimizer = torch.optim.Adam([parameter for parameter in model.parameters() if parameter.requires_grad], 1e-2)
    retrieval, losses = model.model.retrieval, []
    for _ in range(120):
        words = model.model.t5.encode(tokens)
        loss = retrieval.question_loss(words, tokens > 0, slots)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    chosen = retrieval.choose_slots(words, tokens > 0, slots[:, -1] > 0)
    assert (chosen == slots).float().mean() > 0.95
    untrained = sum(np.log(len(values) + 1) for values in QUESTION_SLOTS.values())
    assert losses[0] > 0.5 * untrained and losses[-1] < 0.1 * untrained


def test_answers_without_a_clause(arrays, models):
    """Nothing is attended to if the head finds nothing, and everything else learns."""
    model = deepcopy(models[1])
    with torch.no_grad():
        model.model.retrieval.head.slots.bias[0] += 100.0
    batch = some(arrays, 2)
    vectors, mask = retrieve(model, batch)
    assert vectors.shape == (8, 1, 16) and not mask.any()
    model.loss(batch)[0].backward()
    gradients = {name: parameter.grad for name, parameter in model.model.named_parameters() if parameter.requires_grad}
    assert all(parameter is not None and parameter.isfinite().all() for parameter in gradients.values())
    assert not gradients["retrieval.clauses"].any() and gradients["t5.model.shared.weight"].any()


@torch.no_grad()
def test_an_answer_does_not_depend_on_the_other_questions(arrays, models):
    """Rows with fewer slots are padded, and padding is not read; words alone have no effect beyond their own row."""
    _, model = models
    batch, answer = some(arrays, 6), torch.tensor([[5, 6, 7, 1]])
    queries = [query for query, _ in model._pairs(batch)]
    context, valid = model.read(batch, queries, *model.encode(batch))
    together = model.model.t5.decode(answer.expand(24, -1), context, valid)
    for row in (0, 7, 23):
        alone = QuestionBatch(arrays, batch.histories[row // 4 : row // 4 + 1], np.array([[row % 4]]))
        context, valid = model.read(alone, queries[row : row + 1], *model.encode(alone))
        torch.testing.assert_close(
            model.model.t5.decode(answer, context, valid)[0], together[row], rtol=1e-4, atol=1e-4
        )


def test_sources_of_an_answer_include_what_the_head_reads(arrays, lengths, models):
    """An answer depends on key frames through the head if the T5 sees no vector of the memory."""
    _, model = models
    batch = QuestionBatch(arrays, np.array([int((lengths == 2).argmax())]), np.array([[0]]))
    blind = deepcopy(model)
    with torch.no_grad():
        blind.model.vector_norm.weight.zero_()
    shares = frame_shares(blind, batch)
    assert shares is not None and shares.sum() == pytest.approx(1) and (shares > 0).any()


def second_stage(source: Path, **policy) -> RunConfig:
    return words_from(source, {**TEXT, **policy})


def test_head_and_memory_stay_as_they_were(tmp_path):
    """A run learns the words and what the T5 gets of the head, and needs the source for its start alone."""
    source = tmp_path / CHECKPOINT
    save_untrained(source)
    before = load_answering(source).model.state_dict()
    with RunDirectory(tmp_path / "run", replace(second_stage(source), total_steps=1)) as run:
        train_run(run, quiet=True)
        first = load_answering(run.path).model.state_dict()
        source.unlink()
        run.extend(2)
        train_run(run, quiet=True)
        after, metrics = load_answering(run.path).model.state_dict(), run.metrics()
    changed = {name for name in after if not torch.equal(after[name], first[name])}
    kept = {name: value for name, value in after.items() if name.removeprefix("retrieval.") in before}
    assert len(kept) == len(before) and not changed & set(kept)
    for name, value in kept.items():
        assert torch.equal(value, before[name.removeprefix("retrieval.")]), name
    learned = {name.split(".")[1] for name in changed if name.startswith("retrieval.")}
    assert learned >= {"word_queries", "question_slots"} and any(name.startswith("t5.") for name in changed)
    assert "train/question_loss" in metrics and "train/auxiliary_loss" not in metrics


def test_bad_settings_and_sources(tmp_path):
    source = tmp_path / CHECKPOINT
    save_untrained(source)
    with pytest.raises(ValueError, match=r"text\.retrieval needs freeze_memory=True, .* got False"):
        check_config(second_stage(source, freeze_memory=False))
    for name, value in (("head_dim", 32), ("head_layers", 2), ("head_heads", 4)):
        with pytest.raises(ValueError, match=f"checkpoint.zip must have the {name} {value} of this run, got "):
            check_config(second_stage(source, **{name: value}))
    words = {"answers": "text", "text": {"sizes": T5_SIZES}, "dim": 8, "memory_kwargs": QUEUES}
    save_untrained(source, words)
    with pytest.raises(ValueError, match=r"must have structured answers for text\.retrieval, got 'text'"):
        check_config(second_stage(source))
