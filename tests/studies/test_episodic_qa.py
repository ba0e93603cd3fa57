"""The study of EpisodicQA: counts of answers, and tables from counts written by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memenvs.agents.papers.emv.config import AnswererConfig
from memenvs.agents.papers.emv.experiment import HEAD_SETTINGS, MEMORY_SETTINGS
from memenvs.agents.study import ROWS, Played, Rows, Study, changed, load_study, read_rows
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.language.score import Score
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.queries import DialogQueries
from tests.agents.papers.emv.small_runs import DATA

FOLDS, TASK = 10, "episodic-qa"


@pytest.fixture(scope="module")
def own(study: Study) -> ModuleType:
    return sys.modules[study.evaluations["answers"].__module__]


def counts(right: int, of: int = 10, kind: int = 1) -> dict[str, Any]:
    """Right answers about histories of five, equally many in each fold, all of one kind."""
    count = np.zeros((1, FOLDS, len(KINDS)), int)
    count[..., kind] = of
    return {"lengths": [5], "correct": (count * right // of).tolist(), "questions": count.tolist()}


def row(method: str, seed: int, **evaluations: Any) -> dict[str, Any]:
    return {"task": TASK, "method": method, "seed": seed, "evaluations": evaluations}


def test_answers_are_counted_by_length_fold_kind_and_distance(own: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the category "correct" counts as right; the histories of each length go to the folds in turn."""

    def score(history: int, question: int) -> Score:
        return Score(1 + (history + question) % 7, history % 3, question, 5)

    class Answers:
        config = EpisodicQAConfig(**DATA, split="test")
        task = DialogQueries(config)

        def eval(self) -> Answers:
            return self

        def score_answers(self, batch: Any) -> list[list[Score]]:
            return [[score(history, question) for question in range(4)] for history in batch.histories.tolist()]

    monkeypatch.setattr(own, "trained_model", lambda run, changes: Answers())
    monkeypatch.setattr(own, "AnsweringModel", Answers)
    result = own.count_answers(SimpleNamespace(config=SimpleNamespace(use_threads=lambda: None)), {})
    assert result["lengths"] == [1, 2, 3, 5]
    dialogs = Answers.task.dialogs("test")
    for i, length in enumerate(result["lengths"]):
        right, total = np.zeros((2, FOLDS, len(KINDS)), int)
        facts, categories, distance = np.zeros(3, int), np.zeros(7, int), {}
        histories = [number for number in range(len(dialogs)) if len(dialogs.history(number)) == length]
        for place, history in enumerate(histories):
            for question in range(4):
                qa = dialogs.question(history, question).qa
                category, *numbers = score(history, question)
                at = place % FOLDS, KINDS.index(qa.kind)
                right[at] += category == 2
                total[at] += 1
                facts += numbers
                categories[category - 1] += 1
                if qa.distance is not None:
                    before = distance.get(str(qa.distance), (0, 0))
                    distance[str(qa.distance)] = [before[0] + (category == 2), before[1] + 1]
        counted = {"correct": right, "questions": total, "facts": facts, "categories": categories}
        assert {name: result[name][i] for name in counted} == {name: count.tolist() for name, count in counted.items()}
        assert result["distance"][i] == distance


def test_long_and_many_histories_are_those_of_the_evaluation_but_for_what_they_change(
    study: Study, own: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "count_answers", lambda run, changes: changes)
    for questions, few in ((60, 20), (4, 4)):
        settings = {"split": "test", "lengths": [1, 5], "questions": questions}
        config = SimpleNamespace(eval_kwargs=settings, env_kwargs={"scale": "study"})
        played = Played(TASK, "ct", config, SimpleNamespace())
        assert study.evaluations["answers"](played) == settings
        assert study.evaluations["long"](played) == {**settings, "lengths": [20, 50], "questions": few}
        assert study.evaluations["many"](played) == {**settings, "lengths": [5], "histories": 400}


def test_shares_are_means_over_kinds_without_the_clock(module: ModuleType) -> None:
    both = counts(3, 4)
    for name, clock, rare in (("correct", 5, 1), ("questions", 5, 4)):
        for fold in both[name][0]:
            fold[0], fold[2] = clock, rare
    assert module.share_of(both, 5) == pytest.approx((0.75 + 0.25) / 2)


