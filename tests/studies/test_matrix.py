"""The matrix: equal steps and sizes, the better learning rate, and shares by hand."""

from typing import Any

import numpy as np

from memenvs.agents.experiments.prediction_experiment import make_run_model
from memenvs.agents.study import Rows, Study, find_studies, load_study, read_rows
from memenvs.registry import find_environment

FILE = find_studies()["matrix"]


def row(study: Study, task: str, method: str, seed: int | None, score: float) -> dict[str, Any]:
    metric = study.configs[task]["lstm"].score
    if seed is None and metric == "accuracy":
        metric = "success"  # of an environment whose actions are answers
    agent = {"metrics": {metric: {"mean": [0.0, score]}}}
    return {"task": task, "method": method, "seed": seed, "evaluations": {"evaluation": {"agent": agent}}}


def test_memories_differ_in_nothing_else(study):
    """RL2 differs in how far credit flows; each has its own learning rate."""
    own = {"learner", "policy"}
    own_learner = {"learning_rate", "final_learning_rate"}
    for configs in study.configs.values():
        first = configs["none"]
        for method, config in configs.items():
            assert {name for name in vars(first) if getattr(first, name) != getattr(config, name)} <= own
            credit = {"credit_across_episodes", "shuffle_episodes", "bootstrap_truncated"} if "rl2" in method else set()
            changed = {name for name, value in vars(first.learner).items() if value != getattr(config.learner, name)}
            assert changed <= own_learner | credit
            assert all(config.policy[name] == first.policy[name] for name in first.policy if "memory" not in name)


def test_memories_have_about_as_many_weights(study):
    """As their runs have counted; rows are of the present settings (tests/studies/test_studies.py)."""
    rows = read_rows(FILE.with_name("rows.jsonl"))
    for task, configs in study.configs.items():
        counts = {method: set(rows.results(task, method, "weights")) for method in configs}
        assert counts.pop("none") == {0}
        assert all(len(count) == 1 for count in counts.values())
        weights = [count.pop() for count in counts.values()]
        assert max(weights) < 2 * min(weights), (task, weights)


def test_each_task_is_in_a_certified_id(study):
    for configs in study.configs.values():
        assert find_environment(configs["none"].env).load_certificate() is not None


def test_the_better_learning_rate_is_taken_when_both_are_there(study, module):
    task, rates = "darkroom-gap", [f"lstm, {rate}" for rate in module.RATES]
    scores = [row(study, task, rates[0], 100, 3.0), row(study, task, rates[1], 100, 7.0)]
    assert module.best_rate(Rows(scores), task, "lstm") == module.RATES[1]
    assert module.best_rate(Rows(scores[1:]), task, "lstm") == module.RATES[0]
    config = module.make_configs(Rows(scores))[task]["lstm"]
    assert config.learner.learning_rate == float(module.RATES[1]) == 10 * config.learner.final_learning_rate


def test_rates_were_tried_with_a_seed_that_is_not_reported(study, module):
    tried = load_study(FILE.with_name("rates.py"))
    assert not set(tried.seeds) & set(study.seeds)
    assert all(config.eval_kwargs.get("split") != "test" for own in tried.configs.values() for config in own.values())
    rates, rows = (read_rows(FILE.with_name(name)) for name in ("rates.jsonl", "rows.jsonl"))
    for task, configs in study.configs.items():
        for method, config in configs.items():
            if rows.of(task, method):
                assert float(module.best_rate(rates, task, method)) == config.learner.learning_rate
                assert all(len(module.score_of(rates, task, f"{method}, {rate}")) == 1 for rate in module.RATES)


def test_shares_and_order_by_hand(study, module):
    rows = []
    for task in study.configs:
        rows += [row(study, task, "memoryless", None, 2.0), row(study, task, "ideal", None, 12.0)]
        for memory, scores in (("lstm", (2.0, 3.0, 4.0)), ("relic", (7.0, 12.0, 12.0))):
            rows += [row(study, task, memory, seed, score) for seed, score in enumerate(scores)]
    rows = Rows(rows)
    assert module.shares_of(rows, "darkroom-gap", "relic").tolist() == [0.5, 1.0, 1.0]
    assert module.ranked(rows) == ["relic", "lstm"]


def test_a_task_with_more_seeds_counts_no_more(module):
    assert module.pooled_mean([np.zeros(5), np.ones(3)]) == 0.5


def test_rl2_is_ranked_by_the_tasks_that_have_trials_of_several_episodes(study, module):
    rows = []
    for task, configs in study.configs.items():
        rows += [row(study, task, "memoryless", None, 2.0), row(study, task, "ideal", None, 12.0)]
        scores = {"lstm": 7.0, "lstm, rl2": 12.0}
        rows += [row(study, task, memory, 0, score) for memory, score in scores.items() if memory in configs]
    lines = module.order_table(Rows(rows)).lines
    assert lines[-1] == ["lstm, rl2", *["1.00 (1.00 to 1.00)"] * 2, *["1.00"] * 2, *["-"] * 6]  # others have all tasks


def test_sat_is_where_there_are_places_and_holds_half_of_the_field(study, module):
    without = [task for task, configs in study.configs.items() if "sat-pm" not in configs]
    assert without == ["darkroom-gap", "darkroom", "episodic-qa", *module.LONG_TITLES]
    capacity = {
        task: configs["sat-pm"].policy.get("memory_kwargs")
        for task, configs in study.configs.items()
        if "sat-pm" in configs
    }
    assert capacity["visual-match-led"] == {"capacity": 15} and capacity["two-rooms-led"] == {"capacity": 12}


def test_memories_with_several_vectors_show_as_many_in_questions(study):
    for memory in ("ct-lt", "lstm-o1"):
        model = make_run_model(study.configs["episodic-qa"][memory])
        vectors, mask = model.model.memory.vectors(model.model.memory.initial_state(1))
        assert vectors.shape[:2] == mask.shape == (1, 21)  # fewer than the key frames of five episodes


def test_the_table_of_homes_has_the_first_episode_and_the_last_of_other_plays(module):
    def result(*means: float) -> dict:
        return {"agent": {"metrics": {"success": {"mean": list(means)}}}}

    evaluations = {"evaluation": result(0.1, 0.2), "changed": result(0.3, 0.4), "weights": 7}
    row = {
        "task": "ext-objnav",
        "method": "lstm",
        "seed": 0,
        "steps": 100,
        "cpu_seconds": 50,
        "evaluations": evaluations,
    }
    relic = {**row, "method": "relic", "evaluations": {**evaluations, "last_steps": result(0.5, 0.6)}}
    assert module.task_table(Rows([row, relic]), "ext-objnav", "").lines == [
        ["lstm", "20.0", "10.0", "40.0", "-", "0.001", "7", "2"],
        ["relic", "20.0", "10.0", "40.0", "60.0", "0.003", "7", "2"],
    ]
