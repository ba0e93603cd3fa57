"""Dialogs of EMV's thesis: memories learn from histories of one to ten episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.progress import count_weights
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent, mean_and_margin
from memenvs.agents.papers.emv.data import load_arrays
from memenvs.agents.papers.emv.learner import AnsweringModel, QuestionBatch
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, find_studies, load_study, read_rows
from memenvs.verbalization.language.facts import DENIAL, Clause
from memenvs.verbalization.language.presets import LanguageConfig
from memenvs.verbalization.language.score import CORRECT, score_clauses
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import split_size

#: The study of `EpisodicQA-v0`, whose evaluation counts the answers.
EPISODIC = load_study(find_studies()["episodic_qa"])
#: Episodes of the histories of training and tests.
LENGTHS = (1, 2, 3, 5, 10)
BATCHES = 1_200
#: How many times as many histories are played as the preset has; this makes 100 of each length, as in the thesis.
TIMES = 2
#: Learning rates, of which each memory has the better one in each task; it falls to 0.
RATES = ("0.002", "0.004")
RATE_ROWS = Path(__file__).with_name("rates.jsonl")
#: Task -> changes of the preset: the thesis' own dialogs, and those of the work before it.
DIALOGS: dict[str, dict[str, Any]] = {
    "long-term": {"env_kwargs.pairs": "seen"},
    "previous": {"env_kwargs.kinds": list(KINDS[:-2]), "env_kwargs.objects": ["greencup", "redcup", "corn"]},
}
#: Task -> weight of each kind in the totals of the thesis, solved from its table 5.3; questions are drawn by the first.
MIX = {
    "long-term": dict(zip(KINDS, LanguageConfig().weights, strict=True)),
    "previous": dict(zip(KINDS[:-2], (6, 65, 6, 9, 7, 2, 6), strict=True)),
}
#: Right answers in the thesis' table 5.3 by `LENGTHS`, %.
THESIS = {
    "long-term": {"ct-lt in the thesis": (71, 58, 53, 44, 35), "text-only in the thesis": (29, 30, 30, 30, 30)},
    "previous": {"ct-lt in the thesis": (79, 62, 57, 48, 34), "text-only in the thesis": (22, 24, 22, 22, 22)},
}
QUEUES = find_preset("episodic-qa").policy["memory_kwargs"]
#: Method -> changes of the preset, whose memory is `ct-lt`.
METHODS: dict[str, dict[str, Any]] = {
    "text-only": {"policy.memory": "none", "policy.memory_kwargs": {}},
    "lstm-o1": {"policy.memory": "lstm-o1", "policy.memory_kwargs": {"dim": 64, "layers": 2, "capacity": 21}},
    "ct": {"policy.memory": "ct", "policy.memory_kwargs": QUEUES},
    "ct-lt": {},
    "ct-lt, new names": {"policy.rename": True},
}
#: Task -> splits that are played.
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


def play(played: Played) -> dict[str, Any]:
    """Right answers and questions by split and length: of each kind, and by episodes back."""
    settings = played.config.eval_kwargs
    scale = settings.get("scale", played.config.env_kwargs["scale"])
    scores: dict[str, Any] = {}
    for split in SPLITS[played.task]:
        changes = {"split": split, "histories": TIMES * split_size(scale, split).histories}
        config = replace(played.config, eval_kwargs={**settings, **changes})
        own = EPISODIC.evaluations["answers"](replace(played, config=config))
        counts = np.stack([np.sum(own[name], 1) for name in ("correct", "questions")], -1).tolist()
        scores[split] = {
            str(length): {"kinds": dict(zip(KINDS, kinds, strict=True)), "back": back}
            for length, kinds, back in zip(own["lengths"], counts, own["distance"], strict=True)
        }
    return scores


@torch.no_grad()
def summarize(played: Played) -> list[int] | None:
    """Summaries of one episode: right ones, those right but for their times, and all.

    Those of a period without an episode are left out. None in a task without such questions.
    """
    assert played.run is not None
    if "summary" not in MIX[played.task]:
        return None
    played.config.use_threads()
    model = trained_model(played.run, {**played.config.eval_kwargs, "lengths": [1], "kinds": ["summary"]}).eval()
    assert isinstance(model, AnsweringModel)
    arrays = load_arrays(model.task.dialogs("test"))
    (histories,) = arrays.dialogs.by_length.values()
    batch = QuestionBatch(arrays, histories, np.tile(np.arange(model.config.questions), (len(histories), 1)))
    pairs = [
        (clauses, qa.answer.clauses)
        for answers, golds in zip(model.answers(batch), model.gold(batch), strict=True)
        for clauses, qa in zip(answers, golds, strict=True)
        if qa.answer.clauses != DENIAL
    ]
    return [*count_right(pairs), len(pairs)]


def count_right(pairs: Sequence[tuple[Sequence[Clause] | None, Sequence[Clause]]]) -> list[int]:
    """Right ones of answers and gold answers, and those that are right but for their times."""
    without = [(timeless(clauses), timeless(gold)) for clauses, gold in pairs]
    return [sum(score_clauses(*pair, None).category == CORRECT for pair in own) for own in (pairs, without)]


def timeless(clauses: Sequence[Clause] | None) -> list[Clause]:
    """Clauses without what they say of time."""
    return [clause._replace(time=None, later=None) for clause in clauses or ()]


def shares_of(rows: Rows, task: str, method: str, length: int, split: str = "test") -> list[dict[str, float]]:
    """Share of right answers to each kind of question, one dict per seed."""
    results = [result[split][str(length)]["kinds"] for result in rows.results(task, method, "answers")]
    return [{kind: right / count for kind, (right, count) in counts.items() if count} for counts in results]


def by_back(rows: Rows, task: str, method: str) -> list[str]:
    """Right answers about ten episodes by how many episodes back, each as a mean over seeds."""
    results = [result["test"][str(LENGTHS[-1])]["back"] for result in rows.results(task, method, "answers")]
    pairs = [[result.get(str(back + 1), [0, 0]) for result in results] for back in range(LENGTHS[-1])]
    return [format_percent(np.array([r / n for r, n in own])) if all(n for _, n in own) else "-" for own in pairs]


def total(rows: Rows, task: str, method: str, length: int, split: str = "test") -> np.ndarray:
    """Right answers by the thesis' mix of kinds, float64 (seeds,)."""
    mix = MIX[task]
    results = shares_of(rows, task, method, length, split)
    return np.array([np.average([*shares.values()], weights=[mix[kind] for kind in shares]) for shares in results])


