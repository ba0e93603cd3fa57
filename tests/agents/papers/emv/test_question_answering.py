"""Question answering: embedding of key frames, arrays, head, batches, study."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.report import Report
from memenvs.agents.papers.emv.config import AnswererConfig, QuestionConfig
from memenvs.agents.papers.emv.conversation import answer_sources
from memenvs.agents.papers.emv.data import draw_renaming, load_arrays
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.papers.emv.frames import (
    WIDTHS,
    Codes,
    DateEncoder,
    FrameEmbedding,
    days_since_2020,
    elapsed_units,
)
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
from memenvs.agents.presets import find_preset
from memenvs.agents.studies import question_answering
from memenvs.agents.studies.question_answering import (
    FOLDS,
    HIDDEN,
    MANY,
    _add_many,
    _by_distance,
    _hide_long_term,
    add_tables,
    evaluate_answers,
    information,
    mean_over_kinds,
    paired_difference,
    train_and_evaluate,
    train_and_hide,
)
from memenvs.agents.studies.study_results import write_result
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.score import CORRECT, Score, score_clauses
from memenvs.verbalization.language.tuples import tuples_to_clauses
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, SYMBOL_IDS, SYMBOLS
from tests.agents.papers.emv.small_runs import DATA, QUEUES, train_small

SMALL = {"dim": 8, "head_dim": 16, "head_heads": 2, "head_layers": 1, "questions": 4}


@pytest.fixture(scope="module")
def arrays():
    return load_arrays(EpisodicQAConfig(**DATA))


def make(memory: str = "ct-lt", **changes):
    kwargs = {"none": {}, "lstm-on": {"dim": 8, "layers": 1}}.get(memory, QUEUES)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        settings = {**SMALL, "memory": memory, "memory_kwargs": kwargs, **changes}
        return make_question_answering("memenvs/EpisodicQA-v0", DATA, settings)


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
def test_arrays_are_those_of_the_environment(arrays):
    """Key frames equal `Dialogs.collate`, which equals the environment's; every target is a right answer."""
    dialogs = arrays.dialogs
    rows = np.array([0, 3, 7])
    numbers = np.array([SYMBOL_IDS[each] for each in dialogs.data.dictionary.symbols])
    batch = dialogs.collate(arrays.numbers[rows].tolist(), [[0, 3]] * 3)
    frames, mask = arrays.frames(rows)
    assert frames.keys() == batch.frames.keys() and mask.sum() == batch.frame_mask.sum()
    for part, values in frames.items():
        for b in range(3):
            seen_there = batch.frames[part][b, batch.frame_mask[b]]
            wanted = numbers[seen_there] if part in ("goal", "action", "args", "objects") else seen_there
            np.testing.assert_array_equal(values[b, mask[b]], wanted)
            assert mask[b].any() and mask[b, -1]
    np.testing.assert_array_equal(kinds_of(arrays.slots[rows][:, [0, 3]]), batch.kind)
    assert (arrays.length[rows] == batch.length).all()
    seen = set()
    for row in range(0, len(arrays.numbers), 3):
        for q in range(4):
            qa = dialogs.question(int(arrays.numbers[row]), q).qa
            target = tuples_to_clauses(qa.question, slots_to_tuples(qa.question, arrays.target[row, q], qa.now), qa.now)
            assert score_clauses(target, qa.answer.clauses, None).category == CORRECT, qa
            pairs = zip(QUESTION_SLOTS.values(), arrays.slots[row, q], strict=True)
            names = [(None, *values)[number] for values, number in pairs]
            time = qa.question.time
            assert names == [
                qa.question.family, qa.question.verb, qa.question.object, qa.question.location, qa.question.order,
                "exact" if qa.question.exact else None, time and time.precision, time and time.family,
            ]  # fmt: skip
            assert (arrays.times[row, q, 2] == date_fields(np.array(qa.now))).all()
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
    likeliest = torch.stack([each.argmax(-1) for each in logits], -1)
    is_there = written[row, question, clause, EMIT] > 0
    assert torch.equal(likeliest[is_there], written[row, question, clause][is_there])
    assert (likeliest[~is_there][:, EMIT] == 0).all()
    lengths = (written[..., EMIT] > 0).sum(-1)
    assert 3 < lengths.max() > lengths.min()


