"""Dialogs of EMV's thesis: memories learn from histories of one to ten episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.progress import count_weights
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent, mean_and_margin
from memenvs.agents.papers.emv.learner import AnsweringModel
from memenvs.agents.presets import find_preset
from memenvs.agents.study import EVALUATION, Played, Rows, Study, Table, changed, read_rows
from memenvs.verbalization.language.facts import DENIAL, Clause
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.score import CORRECT, score_clauses
from memenvs.verbalization.language.wordings import KINDS

#: Episodes of the histories of training and tests.
LENGTHS = (1, 2, 3, 5, 10)
BATCHES = 1_200
#: Histories that are answered together.
HISTORIES = 50
#: Learning rates, of which each memory has the better one in each task; it falls to 0.
RATES = ("0.002", "0.004")
RATE_ROWS = Path(__file__).with_name("rates.jsonl")
#: Task -> changes of the preset: the thesis' own dialogs, and those of the work before it.
DIALOGS: dict[str, dict[str, Any]] = {
    "long-term": {"env_kwargs.pairs": "seen"},
    "previous": {"env_kwargs.kinds": list(KINDS[:-2]), "env_kwargs.objects": ["greencup", "redcup", "corn"]},
}
#: Task -> share of each kind in the thesis' totals, solved from its table 5.3; those of "previous" make 101.
MIX = {
    "long-term": dict(zip(KINDS, (9, 45, 9, 12, 4, 7, 9, 4, 1), strict=True)),
    "previous": dict(zip(KINDS[:-2], (6, 65, 6, 9, 7, 2, 6), strict=True)),
}
#: Right answers in the thesis' table 5.3 by `LENGTHS`, %.
THESIS = {
    "long-term": {"ct-lt in the thesis": (71, 58, 53, 44, 35), "text-only in the thesis": (29, 30, 30, 30, 30)},
    "previous": {"ct-lt in the thesis": (79, 62, 57, 48, 34), "text-only in the thesis": (22, 24, 22, 22, 22)},
}
#: Method -> changes of the preset, whose memory is `ct-lt`.
QUEUES = find_preset("episodic-qa").policy["memory_kwargs"]
METHODS: dict[str, dict[str, Any]] = {
    "text-only": {"policy.memory": "none", "policy.memory_kwargs": {}},
    "lstm-o1": {"policy.memory": "lstm-o1", "policy.memory_kwargs": {"dim": 64, "layers": 2, "capacity": 21}},
    "ct": {"policy.memory": "ct", "policy.memory_kwargs": QUEUES},
    "ct-lt": {},
    "ct-lt, new names": {"policy.rename": True},
}
#: Split -> whose histories are played; those of "previous" alone have no pairs that were not seen.
SPLITS = {"long-term": ("test", "unseen_pairs", "shift"), "previous": ("test",)}


def make_tasks() -> dict[str, RunConfig]:
    """Settings of a run in each task, without those of its memory."""
    common = {
        "env_kwargs.preset": "faithful",
        "env_kwargs.lengths": list(LENGTHS),
        "total_steps": BATCHES,
        "questions.checkpoint_steps": BATCHES // 4,
        "questions.validation_episodes": 100,
        "policy.curriculum": [120, 240, 360, 480],
        "policy.rename": False,
    }
    return {task: changed(find_preset("episodic-qa"), {**common, **own}) for task, own in DIALOGS.items()}


def at_rate(config: RunConfig, method: str, rate: str) -> RunConfig:
    """Settings of a task with a memory and a learning rate."""
    return changed(config, {**METHODS[method], "questions.learning_rate": float(rate)})


def best_rate(rates: Rows, task: str, method: str) -> str:
    """The better learning rate of a memory; the first one until both have been tried."""
    scores = [rates.results(task, f"{method}, {rate}") for rate in RATES]
    return RATES[int(np.argmax(scores))] if all(scores) else RATES[0]


def play(played: Played, seed: int = 1) -> dict[str, Any]:
    """Right answers and questions by split, length of the history and kind of question."""
    assert played.run is not None
    config = played.config
    config.use_threads()
    scores: dict[str, Any] = {}
    for split in SPLITS[played.task]:
        for length in config.eval_kwargs["lengths"]:
            model = trained_model(played.run, {**config.eval_kwargs, "split": split, "lengths": [length]})
            metrics = evaluate_model(model, config.eval_trials, seed)
            kinds = {kind: metrics[f"accuracy_{kind}"] for kind in config.env_kwargs["kinds"]}  # NaN at other kinds
            counts = {kind: [int(np.nansum(own)), int(np.isfinite(own).sum())] for kind, own in kinds.items()}
            scores.setdefault(split, {})[str(length)] = counts
    return scores


@torch.no_grad()
def answer(played: Played, **changes: Any) -> list[tuple[Sequence[Clause] | None, QuestionAnswer]]:
    """Answers to questions about the test histories, with the questions and their gold answers."""
    assert played.run is not None
    played.config.use_threads()
    model = trained_model(played.run, {**played.config.eval_kwargs, **changes}).eval()
    assert isinstance(model, AnsweringModel)
    rng, pairs = np.random.default_rng(1), []
    for begin in range(0, played.config.eval_trials, HISTORIES):
        batch = model.sample(min(HISTORIES, played.config.eval_trials - begin), rng, "test")
        for answers, asked in zip(model.answers(batch), model.gold(batch), strict=True):
            pairs += zip(answers, asked, strict=True)
    return pairs


def summarize(played: Played) -> list[int] | None:
    """Summaries of one episode: right ones, those right but for their times, and all; None where none are asked for.

    Those of a period without an episode are left out.
    """
    if "summary" not in MIX[played.task]:
        return None
    pairs = [
        (clauses, qa.answer.clauses)
        for clauses, qa in answer(played, lengths=[1], kinds=["summary"])
        if qa.answer.clauses != DENIAL
    ]
    but_for_times = [(timeless(clauses), timeless(gold)) for clauses, gold in pairs]
    return [*(sum(is_right(*pair) for pair in own) for own in (pairs, but_for_times)), len(pairs)]


def look_back(played: Played) -> dict[str, list[int]]:
    """Right answers and questions in histories of ten episodes by how many episodes back; 1 is the newest."""
    counts = {str(back + 1): [0, 0] for back in range(LENGTHS[-1])}
    for clauses, qa in answer(played, lengths=[LENGTHS[-1]]):
        if qa.distance is not None and qa.kind != "duration":  # a duration is known without a memory
            own = counts[str(qa.distance)]
            own[0] += is_right(clauses, qa.answer.clauses)
            own[1] += 1
    return counts


def is_right(clauses: Sequence[Clause] | None, expected: Sequence[Clause]) -> bool:
    """Say if an answer has all facts and no wrong one."""
    return score_clauses(clauses, expected, None).category == CORRECT


def timeless(clauses: Sequence[Clause] | None) -> list[Clause]:
    """Clauses without what they say of time."""
    return [clause._replace(time=None, later=None) for clause in clauses or ()]


def shares_of(rows: Rows, task: str, method: str, length: int, split: str = "test") -> list[dict[str, float]]:
    """Share of right answers to each kind of question in the test, one dict per seed."""
    results = [result[split][str(length)] for result in rows.results(task, method)]
    return [{kind: right / count for kind, (right, count) in counts.items() if count} for counts in results]


def total(rows: Rows, task: str, method: str, length: int, split: str = "test") -> np.ndarray:
    """Right answers by the thesis' mix of kinds, float64 (seeds,)."""
    mix = MIX[task]
    results = shares_of(rows, task, method, length, split)
    return np.array([np.average([*shares.values()], weights=[mix[kind] for kind in shares]) for shares in results])