def of_kind(rows: Rows, task: str, method: str, length: int, kind: str) -> np.ndarray:
    """Right answers to questions of a kind, float64 (seeds,); NaN without such a question."""
    return np.array([shares.get(kind, np.nan) for shares in shares_of(rows, task, method, length)])


def rate_of(task: str, method: str) -> str:
    """Learning rate of a memory."""
    return str(STUDY.configs[task][method].learner.learning_rate)  # type: ignore[union-attr]


def make_tables(rows: Rows) -> list[Table]:
    """Right answers by length; kinds of questions with one episode and with ten; other splits."""
    methods = [(task, method) for task in DIALOGS for method in METHODS if rows.of(task, method)]
    lengths = [[*cell, *(format_percent(total(rows, *cell, n)) for n in LENGTHS), rate_of(*cell)] for cell in methods]
    kinds = [
        [*cell, n, *(format_percent(of_kind(rows, *cell, n, kind)) if kind in MIX[cell[0]] else "-" for kind in KINDS)]
        for cell in methods
        for n in (1, 10)
    ]
    splits = [
        [method, split, *(format_percent(total(rows, task, method, n, split)) for n in LENGTHS)]
        for task, method in methods
        if len(SPLITS[task]) > 1
        for split in SPLITS[task]
    ]
    summaries = [
        [method, *(format_percent(counts[:, i] / counts[:, 2]) for i in range(2))]
        for method in METHODS
        if len(counts := np.array(rows.results("long-term", method, "summaries"))) and counts[:, 2].all()
    ]
    backs = [[*cell, *by_back(rows, *cell)] for cell in methods]
    episodes = ["1 episode", *(f"{n} episodes" for n in LENGTHS[1:])]
    return [
        Table("Right answers, %", ["dialogs", "memory", *episodes, "learning rate"], lengths),
        Table("By kind of question", ["dialogs", "memory", "episodes", *KINDS], kinds),
        Table("Summaries of one episode, %", ["memory", "right", "right but for their times"], summaries),
        Table("Ten episodes, by how many back, %", ["dialogs", "memory", *map(str, range(1, LENGTHS[-1] + 1))], backs),
        Table("In other episodes", ["memory", "split", *episodes], splits),
    ]


def draw(rows: Rows) -> Figure | None:
    """Right answers by length, here and in the thesis; None where a memory has no run."""
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


STUDY = Study(
    title="The thesis' dialogs: which memory of constant size answers",
    configs={
        task: {method: at_rate(config, method, best_rate(read_rows(RATE_ROWS), task, method)) for method in METHODS}
        for task, config in make_tasks().items()
    },
    evaluations={
        "answers": play,
        "summaries": summarize,
        "weights": lambda played: count_weights(trained_model(played.run))["memory"],
    },
    tables=make_tables,
    figures={"thesis_dialogs": draw},
    smoke=EPISODIC.smoke,
)
