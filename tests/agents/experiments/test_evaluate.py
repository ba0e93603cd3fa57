"""`evaluate`: one call for an id or an environment, and for anything with `predict`."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers import FlattenObservation
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env as make_sb3_vec_env

from memenvs.agents import PartialUpdatePPO, TrialEvaluator, TrialResults, evaluate, make_vec_env
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.evaluate import evaluate_rule
from memenvs.agents.experiments.play import RulePolicy
from memenvs.certificates.test_sets import find_test_set
from memenvs.registry import find_environment
from memenvs.rules import make_rule
from memenvs.wrappers import TrialWrapper
from tests.agents.learners import learner

GAP = "memenvs/Darkroom-Gap-v0"
TEST = find_test_set(GAP)


def same(a: TrialResults, b: TrialResults) -> bool:
    return all(np.array_equal(a.metrics[name], b.metrics[name], equal_nan=True) for name in {*a.metrics, *b.metrics})


@pytest.fixture(scope="module")
def model() -> PartialUpdatePPO:
    return learner("gru", env=make_vec_env(GAP, 2, seed=0))


@pytest.mark.slow
def test_an_id_and_an_environment_are_the_same_trials(model: PartialUpdatePPO) -> None:
    """The Darkroom has an ideal rule; whatever the form of the environment, it plays the same."""
    env = make_vec_env(GAP, 5, **TEST.settings)

    def ideal(env: Any) -> RulePolicy:
        return RulePolicy(make_rule(find_environment(GAP).policies["ideal"], env))

    batch = evaluate(env, ideal(env.env.task), trials=5)  # type: ignore[attr-defined]
    again = evaluate(make_vec_env(GAP, 2, seed=7, **TEST.settings), ideal(make_vec_env(GAP, 2).env.task), trials=5)
    assert batch.metrics["return"].shape == (5, 10) and same(batch, again)
    single = gym.make(GAP, **TEST.settings)
    assert same(batch, evaluate(single, ideal(single.unwrapped.task), "v0", trials=5))  # type: ignore[attr-defined]
    assert batch.test_set is not None and (batch.test_set.trials, batch.test_set.seeds[0]) == (5, TEST.first_seed)
    first, of_model = (evaluate("Darkroom-Gap-v0", acting, trials=3) for acting in (model, model.policy))
    assert first.metrics["return"].shape == (3, 10) and same(first, of_model)


@pytest.mark.slow
def test_actions_are_drawn_from_the_seed_and_nothing_else_changes(model: PartialUpdatePPO) -> None:
    env = make_vec_env(GAP, 4, **TEST.settings)
    states = [model.policy.generator.get_state(), torch.get_rng_state()]
    results = [evaluate(env, model, trials=4, seed=seed) for seed in (0, 0, 1)]
    assert same(results[0], results[1]) and not same(results[0], results[2])
    assert all(map(torch.equal, states, [model.policy.generator.get_state(), torch.get_rng_state()]))
    most_likely = TrialEvaluator(env, test_set=results[0].test_set, deterministic=True).run(model)
    assert same(evaluate(env, model, trials=4, deterministic=True), most_likely) and not same(most_likely, results[0])


@pytest.mark.slow
def test_models_of_stable_baselines3_and_wrappers_around_environments() -> None:
    settings = dict(TEST.settings)
    flat = make_sb3_vec_env(GAP, 3, env_kwargs=settings, wrapper_class=FlattenObservation)
    plain = PPO("MlpPolicy", flat, n_steps=8, batch_size=8, seed=0, device="cpu")
    states = torch.get_rng_state()
    results = [evaluate(env, plain, trials=3) for env in (flat, FlattenObservation(gym.make(GAP, **settings)))]
    assert results[0].metrics["return"].shape == results[1].metrics["return"].shape == (3, 10)
    assert same(results[0], evaluate(flat, plain, trials=3)) and torch.equal(states, torch.get_rng_state())
    by_keys = PPO("MultiInputPolicy", make_vec_env(GAP, 2), n_steps=8, batch_size=8, seed=0, device="cpu")
    assert same(evaluate(GAP, by_keys, trials=2), evaluate(GAP, by_keys, trials=2))
    whole = TrialWrapper(gym.make(GAP, **settings))  # a trial is one episode, and so it is scored
    fused = PPO("MultiInputPolicy", whole, n_steps=8, batch_size=8, seed=0, device="cpu")
    assert evaluate(whole, fused, trials=2).metrics["return"].shape == (2, 1)


def test_trials_of_a_run_do_not_depend_on_its_copies_in_training() -> None:
    config = RunConfig(env_kwargs={"size": 4, "max_episode_steps": 8}, eval_steps=16, eval_trials=5)
    few = replace(config, n_envs=2)
    results = [evaluate_rule(settings, "ideal", quiet=True) for settings in (config, few)]
    assert same(*results) and np.array_equal(results[0].layouts, results[1].layouts)
    data = few.to_json()
    del data["eval_envs"]  # as of runs before it
    assert RunConfig.from_json(data) == replace(few, eval_envs=2)


def test_results_print_as_a_short_table(model: PartialUpdatePPO) -> None:
    lines = str(evaluate(GAP, model, trials=2)).splitlines()
    score = find_environment(GAP).score_key
    assert lines[0] == f"{GAP}, test set v0: 2 trials" and lines[-1] == f"hash: {replace(TEST, trials=2).hash}"
    assert lines[2].startswith(f"{score} (score)  ") and "(score)" not in "".join(lines[3:]) and len(lines) < 10
    by_hand = TrialResults({"b": np.array([[1.0, 2.0, 4.0], [3.0, 6.0, 8.0]]), "a": np.ones((2, 3))}, np.arange(2), {})
    assert str(by_hand).splitlines() == [
        "2 trials",
        "            episode 1     episodes 2 to 3           episode 3",
        "a              1 +- 0              1 +- 0              1 +- 0",
        "b              2 +- 1              5 +- 2              6 +- 2",
    ]
    assert by_hand == by_hand and by_hand != replace(by_hand)  # no error of arrays
    one = TrialResults({"b": np.ones((2, 1))}, np.arange(2), {})
    assert str(one).splitlines()[1:] == ["            episode 1", "b              1 +- 0"]
    unfinished = TrialResults({"b": np.array([[np.nan], [1.0]])}, np.arange(2), {})
    assert str(unfinished) == "2 trials, no episode has ended in all of them"


def test_what_is_refused(model: PartialUpdatePPO) -> None:
    for env, arguments, message in (
        ("CartPole-v1", {}, "test_set needs trials, which CartPole-v1 has not"),
        (gym.make("CartPole-v1"), {}, "test_set needs an environment of memenvs, got DummyVecEnv"),
        (gym.make(GAP), {}, "has split='test', got an environment with 'train'"),
        ("Darkroom-Gap-v1", {}, "unknown id 'Darkroom-Gap-v1'; did you mean 'memenvs/Darkroom-Gap-v0'"),
        (GAP, {"test_set": find_test_set("FourBoxes-v0")}, "unexpected keyword|test_set 'v0' is of memenvs/FourBoxes"),
        (GAP, {"trials": -3}, "trials must be an integer of at least 1 and at most 200 or None, got -3"),
        (GAP, {"trials": 201}, "trials must be an integer of at least 1 and at most 200 or None, got 201"),
        ("FourBoxes-v0", {"trials": 1}, r"has learned with 'phase', which the environment does not observe: it has \["),
        (GAP, {"env_kwargs": {"gap": 3}}, "env_kwargs must be of what is observed, got 'gap', which test_set 'v0' of"),
        (gym.make(GAP), {"env_kwargs": {"place": True}}, "env_kwargs must be None with an environment"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate(env, model, **arguments)  # type: ignore[arg-type]
    for env, policy, message in (
        (model, GAP, r"env must be an id, .*, got <.*PartialUpdatePPO.*>; call evaluate\(env, policy\)"),
        (GAP, "gru.zip", "policy must be a model or have predict, got 'gru.zip'; load a file by the class"),
    ):
        with pytest.raises(TypeError, match=message):
            evaluate(env, policy)  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_a_model_observes_is_free() -> None:
    """The trials are the same, and the results name the difference."""
    id, settings = "memenvs/VisualMatch-Led-v0", {"obs": "one_hot", "place": True}
    env = make_vec_env(id, 2, seed=0, **settings)
    assert {"place", "image"} <= set(env.observation_space.spaces)  # type: ignore[attr-defined]
    own = learner("gru", env=env)
    results = [evaluate(id, own, trials=2, env_kwargs=settings), evaluate(env, own, trials=2)]
    assert same(*results) and results[0].to_json()["observed"] == settings
    assert "observed with obs='one_hot', place=True" in str(results[0]).splitlines()
    plain = evaluate(id, learner("gru", env=make_vec_env(id, 2, seed=0)), trials=2)
    assert results[0].test_set == plain.test_set and not plain.observed and "observed" not in str(plain)


@pytest.mark.slow
def test_an_environment_of_other_observations_keeps_its_id() -> None:
    env = make_vec_env("Search-v0", 1, obs_mode="scan", split="test", max_episode_steps=500)
    assert TrialEvaluator(env, test_set="v0").test_set == find_test_set("memenvs/Search-v0")
    env.close()
