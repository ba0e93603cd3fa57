"""Settings of trials: `gap` and `led` close ways around a memory, `itinerary` leads back."""

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.certificates.test_sets import find_test_set
from memenvs.cli.listing import environment_facts
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.four_boxes.env import FourBoxes
from memenvs.identity import row_of
from memenvs.testing import check_env
from tests.certificates.cue import registered
from tests.test_core import Corridor


def played(env: TrialEnv, actions: list[int]) -> list[tuple[int, int, float, bool, int]]:
    """Cell, phase, reward, truncated and steps of the episode after each action."""
    rows = []
    for action in actions:
        observation, reward, _, truncated, info = env.step(action)
        rows.append((int(observation["cell"][0]), int(observation["phase"]), reward, truncated, info["num_steps"]))
    return rows


def test_a_gap_by_hand() -> None:
    env = TrialEnv(Corridor, gap=2, max_episode_steps=4, trial_episodes=2)
    observation, info = env.reset(seed=0, options={"start": 1})
    assert (observation["cell"].tolist(), observation["phase"]) == ([0], 0)  # blank, though the agent stands in cell 1
    assert info["start"] == 1 and env.at_trial_start
    # Two actions are ignored; then the first observation of the task comes, and two actions move.
    assert played(env, [1, 1]) == [(0, 0, 0.0, False, 1), (1, 1, 0.0, False, 2)]
    assert played(env, [1, 0]) == [(2, 1, 0.0, False, 3), (2, 1, 0.0, True, 4)]
    observation, info = env.reset()
    assert (info["trial_id"], info["episode_index"], info["num_steps"], observation["phase"]) == (0, 1, 0, 0)
    assert env.max_episode_steps == 4 and TrialEnv(Corridor, gap=2).max_episode_steps == 12  # 10 of the task
    assert env.observation_space["phase"] == gym.spaces.Discrete(2)


def test_a_gap_leaves_the_episodes_as_they_are() -> None:
    with_gap = TrialVectorEnv(Corridor, 3, gap=5, trial_episodes=2, autoreset_mode="SameStep")
    without = TrialVectorEnv(Corridor, 3, trial_episodes=2, autoreset_mode="SameStep")
    infos = [env.reset(seed=4)[1] for env in (with_gap, without)]
    for _ in range(6):
        np.testing.assert_array_equal(infos[0]["draws"], infos[1]["draws"])
        np.testing.assert_array_equal(infos[0]["layout_id"], infos[1]["layout_id"])
        for _ in range(5):
            with_gap.step(np.ones(3, np.int64))
        for _ in range(4):
            steps = [env.step(np.ones(3, np.int64)) for env in (with_gap, without)]
        infos = [step[-1] for step in steps]
        np.testing.assert_array_equal(steps[0][1], steps[1][1])  # the reward at the end of the corridor
        np.testing.assert_array_equal(steps[0][4]["final_obs"][1]["cell"], steps[1][4]["final_obs"][1]["cell"])
        assert steps[0][0]["phase"].tolist() == [0, 0, 0] and steps[0][4]["final_obs"][0]["phase"] == 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_no_window_of_the_gap_sees_two_episodes(mode: str) -> None:
    """Between the last observation of an episode and the first of the next there are `gap` blank ones."""
    env = TrialVectorEnv("memenvs.darkroom.env:Darkroom", 2, gap=3, size=4, max_episode_steps=9, autoreset_mode=mode)
    observation, _ = env.reset(seed=0)
    phases, cells = [], []
    for _ in range(40):
        phases.append(observation["phase"].copy())
        cells.append(observation["position"].sum() + observation["previous_reward"].sum())
        observation, *_ = env.step(np.full(2, 0))
    shown = np.flatnonzero(np.array(phases)[:, 0])
    breaks = np.diff(shown)[np.diff(shown) > 1]
    assert len(breaks) >= 3 and (breaks == 4).all()
    assert not np.array(cells)[np.array(phases)[:, 0] == 0].any()


