"""Itineraries: trials that lead through several layouts, and back."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import memenvs
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli.listing import environment_facts
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.four_boxes.env import FourBoxes
from memenvs.identity import row_of
from memenvs.itineraries import visits
from memenvs.testing import check_env
from tests.certificates.cue import registered
from tests.test_core import Corridor

assert memenvs.ENVIRONMENTS
GAP = {"gap": 2, "max_episode_steps": 4}


def resets(env: TrialEnv, count: int, **reset: Any) -> list[dict[str, Any]]:
    """Info of `count` episodes in a row."""
    return [env.reset(**reset)[1], *(env.reset()[1] for _ in range(count - 1))]


def test_an_itinerary_by_hand() -> None:
    env = TrialEnv(Darkroom, itinerary="AABCAA", split="all", trial_episodes=2, trial_steps=10)
    assert (env.trial_episodes, env.trial_steps) == (6, None)  # those of the itinerary
    infos = resets(env, 13, seed=3)
    assert [info["letter"] for info in infos] == [*"AABCAA", *"AABCAA", "A"]
    assert [info["leg"] for info in infos] == [0, 0, 1, 2, 3, 3] * 2 + [0]
    assert [info["trial_id"] for info in infos] == [0] * 6 + [1] * 6 + [2]
    assert [info["trial_start"] for info in infos] == [k % 6 == 0 for k in range(13)]
    goals = [tuple(info["goal"].tolist()) for info in infos]
    for first in (0, 6):
        a, b, c = goals[first], goals[first + 2], goals[first + 3]
        assert goals[first : first + 6] == [a, a, b, c, a, a] and len({a, b, c}) == 3
    assert goals[:6] != goals[6:12]
    # The layout of A, and its number in `info`, is that of a trial without an itinerary.
    plain = TrialEnv(Darkroom, split="all").reset(seed=3)[1]
    assert plain["goal"].tolist() == list(goals[0]) and {info["layout_id"] for info in infos[:6]} == {
        plain["layout_id"]
    }
    assert not {"leg", "letter"} & plain.keys()


def test_a_letter_has_the_same_layout_in_every_itinerary() -> None:
    """So agents that begin in B play in the home in which others come later."""
    for seed in range(5):
        by_letter: dict[str, Any] = {}
        for itinerary in ("ABCD", "DCBA", "BBBB", "CA"):
            for info in resets(TrialEnv(FourBoxes, itinerary=itinerary), len(itinerary), seed=seed):
                assert by_letter.setdefault(info["letter"], info["goal"]) == info["goal"]
        assert sorted(by_letter.values()) == [0, 1, 2, 3]  # as many letters as layouts: all of them, each once


def test_every_other_layout_is_as_likely() -> None:
    pairs = []
    for seed in range(600):
        infos = resets(TrialEnv(FourBoxes, itinerary="AB"), 2, seed=seed)
        pairs.append(tuple(info["goal"] for info in infos))
    values, counts = np.unique(pairs, axis=0, return_counts=True)
    assert len(values) == 12 and (np.abs(counts - 50) < 4 * 50**0.5).all()


@pytest.mark.parametrize(
    ("task", "settings"), [(Darkroom, {}), (FourBoxes, {"split": "all"}), (Darkroom, {"moves": 0.5})]
)
def test_episodes_are_rebuilt_alone(task: Any, settings: dict[str, Any]) -> None:
    """In any order; with moves, what moves in one home goes on while the agent is in the other."""
    env = TrialEnv(task, itinerary="AAABBBAAA", **settings)
    played = resets(env, 18, seed=8)
    env = pickle.loads(pickle.dumps(env))
    for number in (13, 4, 8, 0, 17, 5):
        alone = env.reset(seed=8, options={"trial": number // 9, "episode_index": number % 9})[1]
        for key in ("goal", "letter", "leg", "layout_id", "trial_id", "episode_index"):
            np.testing.assert_array_equal(alone[key], played[number][key])
    if settings.get("moves"):
        long = [info["goal"].tolist() for info in resets(TrialEnv(task, trial_episodes=9, **settings), 9, seed=8)]
        home = [k for k in range(9) if played[k]["letter"] == "A"]
        assert [played[k]["goal"].tolist() for k in home] == [long[k] for k in home]
        assert len({tuple(goal) for goal in long}) > 2


def test_options_and_new_trials() -> None:
    env = TrialEnv(Corridor, itinerary="AAB", **GAP)
    infos = resets(env, 3, seed=0, options={"layout": 2})
    assert [info["layout_id"] for info in infos] == [2, 2, 2] and [info["letter"] for info in infos] == [*"AAB"]
    assert not infos[2]["trial_start"]  # the other layout of B does not count as a change of the option
    assert resets(env, 1, options={"new_trial": True})[0]["trial_id"] == 1
    with pytest.raises(ValueError, match=r"option 'episode_index' must be in 0 \.\.\. 2, as itinerary 'AAB' has 3"):
        env.reset(options={"episode_index": 3})


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_flag_names_the_layout_in_the_first_observation_of_a_visit(mode: str) -> None:
    settings = {"itinerary": "AABBA", "autoreset_mode": mode, "max_episode_steps": 5, "gap": 2}
    env = TrialVectorEnv(Darkroom, 2, leg_flag=True, **settings)
    plain = TrialVectorEnv(Darkroom, 2, **settings)
    assert env.single_observation_space["leg_start"] == gym.spaces.Discrete(3)
    assert "leg_start" not in plain.single_observation_space.spaces
    observation, info = env.reset(seed=1)
    other, _ = plain.reset(seed=1)
    for _ in range(60):
        named = np.array([1, 0, 2, 0, 1])[info["episode_index"]]
        expected = np.where(info["num_steps"] == 0, named, 0)
        np.testing.assert_array_equal(observation.pop("leg_start"), expected)
        for key, value in observation.items():  # nothing else differs
            np.testing.assert_array_equal(value, other[key])
        observation, _, _, _, info = env.step(np.ones(2, np.int64))
        other, *_ = plain.step(np.ones(2, np.int64))


def test_an_id_with_an_itinerary_alone_has_trials_that_end() -> None:
    for settings in ({"itinerary": "AAB"}, {"itinerary": "AAB", "trial_episodes": 9, "trial_steps": 64}):
        with registered(task=Darkroom, score_key="return", policies={}, defaults=settings) as spec:
            trials = find_test_set(spec.id)
            assert (trials.episodes, trials.trial_steps) == (3, None)
            assert row_of(trials.make_env({})) is spec
            assert dict(environment_facts(spec))["A trial"] == "3 episodes; `itinerary` changes it"


def test_visits() -> None:
    assert visits("AABA") == (("A", range(2)), ("B", range(2, 3)), ("A", range(3, 4)))
    assert visits("C") == (("C", range(1)),)


def test_the_contract_holds() -> None:
    check_env(Darkroom, itinerary="AAB", leg_flag=True)
    check_env(FourBoxes, itinerary="ABA", gap=3, moves=0.5)


def test_wrong_settings_are_refused_by_name() -> None:
    for settings, message in (
        ({"itinerary": ""}, "itinerary must be None or capital letters, .* got ''"),
        ({"itinerary": "AAbb"}, "itinerary must be None or capital letters, .* got 'AAbb'"),
        ({"itinerary": ["A", "B"]}, "itinerary must be None or capital letters"),
        ({"itinerary": "AE"}, "itinerary must have letters up to D, as the split has 4 homes or layouts, got 'AE'"),
        (
            {"itinerary": "AAA", "leg_flag": True},
            "leg_flag must be False unless an itinerary has two different letters, got .*AAA",
        ),
        (
            {"leg_flag": True},
            "leg_flag must be False unless an itinerary has two different letters, got itinerary=None",
        ),
        ({"itinerary": "AB", "leg_flag": 1}, "leg_flag must be True or False, got 1"),
        ({"itinerary": "A", "gap": 3}, "gap must be 0 with trials of one episode"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEnv(FourBoxes, **settings)
    TrialEnv(FourBoxes, itinerary="ABCD")