def test_paired_errors_add_that_over_seeds(module: ModuleType) -> None:
    """The differences of two seeds are 0.2 and 0.4 in every fold: the error is that of their mean, 0.1."""
    ours, theirs = ([counts(right) for right in rights] for rights in ((4, 7), (2, 3)))
    means, error = module.paired_difference(ours, theirs)
    assert (means.tolist(), error) == (pytest.approx([0.2, 0.4]), pytest.approx(0.1))


def test_the_error_of_one_seed_is_that_over_folds(module: ModuleType) -> None:
    """One right answer more in one fold of ten, of ten questions each: the jackknife has that of the fold's mean."""
    ours = counts(2)
    ours["correct"][0][0][1] += 1
    means, error = module.paired_difference([ours], [counts(2)])
    assert means == pytest.approx([0.01])
    assert error == pytest.approx(np.std([0.1] + [0] * 9, ddof=1) / np.sqrt(10))


def test_tables_of_many_histories(study: Study) -> None:
    """Two seeds of two memories: 20 and 40 points apart in the mean over kinds, 25 and 50 at the oldest."""

    def many(right: int) -> dict[str, Any]:
        return {**counts(right), "distance": [{"5": [right, 8]}]}

    pairs = {"wide": (4, 7), "wide-ct": (2, 3)}
    rows = [row(name, seed, many=many(right)) for name, rights in pairs.items() for seed, right in enumerate(rights)]
    printed = "\n".join(table.markdown() for table in study.tables(Rows(rows)))
    assert "with a long-term state (`wide`) | 40.0, 70.0 | - | - | - | - | 50.0, 87.5 |" in printed
    assert "| `wide` - `wide-ct` | +30.0 | 10.0 | +20.0, +40.0 | +25.0, +50.0 |" in printed
    printed = "\n".join(table.markdown() for table in study.tables(Rows(rows[:3])))
    assert "`wide` - `wide-ct`" not in printed  # other seeds


def test_precision_and_recall_of_facts(module: ModuleType) -> None:
    """Of all lengths together: 6 of the 8 facts in answers are right, and 12 were expected."""
    rows = Rows([row("wide-text", 0, answers={"facts": [[1, 2, 4], [5, 0, 8]]})])
    assert module.facts(rows, "wide-text") == ["75.0", "50.0"]


def test_the_figure_needs_every_line(study: Study, file: Path) -> None:
    rows = read_rows(file.with_name(ROWS))
    assert study.figures["episodic_qa"](rows) is not None
    assert study.figures["episodic_qa"](Rows(row for row in rows if row["method"] != "text-only")) is None


def test_words_begin_with_the_memory_and_the_head_of_their_first_stage(study: Study) -> None:
    for end in ("", "-ct", "-lstm-o1"):
        second = study.config((TASK, f"wide-text{end}", 3))
        assert second.encoder_from == study.name((TASK, f"wide{end}", 3))
        first = study.config((TASK, f"wide{end}", 3))
        ours, theirs = (AnswererConfig(**config.policy) for config in (second, first))
        for setting in MEMORY_SETTINGS + HEAD_SETTINGS:
            assert getattr(ours, setting) == getattr(theirs, setting)


@pytest.mark.slow
def test_a_run_of_each_stage(study: Study, own: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer histories than the study has, whose number is tested above."""
    monkeypatch.setattr(own, "TIMES", 1)
    rows = [study.measure((TASK, method, 0), tmp_path, smoke=True) for method in ("wide", "wide-text")]
    printed = "\n".join(table.markdown() for table in study.tables(Rows(rows)))
    assert "(`wide`) | " in printed and "Right answers in words" in printed
    for measured in rows:
        assert set(measured["evaluations"]) == {"evaluation", "answers", "long", "many"}


def test_the_lstm_has_its_best_schedule(study: Study, file: Path) -> None:
    """Of those that were tried with a seed that is not reported."""
    rates = load_study(file.with_name("rates.py"))
    rows = read_rows(file.with_name("rates.jsonl"))
    shares = {method: rows.results(TASK, method)[0]["accuracy"] for method in rates.configs[TASK]}
    tried, chosen = rates.configs[TASK][max(shares, key=shares.__getitem__)], study.configs[TASK]["wide-head-lstm-own"]
    assert not set(rates.seeds) & set(study.seeds)
    assert changed(tried, {"total_steps": 2 * tried.total_steps}) == chosen
    other = study.configs[TASK]["wide-head-lstm-o1"]
    assert replace(chosen, policy=other.policy) == other  # as many batches and weights