class Stay(Corridor):
    """A corridor whose first four steps are a stay."""

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        super().__init__(num_envs, length=100)
        self.time = np.zeros(num_envs, np.int64)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Any) -> None:
        super().begin_episode(i, rng, options)
        self.time[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.time += active
        return super().step(actions, active)

    def waits(self) -> np.ndarray:
        return self.time < 4


def positions(env: TrialVectorEnv, action: int, steps: int, seed: int) -> np.ndarray:
    """Cells of all environments, (steps, N), with one action throughout."""
    env.reset(seed=seed)
    return np.array([env.step(np.full(env.num_envs, action))[0]["cell"][:, 0] for _ in range(steps)])


def test_drawn_motions_lead_the_agent() -> None:
    env = TrialVectorEnv(Stay, 8, led=True)
    ahead, still = positions(env, 1, 6, 5), positions(env, 0, 6, 5)
    np.testing.assert_array_equal(ahead[:4], still[:4])  # the first four actions have no effect
    assert set(np.diff(ahead[:4], axis=0).flatten().tolist()) == {0, 1}  # and the drawn ones have
    np.testing.assert_array_equal(np.diff(ahead[3:], axis=0), 1)
    np.testing.assert_array_equal(np.diff(still[3:], axis=0), 0)
    one = TrialVectorEnv(Stay, 1, led=True)
    np.testing.assert_array_equal(positions(one, 0, 6, 5 + 3)[:, 0], still[:, 3])  # as the single environment
    again = env.reset(options={"new_trial": True})[1]
    assert again["trial_id"].tolist() == [1] * 8
    other = np.array([env.step(np.zeros(8, np.int64))[0]["cell"][:, 0] for _ in range(4)])
    assert (other != still[:4]).any()  # another episode, other motions
    env.reset(seed=5)
    phases = [int(env.step(np.zeros(8, np.int64))[0]["phase"][0]) for _ in range(5)]
    assert phases == [0, 0, 0, 1, 1]


def test_a_led_stay_shows_nothing_that_the_agent_chose() -> None:
    """Two agents that act differently during the stay see the same, to the bit."""
    for name, stay in (("VisualMatch", (4, 84)), ("TwoRooms", (5, 85))):
        rollouts = []
        for drawn in (1, 2):
            env = gym.make(f"memenvs/{name}-Led-v0").unwrapped
            rng = np.random.default_rng(drawn)
            observation, _ = env.reset(seed=3)
            key = next(key for key in observation if key != "phase")
            views = []
            for t in range(stay[1]):
                assert observation["phase"] == (not stay[0] <= t < stay[1])
                action = int(rng.integers(3)) if t >= stay[0] else 0
                observation, *_ = env.step(action)
                views.append(observation[key])
            rollouts.append(np.array(views))
        np.testing.assert_array_equal(*rollouts)
        assert len(np.unique(rollouts[0][stay[0] :].reshape(stay[1] - stay[0], -1), axis=0)) > 10  # it does move


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
    assert plain["goal"].tolist() == list(goals[0])
    assert {info["layout_id"] for info in infos[:6]} == {plain["layout_id"]}
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
@pytest.mark.parametrize("letter", "AB")
@pytest.mark.parametrize("in_layout", [False, True])
def test_options_of_the_task_hold_at_their_letter_and_with_layout_in_later_trials(
    mode: str, letter: str, in_layout: bool
) -> None:
    """Until the next explicit reset; another home may have no such start."""
    settings = {"itinerary": "AABBA", "autoreset_mode": mode, "max_episode_steps": 3, "trial_episodes": None}
    env = TrialVectorEnv(Darkroom, 1, **settings)
    start = np.array([7, 7])
    _, info = env.reset(seed=1)
    layout = {"layout": info["layout_id"][0]} if in_layout else {}
    _, info = env.reset(options={"start": start, "episode_index": 1 if letter == "A" else 2, **layout})
    begun: dict[tuple[int, int], bool] = {}
    for _ in range(60):
        if info["num_steps"][0] == 0:
            begun[info["trial_id"][0], info["episode_index"][0]] = (info["start"][0] == start).all()
        info = env.step(np.array([0]))[-1]
    assert len(begun) > 12
    for (trial, episode), holds in begun.items():
        assert holds == ("AABBA"[episode] == letter and (in_layout or trial == 0))
    assert not (env.reset()[1]["start"][0] == start).all()


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


def test_the_contract_holds() -> None:
    check_env(Darkroom, itinerary="AAB", leg_flag=True)
    check_env(FourBoxes, itinerary="ABA", gap=3, moves=0.5)


def test_wrong_settings_are_refused_by_name() -> None:
    for task, settings, message in (
        (Corridor, {"gap": 3, "trial_episodes": 1}, "gap must be 0 with trials of one episode .*, got 3"),
        (Corridor, {"gap": -1}, "gap must be an integer of at least 0 and at most 1000000, got -1"),
        (Corridor, {"gap": 4, "max_episode_steps": 4}, "max_episode_steps must be an integer of at least 5"),
        (Corridor, {"led": 1}, "led must be True or False, got 1"),
        (Corridor, {"led": True}, "led must be False for Corridor, in which the agent has to act at every step"),
        (FourBoxes, {"itinerary": ""}, "itinerary must be None or capital letters, .* got ''"),
        (FourBoxes, {"itinerary": "AAbb"}, "itinerary must be None or capital letters, .* got 'AAbb'"),
        (FourBoxes, {"itinerary": ["A", "B"]}, "itinerary must be None or capital letters"),
        (FourBoxes, {"itinerary": "AE"}, "itinerary must have letters up to D, as the split has 4 homes .*, got 'AE'"),
        (FourBoxes, {"itinerary": "AAA", "leg_flag": True}, "leg_flag must be False unless .* different letters, got"),
        (FourBoxes, {"itinerary": "AB", "leg_flag": 1}, "leg_flag must be True or False, got 1"),
        (FourBoxes, {"itinerary": "A", "gap": 3}, "gap must be 0 with trials of one episode"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEnv(task, **settings)
