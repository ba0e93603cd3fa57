"""The study of memories that answer questions: evaluation of a run, tables over runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions, trained_model
from memenvs.agents.experiments.report import Report, add_table
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.experiments.train import train_run
from memenvs.agents.memory.compressive.memory import CompressiveMemory
from memenvs.agents.papers.emv.data import load_arrays
from memenvs.agents.papers.emv.learner import AnsweringModel, QuestionBatch
from memenvs.agents.papers.emv.slots import kinds_of
from memenvs.agents.studies.study_results import has_results, read_result, write_result
from memenvs.verbalization.language.score import CATEGORIES, CORRECT
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import split_size

EVALUATIONS = ("evaluation", "answers")
"""Evaluations without which a run is unfinished; "long" and `MANY` are made with them."""
HISTORIES = 50
"""Histories that are answered together."""
FOLDS = 10
"""Parts of the test histories, over which paired errors are computed."""
LONG = {"lengths": [20, 50], "questions": 20}
"""Changes of the settings for histories far longer than any in training; the evaluation "long"."""
MANY, MANY_LENGTH, TIMES = "many", 5, 8
"""Name of an evaluation in histories of `MANY_LENGTH` episodes, `TIMES` as many as in the tests: smaller errors."""
HIDDEN = "without_long_term"
"""Evaluation in which the head does not see the long-term vectors."""
WITHOUT_MEMORY = "clock"
"""Kind of question that needs no memory: left out of means over kinds."""
Runs = Mapping[str, Sequence[Path]]
"""Name of a run -> folders, one per seed."""


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train a run to its end and write the evaluations that are not there.

    Args:
        run: The folder.
        quiet: Show no progress bar.
    """
    train_run(run, quiet=quiet)
    if not has_results(run.path, "answers"):
        write_result(run.path, "answers", evaluate_answers(run))
    if not has_results(run.path, "long"):
        few = min(LONG["questions"], run.config.eval_kwargs.get("questions", LONG["questions"]))
        write_result(run.path, "long", evaluate_answers(run, {**run.config.eval_kwargs, **LONG, "questions": few}))
    if not has_results(run.path, MANY):
        kwargs = run.config.eval_kwargs
        histories = TIMES * split_size(kwargs.get("scale", run.config.env_kwargs["scale"]), "test").histories
        changes = {**kwargs, "lengths": [MANY_LENGTH], "histories": histories}
        write_result(run.path, MANY, evaluate_answers(run, changes))
    if not has_results(run.path, "evaluation"):
        evaluate_predictions(run, quiet=quiet)


def train_and_hide(run: RunDirectory, quiet: bool) -> None:
    """Do what `train_and_evaluate` does, then evaluate without the long-term vectors.

    Args:
        run: The folder.
        quiet: Show no progress bar.
    """
    train_and_evaluate(run, quiet)
    if not has_results(run.path, HIDDEN):
        write_result(run.path, HIDDEN, evaluate_answers(run, hides_long_term=True))


@torch.no_grad()
def evaluate_answers(
    run: RunDirectory, changes: Mapping[str, Any] | None = None, *, hides_long_term: bool = False
) -> dict[str, Any]:
    """Answer every question about every history of the evaluation.

    Args:
        run: The folder.
        changes: Changes to the settings of the environment; None: those of the evaluation.
        hides_long_term: If True, the head does not see the vectors of a long-term state.

    Returns:
        "lengths": lengths of histories. "correct" and "questions", by length, fold of the histories and kind: right
        answers and questions. "distance": by length, reference distance -> [right, answers]. "facts": by length
        [correct, incorrect, expected]. "categories": by length, the number of answers in each of `CATEGORIES`.
    """
    run.config.use_threads()
    model = trained_model(run, changes).eval()
    assert isinstance(model, AnsweringModel)
    if hides_long_term:
        _hide_long_term(model)
    arrays = load_arrays(model.config)
    n_questions = arrays.slots.shape[1]
    kinds = kinds_of(arrays.slots)
    lengths = np.unique(arrays.length[arrays.length > 0])
    shape = (len(lengths), FOLDS, len(KINDS))
    correct, count = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    distance: list[dict[int, list[int]]] = [{} for _ in lengths]
    facts = np.zeros((len(lengths), 3), np.int64)
    categories = np.zeros((len(lengths), len(CATEGORIES)), np.int64)
    for i, length in enumerate(lengths.tolist()):
        histories = np.flatnonzero(arrays.length == length)
        for part in np.split(histories, range(HISTORIES, len(histories), HISTORIES)):
            batch = QuestionBatch(arrays, part, np.tile(np.arange(n_questions), (len(part), 1)))
            for row, scores in zip(part.tolist(), model.score_answers(batch), strict=True):
                fold = int(np.searchsorted(histories, row)) % FOLDS
                for question, score in enumerate(scores):
                    qa = arrays.dialogs.question(int(arrays.numbers[row]), question).qa
                    is_right = score.category == CORRECT
                    correct[i, fold, kinds[row, question]] += is_right
                    count[i, fold, kinds[row, question]] += 1
                    facts[i] += (score.correct, score.incorrect, score.expected)
                    categories[i, score.category - 1] += 1
                    if qa.distance is not None:
                        pair = distance[i].setdefault(qa.distance, [0, 0])
                        pair[0] += is_right
                        pair[1] += 1
    return {
        "lengths": lengths.tolist(),
        "correct": correct.tolist(),
        "questions": count.tolist(),
        "distance": [{str(key): each[key] for key in sorted(each)} for each in distance],
        "facts": facts.tolist(),
        "categories": categories.tolist(),
    }


