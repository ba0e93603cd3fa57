"""Question answering: embedding of key frames, arrays, head, batches."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import torch

from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.experiments.prediction_experiment import QueryPlayer
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.papers.emv.conversation import frame_shares
from memenvs.agents.papers.emv.data import SYMBOLIC, draw_renaming
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.papers.emv.frames import WIDTHS, Codes, DateEncoder, FrameEmbedding, days_since_2020, elapsed_units
from memenvs.agents.papers.emv.learner import QuestionBatch
from memenvs.agents.papers.emv.slots import (
    ANSWER_SLOTS,
    EMIT,
    QUESTION_SLOTS,
    answer_slots,
    kinds_of,
    question_slots,
    slots_to_tuples,
)
from memenvs.certificates.playing import play_scores
from memenvs.core import TrialVectorEnv
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.env import EpisodicQA
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.score import CORRECT, score_clauses
from memenvs.verbalization.language.tuples import tuples_to_clauses
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, SYMBOL_IDS, SYMBOLS
from tests.agents.papers.emv.small_runs import DATA, QUEUES, make_small

LSTM = {"dim": 8, "layers": 1}
SMALL = {"dim": 8, "head_dim": 16, "head_heads": 2, "head_layers": 1, "questions": 4}


def make(memory: str = "ct-lt", **changes):
    kwargs = {"none": {}, "lstm-on": LSTM, "lstm-o1": LSTM | {"capacity": 12}}.get(memory, QUEUES)
    return make_small({**SMALL, "memory": memory, "memory_kwargs": kwargs, **changes})


def test_dates():
    """Days are those of the calendar, over leap years; ten minutes make another encoding."""
    seconds = np.random.default_rng(0).integers(0, 25 * 365 * 86400, 500)
    days = days_since_2020(torch.from_numpy(date_fields(seconds)))
    np.testing.assert_allclose(days.numpy(), seconds / 86400, atol=1e-9)
    encoder = DateEncoder(4)
    assert encoder.linear.in_features == 29
    a, b = encoder(Codes(), torch.from_numpy(date_fields(np.array([0, 600]))))
    assert not torch.allclose(a, b)
    frames = torch.from_numpy(date_fields(np.array([1000, 1000, 1007, 1008, 1608, 2211])))
    frames[0] = 0
    assert elapsed_units(frames[None]).tolist() == [[0, 0, 2, 1, 121, 0]]  # one unit more than it is; none after 600 s


def test_frames():
    """Goals are a bag whose order and padding do not count; an empty slot is zero; parts may be left out."""
    torch.manual_seed(0)
    parts = ("dt", "goal", "action", "args", "objects", "state", "sub")
    codes = Codes()
    there = torch.ones(1, 1, dtype=torch.bool)
    embedding = partial(FrameEmbedding(parts, 129, 2048, 8), codes, mask=there)
    assert embedding.func.join[0].in_features == 160 + 32 + 9 * 32 + 16 + 32
    frames = {
        "dt": torch.from_numpy(date_fields(np.array([[86400]]))),
        "goal": torch.tensor([[[3, 5, 0, 0, 0]]]),
        "action": torch.tensor([[2]]),
        "args": torch.tensor([[[4, 6, 7, 0, 0]]]),
        "objects": torch.tensor([[[9, 0]]]),
        "state": torch.tensor([[[-1, 0, 1, -1]]]),
        "sub": torch.randn(1, 1, 129),
    }
    first = embedding(frames)
    torch.testing.assert_close(embedding(frames | {"goal": torch.tensor([[[0, 5, 0, 3, 0]]])}), first)
    for name, other in (("goal", [[[3, 6, 0, 0, 0]]]), ("args", [[[6, 4, 7, 0, 0]]]), ("state", [[[0, 0, 1, -1]]])):
        assert not torch.allclose(embedding(frames | {name: torch.tensor(other)}), first), name
    padded = {name: torch.cat([value, torch.zeros_like(value)], 1).roll(1, 1) for name, value in frames.items()}
    behind = embedding(padded, mask=torch.tensor([[False, True]]))  # what is no key frame does not count, and is zero
    torch.testing.assert_close(behind, torch.cat([torch.zeros_like(first), first], 1))
    table = codes.symbols.weight
    code = embedding.func._symbols(codes, torch.tensor([[2, 4, 6, 7, 0, 0, 9, 0]]), frames["goal"][0])[0]
    torch.testing.assert_close(code[-32:], table[[3, 5]].mean(0))
    assert not code[4 * 32 : 6 * 32].any() and torch.equal(code[:32], table[2])
    assert FrameEmbedding(("dt", "latent"), 129, 2048, 8).join[0].in_features == 256
    assert WIDTHS["latent"] == 64


@pytest.mark.slow
def test_questions_and_answers_to_learn_are_those_of_the_environment(arrays):
    """Slots say what the question does; every target is a right answer; key frames have the same symbols."""
    dialogs, seen = arrays.dialogs, set()
    batch = QuestionBatch(arrays, np.array([0, 3, 7]), np.array([[0, 3]] * 3))
    frames, theirs = make().frames(batch)[0], batch.dialogs.frames()[0]
    assert frames.keys() == theirs.keys()
    for part, values in theirs.items():
        names = dialogs.data.dictionary.symbols if part in SYMBOLIC else None
        expected = values if names is None else np.array([SYMBOL_IDS[name] for name in names])[values]
        np.testing.assert_array_equal(frames[part].numpy(), expected)
    for number in range(0, len(dialogs), 3):
        for q in range(4):
            qa = dialogs.question(number, q).qa
            slots = slots_to_tuples(qa.question, arrays.target[number, q], qa.now)
            target = tuples_to_clauses(qa.question, slots, qa.now)
            assert score_clauses(target, qa.answer.clauses, None).category == CORRECT, qa
            pairs = zip(QUESTION_SLOTS.values(), arrays.slots[number, q], strict=True)
            names = [(None, *values)[value] for values, value in pairs]
            time = qa.question.time
            assert names == [
                qa.question.family, qa.question.verb, qa.question.object, qa.question.location, qa.question.order,
                "exact" if qa.question.exact else None, time and time.precision, time and time.family,
            ]  # fmt: skip
            assert KINDS[kinds_of(arrays.slots[number, q])] == qa.kind
            assert (arrays.times[number, q, 2] == date_fields(np.array(qa.now))).all()
            seen.add(qa.question.family)
    assert len(seen) > len(FAMILIES) / 2
    assert question_slots(qa.question).shape == (len(QUESTION_SLOTS),)


def test_slots_of_summaries_have_the_hours_between_episodes():
    """Hours later are rounded from seconds, which slots do not have: the nearest minute may make another hour."""
    dialogs = load_dialogs(EpisodicQAConfig(kinds=("summary",), scale="smoke", questions=4))
    for number in range(len(dialogs)):
        log = Log(dialogs.history(number))
        for q in range(4):
            qa = dialogs.question(number, q).qa
            slots = answer_slots(log, qa, dialogs.config.language().hands)
            target = tuples_to_clauses(qa.question, slots_to_tuples(qa.question, slots, qa.now), qa.now)
            assert score_clauses(target, qa.answer.clauses, None).category == CORRECT, qa


def test_clauses_are_learned_as_they_are_written(arrays):
    """All clauses at once, after those that the model writes one by one, are the ones that it writes."""
    model = make().eval()
    with torch.no_grad():
        model.model.head.slots.bias[1] += 0.5  # so that there are clauses at all
        model.model.head.given.weight *= 5  # so that they depend much on those before
        batch = QuestionBatch(arrays, np.arange(40), np.tile(np.arange(4), (40, 1)))
        reading = model.read(batch, *model.encode(batch))
        written = model.choose(reading)
        logits, (row, question, clause) = model.model.head.clause_logits(model.model.codes, reading, written)
    likeliest = torch.stack([slot.argmax(-1) for slot in logits], -1)
    is_clause = written[row, question, clause, EMIT] > 0
    assert torch.equal(likeliest[is_clause], written[row, question, clause][is_clause])
    assert (likeliest[~is_clause][:, EMIT] == 0).all()
    lengths = (written[..., EMIT] > 0).sum(-1)
    assert 3 < lengths.max() > lengths.min()


def first_clauses(model, batch: QuestionBatch, memory: tuple[torch.Tensor, torch.Tensor] | None = None) -> torch.Tensor:
    """Scores of all values of first clauses, (B, Q, values), perhaps by another memory."""
    none = torch.zeros(*batch.questions.shape, 8, len(ANSWER_SLOTS), dtype=torch.int64)
    reading = model.read(batch, *(memory or model.encode(batch)))
    logits, _ = model.model.head.clause_logits(model.model.codes, reading, none)
    return torch.cat(logits, -1).unflatten(0, batch.questions.shape)


def test_answers_depend_on_their_own_history_and_question_alone(arrays, frame_counts):
    """In a batch or alone, with other questions or without: the memory sees no question and no padding."""
    longest, shortest = int(frame_counts.argmax()), int(np.where(frame_counts > 0, frame_counts, 10**6).argmin())
    for memory in ("ct-lt", "ct-log", "lstm-on", "lstm-o1", "none"):
        model = make(memory).double().eval()
        together = first_clauses(
            model, QuestionBatch(arrays, np.array([longest, shortest]), np.array([[0, 1, 2], [1, 2, 3]]))
        )
        alone = first_clauses(model, QuestionBatch(arrays, np.array([shortest]), np.array([[2]])))
        torch.testing.assert_close(together[1, 1], alone[0, 0], atol=1e-9, rtol=0)
    batch, other = (QuestionBatch(arrays, np.array([number]), np.array([[0]])) for number in (longest, longest - 1))
    reader = make("ct-lt").double().eval()
    for answerer, reads in ((model, False), (reader, True)):
        answers = (first_clauses(answerer, batch, answerer.encode(histories)) for histories in (batch, other))
        assert torch.equal(*answers) != reads
    frames, mask = reader.frames(batch)
    empty = reader.model.encode(frames, torch.zeros_like(mask))
    assert first_clauses(reader, batch, empty).isfinite().all()


@pytest.mark.slow
def test_learning(arrays, lengths, frame_counts):
    """A few answers are learned by heart; the memory's own loss is added; processes share a batch."""
    longest = np.argsort(-frame_counts * (lengths == 1))[:2]
    batch = QuestionBatch(arrays, longest, np.arange(4)[None].repeat(2, 0))
    config = QuestionConfig(learning_rate=1e-2, final_learning_rate=None, warmup_steps=0, batch_size=2)
    for memory, steps in (("ct-lt", 2), ("none", 70)):
        model = make(memory, head_dim=32)
        model.sample = lambda count, rng, split, step=0: batch
        convolutions = [part.clone() for name, part in model.named_parameters() if "compress." in name]
        logs: list[dict[str, float]] = []
        SupervisedLearner(model, config, steps).learn(steps, logs.append)
        assert ("auxiliary_loss" in logs[-1]) == bool(convolutions) == (memory == "ct-lt")
        after = [part for name, part in model.named_parameters() if "compress." in name]
        assert all(not torch.equal(*pair) for pair in zip(convolutions, after, strict=True))
    assert logs[-1]["accuracy"] == 1.0
    model.eval()
    scores = model.scores(batch)
    assert scores["accuracy"].tolist() == scores["f1"].tolist() == np.ones(batch.questions.shape).tolist()
    of_kinds = [scores[f"accuracy_{kind}"] for kind in KINDS]
    assert np.array_equal(np.sum(~np.isnan(of_kinds), 0), np.ones(batch.questions.shape))  # each question has one kind
    parts = [model.shard(batch, rank, 2) for rank in range(2)]
    assert [part.histories.tolist() for part in parts] == batch.histories[:, None].tolist()