def first_clauses(model, batch: QuestionBatch) -> torch.Tensor:
    """Scores of all values of the first clauses, (B, Q, values)."""
    none = torch.zeros(*batch.questions.shape, 8, len(ANSWER_SLOTS), dtype=torch.int64)
    reading = model.read(batch, *model.encode(batch))
    logits, _ = model.model.head.clause_logits(model.model.codes, reading, none)
    return torch.cat(logits, -1).unflatten(0, batch.questions.shape)


def test_answers_depend_on_their_own_history_and_question_alone(arrays):
    """In a batch or alone, with other questions or without: the memory sees no question and no padding."""
    longest, shortest = int(arrays.count.argmax()), int(np.where(arrays.count > 0, arrays.count, 10**6).argmin())
    for memory in ("ct-lt", "lstm-on", "none"):
        model = make(memory).double().eval()
        together = first_clauses(
            model, QuestionBatch(arrays, np.array([longest, shortest]), np.array([[0, 1, 2], [1, 2, 3]]))
        )
        alone = first_clauses(model, QuestionBatch(arrays, np.array([shortest]), np.array([[2]])))
        torch.testing.assert_close(together[1, 1], alone[0, 0], atol=1e-9, rtol=0)
    other = first_clauses(model, QuestionBatch(arrays, np.array([longest]), np.array([[0]])))  # without a memory
    moved = replace(arrays, dates=np.roll(arrays.dates, 1, 0), index=np.roll(arrays.index, 1, 0))
    torch.testing.assert_close(first_clauses(model, QuestionBatch(moved, np.array([longest]), np.array([[0]]))), other)
    reader = make("ct-lt").eval()
    assert not torch.equal(
        *(first_clauses(reader, QuestionBatch(each, np.array([longest]), np.array([[0]]))) for each in (arrays, moved))
    )
    empty = replace(arrays, count=np.zeros_like(arrays.count))
    assert first_clauses(reader, QuestionBatch(empty, np.array([longest]), np.array([[0]]))).isfinite().all()


@pytest.mark.slow
def test_learning(arrays):
    """A few answers are learned by heart; the memory's own loss is added; processes share a batch."""
    longest = np.argsort(-arrays.count * (arrays.length == 1))[:2]
    batch = QuestionBatch(arrays, longest, np.arange(4)[None].repeat(2, 0))
    config = QuestionConfig(learning_rate=1e-2, final_learning_rate=None, warmup_steps=0, batch_size=2)
    for memory, steps in (("ct-lt", 2), ("none", 70)):
        model = make(memory, head_dim=32)
        model.sample = lambda count, rng, split, step=0: batch
        convolutions = [each.clone() for name, each in model.named_parameters() if "compress." in name]
        logs: list[dict[str, float]] = []
        SupervisedLearner(model, config, steps).learn(steps, logs.append)
        assert ("auxiliary_loss" in logs[-1]) == bool(convolutions) == (memory == "ct-lt")
        after = [each for name, each in model.named_parameters() if "compress." in name]
        assert all(not torch.equal(*pair) for pair in zip(convolutions, after, strict=True))
    assert logs[-1]["accuracy"] == 1.0
    model.eval()
    scores = model.scores(batch)
    assert scores["accuracy"].tolist() == scores["f1"].tolist() == np.ones(batch.questions.shape).tolist()
    of_kinds = [scores[f"accuracy_{kind}"] for kind in KINDS]
    assert np.array_equal(np.sum(~np.isnan(of_kinds), 0), np.ones(batch.questions.shape))  # each question has one kind
    parts = [model.shard(batch, rank, 2) for rank in range(2)]
    assert [each.histories.tolist() for each in parts] == batch.histories[:, None].tolist()