def of_kind(rows: Rows, task: str, method: str, length: int, kind: str) -> np.ndarray:
    """Right answers to questions of a kind, float64 (seeds,); NaN without such a question."""
    return np.array([shares.get(kind, np.nan) for shares in shares_of(rows, task, method, length)])


def make_tables(rows: Rows) -> list[Table]:
    """Right answers by length; kinds of questions with one episode and with ten; other splits."""
    rates = read_rows(RATE_ROWS)
    methods = [(task, method) for task in DIALOGS for method in METHODS if rows.of(task, method)]
    lengths = [
        [*cell, *(format_percent(total(rows, *cell, n)) for n in LENGTHS), best_rate(rates, *cell)] for cell in methods
    ]
    kinds = [
        [*cell, n, *(format_percent(of_kind(rows, *cell, n, kind)) if kind in MIX[cell[0]] else "-" for kind in KINDS)]
        for cell in methods
        for n in (1, 10)
    ]
    backs = [
        [*cell, *(format_percent(np.array([right / n for right, n in shares])) for shares in by_back)]
        for cell in methods
        if (by_back := list(zip(*(own.values() for own in rows.results(*cell, "distances")), strict=True)))
    ]
    splits = [
        [method, split, *(format_percent(total(rows, task, method, n, split)) for n in LENGTHS)]
        for task, method in methods
        if len(SPLITS[task]) > 1
        for split in SPLITS[task]
    ]
    summaries = [
        [method, *(format_percent(rows_of[:, i] / rows_of[:, 2]) for i in range(2))]
        for method in METHODS
        if len(rows_of := np.array(rows.results("long-term", method, "summaries")))
    ]
    episodes = ["1 episode", *(f"{n} episodes" for n in LENGTHS[1:])]
    return [
        Table("Right answers, %", ["dialogs", "memory", *episodes, "learning rate"], lengths),
        Table("By kind of question", ["dialogs", "memory", "episodes", *KINDS], kinds),
        Table("Summaries of one episode, %", ["memory", "right", "right but for their times"], summaries),
        Table("Ten episodes, by how many back, %", ["dialogs", "memory", *map(str, range(1, LENGTHS[-1] + 1))], backs),
        Table("In other episodes", ["memory", "split", *episodes], splits),
    ]