def test_batches(lengths):
    """Questions differ; validation is on other episodes; seeds decide."""
    model = make(curriculum=[2, 4, 6])
    batch = model.sample(200, np.random.default_rng(6), "train", 6)
    assert set(lengths[batch.histories].tolist()) == {1, 2, 3, 5}
    assert batch.questions.shape == (200, 4) and all(len(set(row)) == 4 for row in batch.questions.tolist())
    same = model.sample(200, np.random.default_rng(6), "train", 6)
    assert (same.histories == batch.histories).all() and (same.questions == batch.questions).all()
    valid = model.sample(5, np.random.default_rng(0), "test")
    assert valid.arrays.dialogs.config.split == "valid" and batch.arrays.dialogs.config.split == "train"


def test_renaming():
    """Objects and places get other names of the same role, alike in key frames, goals, questions and answers."""
    model = make()
    batch = model.sample(6, np.random.default_rng(0))
    arrays, renaming = batch.arrays, batch.renaming
    assert model.sample(6, np.random.default_rng(0), "test").renaming is None
    plain = make(rename=False).sample(6, np.random.default_rng(0))
    assert plain.renaming is None and (plain.histories == batch.histories).all()
    objects, locations = list(OBJECTS), list(LOCATIONS)
    assert all(sorted(row) == list(range(15)) for row in renaming.objects.tolist())
    assert (renaming.objects[0] != renaming.objects[1]).any() and (renaming.objects[:, 0] == 0).all()
    for symbols, of_object, of_location in zip(*(getattr(renaming, own.name) for own in fields(renaming)), strict=True):
        new = {name: objects[number - 1] for name, number in zip(objects, of_object[1:], strict=True)}
        places = {name: locations[number - 1] for name, number in zip(locations, of_location[1:], strict=True)}
        for name, other in places.items():
            assert (LOCATIONS[name].pick, LOCATIONS[name].place) == (LOCATIONS[other].pick, LOCATIONS[other].place)
        for symbol, number in SYMBOL_IDS.items():
            predicate, _, names = symbol.rstrip(")").partition("(")
            parts = [{**new, **places}.get(name, name) for name in names.split(",")]
            expected = f"{predicate}({','.join(parts)})" if names else {**new, **places}.get(symbol, symbol)
            assert SYMBOLS[symbols[number]] == expected
    targets, rows = model.targets(batch).numpy(), batch.of_questions(arrays.target)
    kinds = kinds_of(batch.of_questions(arrays.slots))
    assert (targets[..., 2] != rows[..., 2]).any() and (
        targets[..., 4:6].sum((2, 3)) == rows[..., 4:6].sum((2, 3))
    ).all()
    for b, q in np.ndindex(kinds.shape):
        expected = renaming.select(slice(b, b + 1)).of_slots(rows[b, q][None], 2, 3)[0].tolist()
        target = targets[b, q].tolist()
        assert sorted(target) == sorted(expected) and (KINDS[kinds[b, q]] != "summary" or target == expected)
    part = model.shard(batch, 1, 2)
    assert (part.renaming.objects == renaming.objects[1::2]).all()
    plain = replace(batch, renaming=None)
    seen = [model.encode(own)[0] for own in (batch, plain)]
    questions = [model.read(own, *model.encode(own)).questions for own in (batch, plain)]
    assert not torch.equal(*seen) and not torch.equal(*questions)