def test_batches():
    """Longer histories join by the curriculum, in equal shares; validation is on other episodes; seeds decide."""
    model = make(curriculum=[2, 4, 6])
    for step, lengths in ((0, {1}), (2, {1, 2}), (5, {1, 2, 3}), (6, {1, 2, 3, 5})):
        batch = model.sample(200, np.random.default_rng(step), "train", step)
        found, counts = np.unique(batch.arrays.length[batch.histories], return_counts=True)
        assert set(found.tolist()) == lengths and counts.min() > 0.6 * 200 / len(lengths)
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
    objects, locations = list(OBJECTS), list(LOCATIONS)
    assert all(sorted(row) == list(range(15)) for row in renaming.objects.tolist())
    assert (renaming.objects[0] != renaming.objects[1]).any() and (renaming.objects[:, 0] == 0).all()
    for symbols, of_object, of_location in zip(
        *(getattr(renaming, each.name) for each in fields(renaming)), strict=True
    ):
        new = {name: objects[number - 1] for name, number in zip(objects, of_object[1:], strict=True)}
        places = {name: locations[number - 1] for name, number in zip(locations, of_location[1:], strict=True)}
        for name, other in places.items():
            assert (LOCATIONS[name].pick, LOCATIONS[name].place) == (LOCATIONS[other].pick, LOCATIONS[other].place)
        for symbol, number in SYMBOL_IDS.items():
            predicate, _, names = symbol.rstrip(")").partition("(")
            parts = [{**new, **places}.get(name, name) for name in names.split(",")]
            wanted = f"{predicate}({','.join(parts)})" if names else {**new, **places}.get(symbol, symbol)
            assert SYMBOLS[symbols[number]] == wanted
    targets, rows = model.targets(batch).numpy(), arrays.target[batch.histories[:, None], batch.questions]
    kinds = kinds_of(arrays.slots[batch.histories[:, None], batch.questions])
    assert (targets[..., 2] != rows[..., 2]).any() and (
        targets[..., 4:6].sum((2, 3)) == rows[..., 4:6].sum((2, 3))
    ).all()
    for b, q in np.ndindex(kinds.shape):
        wanted = renaming.shard(slice(b, b + 1)).of_slots(rows[b, q][None], 2, 3)[0].tolist()
        found = targets[b, q].tolist()
        assert sorted(found) == sorted(wanted) and (KINDS[kinds[b, q]] != "summary" or found == wanted)
    part = model.shard(batch, 1, 2)
    assert (part.renaming.objects == renaming.objects[1::2]).all()
    plain = replace(batch, renaming=None)
    seen = [model.encode(each)[0] for each in (batch, plain)]
    questions = [model.read(each, *model.encode(each)).questions for each in (batch, plain)]
    assert not torch.equal(*seen) and not torch.equal(*questions)


@pytest.mark.parametrize(("modalities", "renames"), [(["symbols"], True), (["signals"], False), (["images"], False)])
def test_nothing_is_renamed_without_symbols(modalities, renames):
    """Images and signals show what an object is: with another name in each batch nobody could learn it."""
    settings = {**SMALL, "memory": "none", "memory_kwargs": {}}
    model = make_question_answering("memenvs/EpisodicQA-v0", {**DATA, "modalities": ["date", *modalities]}, settings)
    assert (model.sample(2, np.random.default_rng(0)).renaming is not None) == renames


