"""Dialogs of the thesis: totals by hand, and what the memories share."""

import numpy as np

from memenvs.agents.study import Rows, load_study, read_rows
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.language.facts import Clause, Later
from memenvs.verbalization.language.times import TimeReference


def test_a_total_has_the_mix_of_the_thesis(module):
    """Action counts 45, object 7; a kind without a question counts for nothing."""
    counts = {"action": [1, 4], "object": [3, 3], "summary": [0, 0]}
    result = {"test": {"10": {"kinds": counts, "back": {}}}}
    row = {"task": "long-term", "method": "ct", "seed": 0, "evaluations": {"answers": result}}
    rows = Rows([row, {**row, "seed": 1}])
    expected = (45 * 0.25 + 7) / 52
    np.testing.assert_allclose(module.total(rows, "long-term", "ct", 10), [expected, expected])
    assert np.isnan(module.of_kind(rows, "long-term", "ct", 10, "summary")).all()


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


def test_rates_were_tried_with_a_seed_that_is_not_reported(study, file, module):
    tried = [
        {"task": "previous", "method": f"ct, {rate}", "seed": 100, "evaluations": {"evaluation": share}}
        for rate, share in (("0.002", 0.3), ("0.004", 0.4))
    ]
    assert module.best_rate(Rows(tried), "previous", "ct") == "0.004"
    rates = load_study(file.with_name("rates.py"))
    assert not set(rates.seeds) & set(study.seeds)
    assert all(rates.configs[task].keys() >= {f"{m}, 0.002" for m in own} for task, own in study.configs.items())


def test_a_run_is_played_in_each_split(study, tmp_path, module):
    """Twenty histories of each length, twice as many as in the scale, with four questions each."""
    row = study.measure(("long-term", "ct", 0), tmp_path, smoke=True)
    result = row["evaluations"]["answers"]
    assert list(result) == ["test", "unseen_pairs", "shift"]
    for lengths in result.values():
        assert list(lengths) == ["1", "2", "3", "5", "10"]
        assert [sum(count for _, count in own["kinds"].values()) for own in lengths.values()] == [80] * 5
    assert result["test"] != result["shift"]
    right, without_times, summaries = row["evaluations"]["summaries"]
    assert right <= without_times <= summaries and 0 < summaries <= 40
    assert len(study.tables(Rows([row]))) == 5


MORNING, LATER = (TimeReference("", hour, hour + 1, "hour", "absolute") for hour in (8, 9))
CUP = Clause(verb="grasp", object="cup", time=MORNING)
BOWL = Clause(verb="move", object="bowl", later=Later("hours", 2))


def test_answers_with_and_without_their_times(module):
    """The second and third are wrong about a time, the fourth names another object, the last says nothing."""
    gold = (CUP, BOWL)
    late, other = BOWL._replace(later=Later("hours", 3)), BOWL._replace(object="cup")
    earlier = CUP._replace(time=LATER)
    answers = [(CUP, BOWL), (CUP, late), (earlier, BOWL), (CUP, other), None]
    assert module.count_right([(clauses, gold) for clauses in answers]) == [1, 3]


def test_how_far_back(module):
    """An episode without a question has no share."""
    back = {"1": [3, 4], "10": [1, 2]}
    result = {"test": {"10": {"kinds": {}, "back": back}}}
    row = {"task": "long-term", "method": "ct", "seed": 0, "evaluations": {"answers": result}}
    assert module.by_back(Rows([row]), "long-term", "ct") == ["75.0", *["-"] * 8, "50.0"]