@pytest.mark.parametrize(("modalities", "renames"), [(["symbols"], True), (["signals"], False), (["images"], False)])
def test_nothing_is_renamed_without_symbols(modalities, renames):
    """Images and signals show what an object is: with another name in each batch nobody could learn it."""
    settings = {**SMALL, "memory": "none", "memory_kwargs": {}}
    model = make_question_answering("memenvs/EpisodicQA-v0", {**DATA, "modalities": ["date", *modalities]}, settings)
    assert (model.sample(2, np.random.default_rng(0)).renaming is not None) == renames


def test_a_memory_without_vectors_gives_its_features_after_the_last_key_frame():
    """The padding before a shorter history counts for nothing, and questions teach the embedding of the first frame."""
    model = make("gru", memory_kwargs={"hidden_dim": 8})
    batch = model.sample(4, np.random.default_rng(0))
    frames, mask = model.frames(batch)
    vectors, is_filled = model.model.encode(frames, mask)
    assert vectors.shape == (4, 1, 8) and is_filled.all()
    for row, count in enumerate(mask.sum(1).tolist()):
        alone = {part: values[row : row + 1, -count:] for part, values in frames.items()}
        torch.testing.assert_close(model.model.encode(alone, mask[row : row + 1, -count:])[0][0], vectors[row])
    loss, log = model.loss(batch)
    loss.backward()
    assert model.model.memory.network.weight_ih_l0.grad.any() and log["answer_loss"] > 0