def _hide_long_term(model: AnsweringModel) -> None:
    """Mask the vectors of the long-term state where the head reads; the layers of the memory still read them."""
    memory = model.model.memory
    assert isinstance(memory, CompressiveMemory)
    is_shown = torch.tensor([part != "long_term" for part in memory.vector_parts])
    encode = model.model.encode

    def encode_shown(frames: Mapping[str, Tensor], mask: Tensor) -> tuple[Tensor, Tensor]:
        vectors, is_there = encode(frames, mask)
        return vectors, is_there & is_shown.to(mask.device)

    model.model.encode = encode_shown  # type: ignore[method-assign]


def _over_kinds(correct: np.ndarray, count: np.ndarray) -> float:
    """Mean over kinds of the share of right answers, each kind alike; arrays (..., kinds) are added up first."""
    right, all_answers = (each.reshape(-1, len(KINDS)).sum(0) for each in (correct, count))
    used = [k for k, kind in enumerate(KINDS) if all_answers[k] and kind != WITHOUT_MEMORY]
    return float(np.mean(right[used] / all_answers[used]))


def mean_over_kinds(folder: Path, length: int, left_out: int | None = None, name: str = "answers") -> float:
    """Share of right answers about histories of a length, the mean over kinds.

    Args:
        folder: Folder of the run.
        length: Episodes.
        left_out: Fold to leave out; None for none.
        name: Evaluation: "answers", "long" for longer histories, or `MANY`.
    """
    answers = read_result(folder, name)
    i = answers["lengths"].index(length)
    folds = [fold for fold in range(FOLDS) if fold != left_out]
    correct, count = (np.array(answers[name][i])[folds] for name in ("correct", "questions"))
    return _over_kinds(correct, count)


def paired_difference(
    runs: Sequence[Path], others: Sequence[Path], length: int, name: str = "answers"
) -> tuple[float, float]:
    """Difference of `mean_over_kinds` of two agents, and its standard error.

    Seeds are averaged. The error is that of the jackknife over folds of the histories, with that over seeds added in
    squares where there are several.

    Args:
        runs: Folders of one agent, one per seed.
        others: Folders of the other, of the same seeds.
        length: Episodes.
        name: Evaluation; see `mean_over_kinds`.
    """
    pairs = list(zip(runs, others, strict=True))

    def difference(left_out: int | None) -> np.ndarray:
        shares = [[mean_over_kinds(each, length, left_out, name) for each in pair] for pair in pairs]
        return np.array([ours - theirs for ours, theirs in shares])

    whole = difference(None)
    without = np.array([difference(fold).mean() for fold in range(FOLDS)])
    variance = (FOLDS - 1) / FOLDS * ((without - without.mean()) ** 2).sum()
    if len(pairs) > 1:
        variance += whole.var(ddof=1) / len(pairs)
    return float(whole.mean()), float(variance**0.5)


