"""In-context evaluation: trials, metrics by episode, demonstrations."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch

from memenvs.agents.experiments.play import DemonstratedPolicy, OraclePolicy, RandomPolicy
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults
from memenvs.agents.memory import StepInputs
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env
from memenvs.core import TrialVectorEnv
from memenvs.darkroom.config import goal_cells
from memenvs.resets import stream_seed
from tests.agents.corridor import Corridor
from tests.agents.learners import darkroom as small_darkroom
from tests.agents.learners import learner


def darkroom(count: int = 4, **kwargs):
    settings = {"size": 4, "max_episode_steps": 8, "trial_episodes": None, "split": "all", **kwargs}
    return make_vec_env("memenvs/Darkroom-v0", count, seed=0, **settings)


def test_oracle_scores_what_the_goal_allows():
    env = darkroom()
    results = TrialEvaluator(env, 24, 16, layouts=range(16)).run(OraclePolicy(env))
    goals = goal_cells("all", 4)
    # After |x| + |y| steps it is on the goal; the step that arrives is rewarded, and all later ones. At the start the
    # first step is.
    expected = np.array([8 - max(0, x + y - 1) for x, y in goals])
    assert results.layouts.tolist() == list(range(16))
    assert results.metrics["return"].tolist() == np.repeat(expected[:, None], 3, 1).tolist()
    assert (results.metrics["length"] == 8).all()
    curve = results.curve("return")
    assert curve.mean == pytest.approx([expected.mean()] * 3)
    assert curve.stderr == pytest.approx([expected.std(ddof=1) / 4] * 3)
    assert curve.count.tolist() == [16] * 3


def test_metrics_are_numbers_that_measure_an_episode():
    env = darkroom()
    assert set(TrialEvaluator(env, 8, 4).run(OraclePolicy(env)).metrics) == {"return", "length", "num_steps", "success"}
    env = make_vec_env(
        "memenvs/ExtObjNav-v0", 1, seed=0, rooms=(2, 2), num_objects=(3, 4), obs_mode="symbolic", max_episode_steps=5
    )
    expected = "return length num_steps success geodesic spl spl_fixed soft_spl path_length collisions path_failures"
    assert set(TrialEvaluator(env, 5, 1).run(RandomPolicy(env.action_space)).metrics) == set(expected.split())


def test_progress_rises_to_one():
    """Also if a trial ends long before its steps do, and if the last wave has more trials than are left to play."""
    for trial_episodes in (None, 1):
        shares = []
        env = darkroom(3, trial_episodes=trial_episodes)
        TrialEvaluator(env, 20, 7).run(RandomPolicy(env.action_space, 1), shares.append)
        assert shares == sorted(shares) and shares[-1] == 1.0
        assert shares[0] == pytest.approx(3 / 20 / 7)


class Always:
    """A policy of one action."""

    def __init__(self, action: int) -> None:
        self.action = action

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.full(len(episode_start), self.action), state


def test_trials_do_not_depend_on_the_policy(monkeypatch):
    """A robot that drives into walls has several trials in the time of one that turns on the spot."""
    env = make_vec_env("memenvs/Coverage-v0", 2, seed=0, world="suncg_style", obs_mode="scan", max_episode_steps=150)
    begun: list[tuple[int, str, list[float]]] = []
    reset, shortest = env.reset, []

    def recorded():
        observation = reset()
        begun.extend((info["trial_id"], info["scene_id"], info["start"].tolist()) for info in env.reset_infos)
        return observation

    monkeypatch.setattr(env, "reset", recorded)
    for action in (0, 1):
        results = TrialEvaluator(env, 150, 6, layouts=range(6)).run(Always(action))
        shortest.append(results.metrics["length"].min())
    assert shortest[0] < 75 and shortest[1] == 150
    assert begun[:6] == begun[6:] and len(begun) == 12


def test_curve_by_hand():
    values = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, np.nan], [5.0, 0.0, np.nan], [7.0, 2.0, np.nan]])
    results = TrialResults({"score": values}, np.array([0, 0, 1, 1]), {})
    curve = results.curve("score")
    assert curve.mean.tolist() == [4.0, 2.0]
    assert curve.stderr == pytest.approx([np.sqrt(20 / 3) / 2, np.sqrt(8 / 3) / 2])
    assert curve.stderr_clustered == pytest.approx([2.0, 1.0])  # means of the layouts: 2, 6 and 3, 1
    with pytest.raises(ValueError, match="unknown metric 'nope'; choose from"):
        results.curve("nope")


def house(count: int):
    settings = {"rooms": (2, 2), "num_objects": (3, 4), "obs_mode": "symbolic", "trial_episodes": None}
    return make_vec_env("memenvs/ExtObjNav-v0", count, seed=3, max_episode_steps=30, **settings)


@pytest.mark.parametrize("make", [darkroom, house])
def test_demonstrations_are_episodes_of_the_oracle(make):
    """In the home, episodes of the two environments end at different steps."""
    env = make(2)
    results = TrialEvaluator(env, 40, 2, demonstrations=2).run(RandomPolicy(env.action_space, 0))
    env = make(2)
    oracle = TrialEvaluator(env, 100, 2).run(OraclePolicy(env))
    assert set(results.demonstrated) == set(results.metrics) == set(oracle.metrics)
    for name, values in oracle.metrics.items():
        np.testing.assert_array_equal(results.demonstrated[name], values[:, :2], name)
    assert results.metrics["return"][:, 0].mean() < oracle.metrics["return"][:, 2].mean()
    played = np.nansum(results.metrics["length"], 1)
    assert (played <= 40).all()
    assert (played > 40 - env.env.max_episode_steps).all()  # the steps of the policy come after the demonstrations
    assert results.to_json()["demonstrations"]["return"] == oracle.metrics["return"][:, :2].mean(0).tolist()


@pytest.mark.parametrize("memory", ["lstm", "relic"])
def test_demonstrations_enter_the_memory(memory):
    """Two demonstrations of 5 steps: the memory is as after its own steps with the oracle's actions."""
    model = learner(memory)
    policy = model.policy
    policy.resets_with_episode = False
    states = []

    class Spy:
        def predict(self, observation, state=None, episode_start=None, deterministic=False, trial_start=None):
            states.append(None if state is None else {key: value.clone() for key, value in state.items()})
            return model.predict(observation, state, episode_start, deterministic, trial_start)

        def update_previous_action(self, state, actions):
            return model.update_previous_action(state, actions)

    env = small_darkroom(seed=7)
    TrialEvaluator(env, 1, env.num_envs, demonstrations=2).run(Spy())
    assert len(states) == 11

    env = small_darkroom(seed=7)
    env.set_options({"new_trial": True})
    observation, memory_state = env.reset(), policy.memory.initial_state(env.num_envs)
    previous = torch.zeros(env.num_envs, dtype=torch.int64)
    taken: set[int] = set()
    for t in range(10):
        actions = env.oracle_actions()
        starts = torch.full((env.num_envs, 1), t % 5 == 0)
        with torch.no_grad():
            x = policy.features({key: torch.as_tensor(value) for key, value in observation.items()})
            x = torch.cat([x, policy.previous_action.weight[torch.where(starts[:, 0], 0, previous)]], -1)
            trial = torch.full_like(starts, t == 0)
            _, memory_state = policy.memory.step(StepInputs(x[:, None], starts, trial), memory_state)
        previous = torch.as_tensor(actions) + 1
        taken.update(actions.tolist())
        observation, *_ = env.step(actions)
    assert len(taken) > 1  # otherwise any previous action would do
    for key, value in memory_state.items():
        assert torch.equal(states[10][key], value), key
    assert torch.equal(states[10]["previous_action"], previous)