def test_wrong_settings_are_named():
    for settings, error, message in (
        (
            {"memory": "smt", "memory_kwargs": {}},
            ValueError,
            r"memory must be one that reads key frames alone, .*, got 'smt' with \{\}, which needs pose",
        ),
        ({"head_heads": 5}, ValueError, r"head_heads must divide head_dim \(16\), got 5"),
        ({"curriculum": [3, 1]}, ValueError, r"curriculum must be ascending numbers of batches, got \[3, 1\]"),
        ({"widths": 3}, TypeError, "unknown setting 'widths' of the model"),
    ):
        with pytest.raises(error, match=message):
            make_question_answering("memenvs/EpisodicQA-v0", DATA, {**SMALL, **settings})
    with pytest.raises(ValueError, match=r"env must be an EpisodicQA, .* got 'memenvs/Darkroom-v0'"):
        make_question_answering("memenvs/Darkroom-v0", {}, {})


@pytest.mark.slow
def test_sources_of_an_answer(arrays, lengths, frame_counts):
    """Shares of key frames: none where no gradient comes from, of sum 1."""
    history = int(np.flatnonzero((lengths == 5) & (frame_counts > 40))[0])
    count = int(frame_counts[history])
    batch = QuestionBatch(arrays, np.array([history]), np.array([[0]]))
    for memory, reach in (("ct", 4 + 4 + 2 * 2), ("ct-lt", count), ("lstm-on", count)):
        model = make(memory)
        shares = frame_shares(model, batch)
        assert shares.shape == (count,) and shares.sum() == pytest.approx(1) and model.training
        assert (shares[: -reach - 4] == 0).all() and (shares[-4:] > 0).all()
        assert memory == "ct" or (shares > 0).all()
        reading = model.read(batch, *model.eval().encode(batch))
        expected = model._cross_entropy(reading, model.choose(reading))[0]
        torch.testing.assert_close(model.own_answer_loss(batch), expected)
    assert frame_shares(make("none"), batch) is None
    with pytest.raises(ValueError, match=r"one question about one history, got \(1, 2\)"):
        frame_shares(make(), replace(batch, questions=np.array([[0, 1]])))