def add_tables(report: Report, runs: Runs) -> None:
    """Add all tables over runs of the study.

    Args:
        report: The page; tables are printed too.
        runs: The runs that are there.
    """
    lengths = read_result(next(iter(runs.values()))[0], "answers")["lengths"]
    heads = [f"length {length}" for length in lengths]
    rows = [
        [name, len(folders), *(_percent([mean_over_kinds(each, length) for each in folders]) for length in lengths)]
        for name, folders in runs.items()
    ]
    add_table(report, "Right answers in %, mean over kinds but the clock, by episodes", ["run", "seeds", *heads], rows)
    long = {name: [each for each in folders if has_results(each, "long")] for name, folders in runs.items()}
    if any(long.values()):
        lengths_of_long = read_result(next(each[0] for each in long.values() if each), "long")["lengths"]
        rows = [
            [
                name,
                len(folders),
                *(_percent([mean_over_kinds(each, n, name="long") for each in folders]) for n in lengths_of_long),
            ]
            for name, folders in long.items()
            if folders
        ]
        heads = [f"length {length}" for length in lengths_of_long]
        add_table(report, "Far longer histories than in training, the same mean", ["run", "seeds", *heads], rows)
    for length in [each for each in lengths if each >= 5]:
        distances = list(range(1, length + 1))
        rows = [
            [name, *(_percent(_by_distance(folders, length, distance)) for distance in distances)]
            for name, folders in runs.items()
        ]
        title = f"Right answers in % by episodes back from the newest, histories of {length}"
        add_table(report, title, ["run", *map(str, distances)], rows)
    _add_many(report, runs)
    hidden = {name: [each for each in folders if has_results(each, HIDDEN)] for name, folders in runs.items()}
    middle = 5 if 5 in lengths else lengths[-1]
    distances = list(range(1, middle + 1))
    rows = [
        [label, len(folders), *(_percent(_by_distance(folders, middle, distance, part)) for distance in distances)]
        for name, folders in hidden.items()
        if folders
        for label, part in ((name, "answers"), (f"{name}, long-term vectors hidden", HIDDEN))
    ]
    if rows:
        title = f"The same without the long-term vectors where the head reads, histories of {middle}"
        add_table(report, title, ["run", "seeds", *map(str, distances)], rows)
    rows = [
        [name, *(_percent(_by_kind(folders, middle, number)) for number in range(len(KINDS)))]
        for name, folders in runs.items()
    ]
    add_table(report, f"Right answers in % by kind, histories of {middle}", ["run", *KINDS], rows)
    rows = [[name, *information(folders)] for name, folders in runs.items()]
    add_table(report, "Facts of all answers in %", ["run", "precision", "recall"], rows)
    rows = [[name, *(_percent(shares) for shares in _category_shares(folders).T)] for name, folders in runs.items()]
    add_table(report, "Answers by category in %", ["run", *CATEGORIES], rows)
    _add_differences(report, runs, lengths)


def _add_many(report: Report, runs: Runs) -> None:
    """Add right answers, and differences by seed, in the many histories of one length."""
    found = {name: folders for name, folders in runs.items() if all(has_results(each, MANY) for each in folders)}
    if not found:
        return
    distances = list(range(1, MANY_LENGTH + 1))
    rows = [
        [
            name,
            _percent([mean_over_kinds(each, MANY_LENGTH, name=MANY) for each in folders]),
            *(_percent(_by_distance(folders, MANY_LENGTH, distance, MANY)) for distance in distances),
        ]
        for name, folders in found.items()
    ]
    heads = ["mean over kinds", *(f"{distance} back" for distance in distances)]
    title = f"Right answers in %, {TIMES} times as many histories of {MANY_LENGTH}"
    add_table(report, title, ["run", *heads], rows)
    rows = []
    for name, (of_a, of_b) in _pairs(found).items():
        mean, error = paired_difference(of_a, of_b, MANY_LENGTH, MANY)
        oldest = [np.array(_by_distance(each, MANY_LENGTH, MANY_LENGTH, MANY)) for each in (of_a, of_b)]
        of_mean = [paired_difference([a], [b], MANY_LENGTH, MANY)[0] for a, b in zip(of_a, of_b, strict=True)]
        by_seed = (", ".join(f"{100 * each:+.1f}" for each in seeds) for seeds in (of_mean, oldest[0] - oldest[1]))
        rows.append([name, f"{100 * mean:+.1f} +- {100 * error:.1f}", *by_seed])
    if rows:
        heads = ["mean over kinds, standard error", "by seed", "oldest, by seed"]
        add_table(report, "Differences in them, points", ["runs", *heads], rows)