def test_wrong_settings_are_named():
    for settings, error, message in (
        (
            {"memory": "gru", "memory_kwargs": {}},
            ValueError,
            "memory must be 'none' or one that has the method `vectors`, .*, got 'gru'",
        ),
        ({"head_heads": 5}, ValueError, r"head_heads must divide head_dim \(16\), got 5"),
        ({"curriculum": [3, 1]}, ValueError, r"curriculum must be ascending numbers of batches, got \[3, 1\]"),
        ({"head_layers": 0}, ValueError, "head_layers must be an integer of at least 1"),
        ({"widths": 3}, TypeError, "unknown setting 'widths' of the model"),
    ):
        with pytest.raises(error, match=message):
            make_question_answering("memenvs/EpisodicQA-v0", DATA, {**SMALL, **settings})
    with pytest.raises(ValueError, match=r"env must be an EpisodicQA, .* got 'memenvs/Darkroom-v0'"):
        make_question_answering("memenvs/Darkroom-v0", {}, {})
    assert AnswererConfig().head_layers == 2


@pytest.mark.slow
def test_run_and_tables(tmp_path):
    """A run of the study from its preset to its numbers; means and paired errors of numbers written by hand."""
    train_small(tmp_path / "run", "episodic-qa", SMALL)
    assert 0 <= mean_over_kinds(tmp_path / "run", 5) <= 1
    with RunDirectory(tmp_path / "run") as run:
        model = trained_model(run)
        batch = model.sample(4, np.random.default_rng(0), "test")
        whole, mask = model.encode(batch)
        _hide_long_term(model)
        vectors, shown = model.encode(batch)
        assert torch.equal(vectors, whole) and mask[:, 0].any() and not shown[:, 0].any()
        assert torch.equal(shown[:, 1:], mask[:, 1:])
        train_and_hide(run, True)
        report = Report("", tmp_path)
        add_tables(report, {"run": [run.path]})
        assert "run, long-term vectors hidden" in report.write(tmp_path / "report.html").read_text()
    for name, right in (("a", 3), ("b", 2)):
        count = np.zeros((1, FOLDS, len(KINDS)), int)
        count[:, :, 1:3] = 4
        correct = np.zeros_like(count)
        correct[:, :, 1] = right
        correct[0, 0, 2] = right - 1
        correct[:, :, 0] = count[:, :, 0] = 5  # the clock is left out
        counts = {"correct": correct.tolist(), "questions": count.tolist()}
        write_result(tmp_path / name, "answers", {"lengths": [5], **counts})
    assert mean_over_kinds(tmp_path / "a", 5) == pytest.approx((0.75 + 2 / 40) / 2)
    mean, error = paired_difference([tmp_path / "a"], [tmp_path / "b"], 5)
    assert mean == pytest.approx((0.25 + 1 / 40) / 2)
    assert error == pytest.approx(np.std([1 / 8] + [0] * 9, ddof=1) / np.sqrt(10))


@pytest.mark.slow
def test_sources_of_an_answer(arrays):
    """Shares of key frames and vectors: none where no gradient comes from, none of empty slots, of sum 1."""
    history = int(np.flatnonzero((arrays.length == 5) & (arrays.count > 40))[0])
    count = int(arrays.count[history])
    batch = QuestionBatch(arrays, np.array([history]), np.array([[0]]))
    for memory, reach in (("ct", 4 + 4 + 2 * 2), ("ct-lt", count), ("lstm-on", count)):
        model = make(memory)
        found = answer_sources(model, batch)
        assert found.frames.shape == (count,) and found.frames.sum() == pytest.approx(1) and model.training
        assert (found.frames[: -reach - 4] == 0).all() and (found.frames[-4:] > 0).all()
        assert memory == "ct" or (found.frames > 0).all()
        vectors, mask = model.eval().encode(batch)
        assert found.vectors.shape == (vectors.shape[1],) and 0 < found.vectors.sum() < 1
        assert (found.vectors[~mask[0].numpy()] == 0).all()
        reading = model.read(batch, vectors, mask)
        expected = model._cross_entropy(reading, model.choose(reading))[0]
        torch.testing.assert_close(model.own_answer_loss(batch), expected)
    assert answer_sources(make("none"), batch) is None
    with pytest.raises(ValueError, match=r"one question about one history, got \(1, 2\)"):
        answer_sources(make(), replace(batch, questions=np.array([[0, 1]])))