def test_places_get_each_name_of_their_role_equally_often():
    renaming = draw_renaming(300, np.random.default_rng(0))
    roles = [None, *((place.pick, place.place) for place in LOCATIONS.values())]  # 0 is none
    for number, role in enumerate(roles):
        expected = [other for other, place in enumerate(roles) if place == role]
        counts = np.bincount(renaming.locations[:, number], minlength=len(roles))
        assert np.flatnonzero(counts).tolist() == expected
        assert counts[expected].min() > 0.6 * 300 / len(expected)


def test_supervised_training_keeps_its_histories_and_questions():
    """Those of the environments changed; results of supervised training are older."""
    assert make_question_answering("memenvs/EpisodicQA-v0", {}, SMALL).config == EpisodicQAConfig()
    long = make_question_answering("memenvs/EpisodicQA-Long-v0", {"sampling": "even"}, SMALL).config
    assert (long.lengths, long.sampling) == ((20, 50, 100), "even")


def test_answers_are_spelled_as_actions(monkeypatch):
    """Right ones are right in the environment; what the actions cannot say says nothing."""
    model = make("none").eval()
    env = TrialVectorEnv(EpisodicQA, 4, trial_episodes=1, autoreset_mode="Disabled", **DATA)
    gold = type(model).gold
    monkeypatch.setattr(
        type(model), "answers", lambda self, batch: [[qa.answer.clauses] for (qa,) in gold(self, batch)]
    )
    player = QueryPlayer(env, model, model.task, np.random.default_rng(0))
    assert play_scores(env, player, range(30, 42), "success").episodes == ((1.0,),) * 12
    episodes = model.task.episodes_of(env.task)
    monkeypatch.setattr(type(model), "answers", lambda self, batch: [[None]] * len(batch.histories))
    assert [action.tolist() for action in model.query_actions(episodes, np.random.default_rng(0))] == [[0]] * 4
    many = (Clause(object=next(iter(OBJECTS))),) * 9
    monkeypatch.setattr(type(model), "answers", lambda self, batch: [[many]] * len(batch.histories))
    assert {len(action) for action in model.query_actions(episodes, np.random.default_rng(0))} == {8 + 7 + 1}
    player = QueryPlayer(env, model, model.task, np.random.default_rng(0))
    assert play_scores(env, player, range(30, 34), "success").mean == 0.0