def draw(rows: Rows) -> Figure | None:
    """Right answers by length, of the memories and in the thesis; None where a memory has no run."""
    figure = Figure(figsize=(9, 3.4), dpi=100, layout="constrained")
    for axes, task in zip(figure.subplots(1, len(DIALOGS), sharey=True), DIALOGS, strict=True):
        for colour, method in zip(COLOURS, METHODS, strict=False):
            if not rows.of(task, method):
                return None
            means, margins = np.transpose([mean_and_margin(100 * total(rows, task, method, n)) for n in LENGTHS])
            axes.plot(LENGTHS, means, "o-", color=colour, label=method)
            axes.fill_between(LENGTHS, means - margins, means + margins, color=colour, alpha=0.15, linewidth=0)
        for name, shares in THESIS[task].items():
            axes.plot(LENGTHS, shares, "--", color="0.3", label=name, marker="s" if "ct" in name else "v", markersize=4)
        axes.set(title=task, xlabel="episodes of the history", ylim=(0, 100), xticks=LENGTHS)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("right answers, %")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to four batches about small histories."""
    small = {"scale": "smoke", "questions": 4}
    return changed(
        replace(
            config,
            total_steps=4,
            env_kwargs={**config.env_kwargs, **small},
            eval_kwargs={**config.eval_kwargs, **small},
            eval_trials=4,
        ),
        {"questions.validation_episodes": 4, "questions.batch_size": 4, "policy.questions": 4},
    )


STUDY = Study(
    title="The thesis' dialogs: which memory of constant size answers",
    configs={
        task: {method: at_rate(config, method, best_rate(read_rows(RATE_ROWS), task, method)) for method in METHODS}
        for task, config in make_tasks().items()
    },
    evaluations={
        EVALUATION: play,
        "summaries": summarize,
        "distances": look_back,
        "weights": lambda played: count_weights(trained_model(played.run))["memory"],
    },
    tables=make_tables,
    figures={"thesis_dialogs": draw},
    smoke=smoke,
)