@pytest.mark.learning
@pytest.mark.nightly  # test_learning shows on every change that the loss falls
def test_one_batch_is_learned_by_heart():
    """Memory, head and loss fit: four questions about each of 16 histories, none renamed, within 200 updates."""
    env_kwargs = {**DATA, "split": "valid", "lengths": (1,)}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        policy = find_preset("episodic-qa").policy | {"questions": 4}
        model = make_question_answering("memenvs/EpisodicQA-v0", env_kwargs, policy)
    batch = model.sample(16, np.random.default_rng(0), "test")
    model.sample = lambda count, rng, split, step=0: batch
    settings = QuestionConfig(batch_size=16, learning_rate=4e-3, warmup_steps=20)
    SupervisedLearner(model, settings, 200).learn(200)
    assert model.eval().scores(batch)["accuracy"].mean() > 0.9


def test_places_get_each_name_of_their_role_equally_often():
    renaming = draw_renaming(300, np.random.default_rng(0))
    roles = [None, *((each.pick, each.place) for each in LOCATIONS.values())]  # 0 is none
    for number, role in enumerate(roles):
        wanted = [other for other, each in enumerate(roles) if each == role]
        counts = np.bincount(renaming.locations[:, number], minlength=len(roles))
        assert np.flatnonzero(counts).tolist() == wanted
        assert counts[wanted].min() > 0.6 * 300 / len(wanted)


def test_answers_are_counted_by_length_fold_kind_and_distance(arrays, monkeypatch):
    """Only the category "correct" counts as right; the histories of each length go to the folds in turn."""
    model = make("none")

    def score(row: int, question: int) -> Score:
        return Score(1 + (row + question) % 7, row % 3, question, 5)

    model.score_answers = lambda batch: [
        [score(row, question) for question in range(4)] for row in batch.histories.tolist()
    ]
    monkeypatch.setattr(question_answering, "trained_model", lambda run, changes: model)
    found = evaluate_answers(SimpleNamespace(config=SimpleNamespace(use_threads=lambda: None)))
    assert found["lengths"] == [1, 2, 3, 5]
    for i, length in enumerate(found["lengths"]):
        right, total = np.zeros((2, FOLDS, len(KINDS)), int)
        facts, categories, distance = np.zeros(3, int), np.zeros(7, int), {}
        for place, row in enumerate(np.flatnonzero(arrays.length == length).tolist()):
            for question in range(4):
                qa = arrays.dialogs.question(int(arrays.numbers[row]), question).qa
                category, *counts = score(row, question)
                where = place % FOLDS, KINDS.index(qa.kind)
                right[where] += category == 2
                total[where] += 1
                facts += counts
                categories[category - 1] += 1
                if qa.distance is not None:
                    before = distance.get(str(qa.distance), (0, 0))
                    distance[str(qa.distance)] = [before[0] + (category == 2), before[1] + 1]
        for name, values in (("correct", right), ("questions", total), ("facts", facts), ("categories", categories)):
            assert found[name][i] == values.tolist(), name
        assert found["distance"][i] == distance