def test_the_oracle_acts_where_it_demonstrates():
    env = small_darkroom(2, seed=3)
    player = DemonstratedPolicy(Always(1), env)
    player.demonstrated = np.array([False, True])
    observation = env.reset()
    assert 1 not in (oracle := env.oracle_actions().tolist())
    assert player.predict(observation, None, np.ones(2, bool))[0].tolist() == [1, oracle[1]]


def test_demonstrations_need_an_oracle_and_room():
    with pytest.raises(ValueError, match=r"demonstrations must be 0 for .* without oracle_actions, got 1"):
        TrialEvaluator(make_vec_env("CartPole-v1", 1), 5, 1, demonstrations=1)
    env = darkroom(2, trial_episodes=2)
    with pytest.raises(ValueError, match="trials must go on after their 3 demonstrations, one ended after 2 episodes"):
        TrialEvaluator(env, 40, 2, demonstrations=3).run(RandomPolicy(env.action_space))


def test_errors_are_clustered_by_home_where_there_are_homes():
    returns = np.array([1.0, 3.0, 5.0, 7.0, 9.0])
    homes = np.array(["a", "b", "a", "c", "c"])  # means 3, 3 and 8
    for homes_or_none, errors in ((homes, np.std([3, 3, 8], ddof=1) / 3**0.5), (None, returns.std(ddof=1) / 5**0.5)):
        results = TrialResults({"return": returns[:, None]}, np.arange(5), {}, homes=homes_or_none)
        assert results.curve("return").stderr_clustered[0] == pytest.approx(errors)
    env = make_vec_env("memenvs/ExtObjNav-v0", 2, obs_mode="symbolic", max_episode_steps=4, trial_steps=None)
    played = TrialEvaluator(env, 4, 3).run(OraclePolicy(env)).homes
    assert played is not None and len(played) == 3 and all(name.startswith("procedural-") for name in played)
    assert TrialEvaluator(darkroom(), 24, 4).run(Always(0)).homes is None


