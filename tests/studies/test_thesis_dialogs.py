"""Dialogs of the thesis: totals by hand, and what the memories share."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from memenvs.agents.study import Played, Rows, load_study, read_rows
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.language.facts import DENIAL, Clause, Later
from memenvs.verbalization.language.presets import LanguageConfig


def test_a_total_has_the_mix_of_the_thesis(module):
    """Action counts 45, object 7; a kind that was not asked counts for nothing."""
    counts = {"action": [1, 4], "object": [3, 3], "summary": [0, 0]}
    row = {"task": "long-term", "method": "ct", "seed": 0, "evaluations": {"evaluation": {"test": {"10": counts}}}}
    rows = Rows([row, {**row, "seed": 1}])
    expected = (45 * 0.25 + 7) / 52
    np.testing.assert_allclose(module.total(rows, "long-term", "ct", 10), [expected, expected])
    assert np.isnan(module.of_kind(rows, "long-term", "ct", 10, "summary")).all()
    assert tuple(module.MIX["long-term"].values()) == LanguageConfig().weights  # questions are drawn so


def test_memories_differ_in_nothing_else(study, file):
    for configs in study.configs.values():
        first = configs["ct"]
        assert EpisodicQAConfig(**first.env_kwargs).preset == "faithful"
        for method, config in configs.items():
            assert {key for key in vars(first) if getattr(first, key) != getattr(config, key)} <= {"learner", "policy"}
            policies = [{k: v for k, v in own.policy.items() if "memory" not in k} for own in (first, config)]
            assert policies[1] == {**policies[0], "rename": method == "ct-lt, new names"}
        rows = read_rows(file.with_name("rows.jsonl"))
        weights = {rows.results(task, method, "weights")[0] for task in study.configs for method in configs} - {0}
        assert max(weights) < 2 * min(weights)


def test_rates_were_tried_with_a_seed_that_is_not_reported(study, file):
    rates = load_study(file.with_name("rates.py"))
    assert not set(rates.seeds) & set(study.seeds)
    assert all(rates.configs[task].keys() >= {f"{m}, 0.002" for m in own} for task, own in study.configs.items())


def question(*clauses: Clause, distance: int | None = None, kind: str = "action") -> SimpleNamespace:
    return SimpleNamespace(kind=kind, distance=distance, answer=SimpleNamespace(clauses=clauses))


CUP, BOWL = Clause(verb="grasp", object="cup"), Clause(verb="move", object="bowl", later=Later("hours", 2))


@pytest.fixture
def played(study):
    return Played("long-term", "ct", study.config(("long-term", "ct", 0)), None)


def test_summaries_with_and_without_their_times(module, played, monkeypatch):
    """The third says another object, and the last is of a period without an episode."""
    late = BOWL._replace(later=Later("hours", 3))
    other = BOWL._replace(object="cup")
    gold = question(CUP, BOWL)
    pairs = [((CUP, BOWL), gold), ((CUP, late), gold), ((CUP, other), gold), (None, gold), (DENIAL, question(*DENIAL))]
    monkeypatch.setattr(module, "answer", lambda *_, **__: pairs)
    assert module.summarize(played) == [1, 2, 4]
    assert module.summarize(replace(played, task="previous")) is None


def test_answers_by_how_many_episodes_back(module, played, monkeypatch):
    """Durations are left out, and questions about no episode."""
    pairs = [
        ((CUP,), question(CUP, distance=1)),
        ((BOWL,), question(CUP, distance=1)),
        ((CUP,), question(CUP, distance=10)),
        ((CUP,), question(CUP, distance=10, kind="duration")),
        ((CUP,), question(CUP)),
    ]
    monkeypatch.setattr(module, "answer", lambda *_, **__: pairs)
    counts = module.look_back(played)
    assert {back: own for back, own in counts.items() if own[1]} == {"1": [1, 2], "10": [1, 1]}