def test_paired_errors_add_that_over_seeds(tmp_path):
    """The differences of two seeds are 0.2 and 0.4 in every fold: the error is that of their mean, 0.1."""
    runs: dict[str, list[Path]] = {"a": [], "b": []}
    for seed, rights in enumerate(({"a": 4, "b": 2}, {"a": 7, "b": 3})):
        for name, right in rights.items():
            count = np.zeros((1, FOLDS, len(KINDS)), int)
            count[..., 1] = 10
            counts = {"correct": (count * right // 10).tolist(), "questions": count.tolist()}
            runs[name].append(tmp_path / f"{name}-{seed}")
            write_result(runs[name][-1], "answers", {"lengths": [5], **counts})
    assert paired_difference(runs["a"], runs["b"], 5) == pytest.approx((0.3, 0.1))


def test_shares_by_distance_are_those_of_the_evaluation(tmp_path):
    """Those without the long-term vectors are another file; NaN stands for a distance of no question."""
    for name, right in (("answers", 3), (HIDDEN, 1)):
        write_result(tmp_path, name, {"lengths": [2, 5], "distance": [{"1": [0, 9]}, {"1": [right, 4], "2": [2, 4]}]})
    assert _by_distance([tmp_path], 5, 1) == [0.75]
    assert _by_distance([tmp_path], 5, 1, HIDDEN) == [0.25]
    assert np.isnan(_by_distance([tmp_path], 5, 3)).all()


def test_long_and_many_histories_are_those_of_the_evaluation_but_for_what_they_change(tmp_path, monkeypatch):
    changes: list[object] = []
    for name in ("train_run", "evaluate_predictions"):
        monkeypatch.setattr(question_answering, name, lambda run, quiet: None)
    monkeypatch.setattr(question_answering, "evaluate_answers", lambda run, given=None: changes.append(given) or {})
    for questions, few in ((60, 20), (4, 4)):
        settings = {"split": "test", "lengths": [1, 5], "questions": questions}
        config = SimpleNamespace(eval_kwargs=settings, env_kwargs={"scale": "study"})
        train_and_evaluate(SimpleNamespace(path=tmp_path / str(few), config=config), True)
        many = {"split": "test", "lengths": [5], "questions": questions, "histories": 400}
        assert changes[-3:] == [None, {"split": "test", "lengths": [20, 50], "questions": few}, many]


def test_differences_in_many_histories(tmp_path, capsys):
    """Two seeds of two agents: 20 and 40 points apart in the mean over kinds, 25 and 50 at the oldest."""
    runs: dict[str, list[Path]] = {"episodic-qa:wide": [], "episodic-qa:wide-ct": []}
    for seed, rights in enumerate(((4, 2), (7, 3))):
        for (name, folders), right in zip(runs.items(), rights, strict=True):
            count = np.zeros((1, FOLDS, len(KINDS)), int)
            count[..., 1] = 10
            counts = {"correct": (count * right // 10).tolist(), "questions": count.tolist()}
            folders.append(tmp_path / f"{name[12:]}-{seed}")
            distance = [{"5": [right, 8]}]
            write_result(folders[-1], MANY, {"lengths": [5], "distance": distance, **counts})
    _add_many(Report("", tmp_path), runs)
    printed = capsys.readouterr().out
    assert "| episodic-qa:wide | 40.0, 70.0 | - | - | - | - | 50.0, 87.5 |" in printed
    assert "| wide - wide-ct | +30.0 +- 10.0 | +20.0, +40.0 | +25.0, +50.0 |" in printed
    _add_many(Report("", tmp_path), {**runs, "episodic-qa:wide-lstm-o1": [tmp_path]})
    assert "lstm" not in capsys.readouterr().out


def test_precision_and_recall_of_facts(tmp_path):
    """Of all lengths together: 6 of the 8 given facts are right, and 12 were expected."""
    write_result(tmp_path, "answers", {"facts": [[1, 2, 4], [5, 0, 8]]})
    assert information([tmp_path]) == ("75.0", "50.0")


def test_supervised_training_keeps_its_histories_and_questions():
    """Those of the environments changed; results of supervised training are older."""
    assert make_question_answering("memenvs/EpisodicQA-v0", {}, SMALL).config == EpisodicQAConfig()
    long = make_question_answering("memenvs/EpisodicQA-Long-v0", {"sampling": "even"}, SMALL).config
    assert (long.lengths, long.sampling) == ((20, 50, 100), "even")