def test_without_trials_each_episode_is_one():
    """Trial k is the episode after a reset with the hash of the seed + k, whoever plays and however many at a time."""
    alone = gym.make("CartPole-v1")
    for action, copies in ((0, 2), (1, 3)):
        env = make_vec_env("CartPole-v1", copies)
        results = TrialEvaluator(env, 500, 5, seed=7).run(Always(action))
        assert (results.layouts == 0).all()
        lengths = []
        for k in range(5):
            alone.reset(seed=stream_seed(7) + k)
            lengths.append([1.0 + next(t for t in itertools.count() if alone.step(action)[2])])
        assert results.metrics["return"].tolist() == lengths
    with pytest.raises(ValueError, match=r"layouts must be None for an environment without trials, got \[3\]"):
        TrialEvaluator(env, 5, 2, layouts=[3]).run(Always(0))
    env = make_vec_env("CartPole-v1", 2)
    model = learner("lstm", env=env, n_updates=1, credit_across_episodes=True, shuffle_episodes=False)
    with pytest.raises(ValueError, match="credit_across_episodes must be False for an environment without trials"):
        model.learn(64)


def test_pictures_show_the_first_and_the_last_episode():
    env = darkroom()
    results = TrialEvaluator(env, 24, 4, maps=True).run(OraclePolicy(env))
    assert list(results.maps) == ["episode 1", "episode 3"]
    assert results.maps["episode 1"].shape == (320, 320, 3)
    with pytest.raises(ValueError, match="maps needs a TrialVecEnv"):
        TrialEvaluator(make_vec_env("CartPole-v1", 1), 5, 1, maps=True)


def test_wrong_settings_are_named():
    for kwargs, message in (
        ({"n_steps": 0}, "n_steps"),
        ({"n_trials": 0}, "n_trials"),
        ({"layouts": []}, "layouts"),
        ({"demonstrations": -1}, "demonstrations must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEvaluator(darkroom(1), **{"n_steps": 5, "n_trials": 1, **kwargs})


def test_trials_weigh_alike() -> None:
    """A trial of many short episodes counts no more than one of few; one without an end does not count."""
    none = np.nan
    returns = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.5, none, none], [none] * 4])
    assert TrialResults({"return": returns}, np.arange(3), {}).trial_means("return").tolist() == [1.0, 0.25]


def test_actions_are_kept_until_the_trial_is_over() -> None:
    """The random policy ends episodes early, so trials differ in length."""
    env = TrialVecEnv(TrialVectorEnv(Corridor, 3, autoreset_mode="SameStep", trial_episodes=2, early=True))
    evaluator = TrialEvaluator(env, 100, 3, keep_actions=True)
    results = evaluator.run(RandomPolicy(env.action_space, 3))
    again = RandomPolicy(env.action_space, 3)
    drawn = np.stack([again.predict(None, None, np.zeros(3, bool))[0] for _ in range(18)])
    lengths = results.metrics["length"].sum(1).astype(int)
    assert len(set(lengths)) > 1 and not TrialEvaluator(env, 100, 3).run(again).actions
    for k, actions in enumerate(results.actions):
        assert actions.tolist() == drawn[: lengths[k], k].tolist()