def _pairs(runs: Runs) -> dict[str, tuple[Sequence[Path], Sequence[Path]]]:
    """Find neighbouring agents, and others of equal size: names of both -> folders of equally many seeds."""
    wanted = [
        ("ct", "lstm-o1"),
        ("ct-lt", "ct"),
        ("longer", "longer-ct"),
        ("longer-ct", "longer-lstm-o1"),
        ("longer-ct-log", "longer-ct-26"),
        ("ml-ct-lt", "ct"),
        ("ct-slots", "ct-lt"),
        ("ct-log", "ct-26"),
        ("ct-26", "lstm-o1-26"),
        ("ct-lt", "ct-26"),
        ("wide", "wide-ct"),
        ("wide-ct", "wide-lstm-o1"),
        ("wide-head", "wide-head-ct"),
        ("wide-head-ct", "wide-head-lstm-o1"),
        ("wide-text", "wide-text-ct"),
        ("wide-text-ct", "wide-text-lstm-o1"),
        ("longer-text", "longer-text-ct"),
        ("longer-text-ct", "longer-text-lstm-o1"),
    ]
    named = {name.partition(":")[2] or "ct-lt": folders for name, folders in runs.items()}
    return {
        f"{a} - {b}": (named[a], named[b])
        for a, b in wanted
        if a in named and b in named and len(named[a]) == len(named[b])
    }


def _add_differences(report: Report, runs: Runs, lengths: Sequence[int]) -> None:
    """Add differences of agents on the same questions; see `_pairs`."""
    pairs = _pairs(runs)
    if not pairs:
        return
    rows = []
    for name, (of_a, of_b) in pairs.items():
        found = [paired_difference(of_a, of_b, length) for length in lengths]
        rows.append([name, *(f"{100 * mean:+.1f} +- {100 * error:.1f}" for mean, error in found)])
    title = "Differences of the mean over kinds, same questions, points and standard errors"
    add_table(report, title, ["runs", *(f"length {length}" for length in lengths)], rows)
    length = 5 if 5 in lengths else lengths[-1]
    rows = []
    for name, (of_a, of_b) in pairs.items():
        by_distance = [
            np.subtract(_by_distance(of_a, length, distance), _by_distance(of_b, length, distance))
            for distance in range(1, length + 1)
        ]
        rows.append([name, *(_percent(each) for each in by_distance)])
    title = f"Differences by episodes back from the newest, histories of {length}, points"
    add_table(report, title, ["runs", *map(str, range(1, length + 1))], rows)


def _percent(values: Sequence[float] | np.ndarray) -> str:
    values = np.asarray(values, float)
    return "-" if np.isnan(values).all() else format_percent(values)


def _by_distance(folders: Sequence[Path], length: int, distance: int, name: str = "answers") -> list[float]:
    """Share of right answers at a reference distance, of each seed; NaN where there is none."""
    shares = []
    for folder in folders:
        answers = read_result(folder, name)
        right, count = answers["distance"][answers["lengths"].index(length)].get(str(distance), (0, 0))
        shares.append(right / count if count else np.nan)
    return shares


def _by_kind(folders: Sequence[Path], length: int, number: int) -> list[float]:
    """Share of right answers to a kind of question, of each seed; NaN where there is none."""
    shares = []
    for folder in folders:
        answers = read_result(folder, "answers")
        i = answers["lengths"].index(length)
        right, count = (np.array(answers[name][i])[:, number].sum() for name in ("correct", "questions"))
        shares.append(right / count if count else np.nan)
    return shares


def information(folders: Sequence[Path]) -> tuple[str, str]:
    """Precision and recall over the facts of all answers, in %, of an agent's folders."""
    facts = np.array([np.array(read_result(folder, "answers")["facts"]).sum(0) for folder in folders])
    correct, incorrect, expected = facts.T
    return _percent(correct / np.maximum(1, correct + incorrect)), _percent(correct / expected)


def _category_shares(folders: Sequence[Path]) -> np.ndarray:
    """Share of each category among all answers, (seeds, categories)."""
    counts = np.array([np.array(read_result(folder, "answers")["categories"]).sum(0) for folder in folders])
    return counts / counts.sum(1, keepdims=True)
