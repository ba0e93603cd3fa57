"""The loop: which trials are played, by whom, and what counts."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.certificates.playing import DrawnPlayer, OraclePlayer, play_scores, played_steps
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.rules import Window
from memenvs.task import Observation
from tests.certificates.cue import Cue, CueIdeal


def darkroom(num_envs: int, **settings: object) -> TrialVectorEnv:
    given = {"trial_episodes": 3, "size": 4, "max_episode_steps": 7, **settings}
    return TrialVectorEnv(Darkroom, num_envs, autoreset_mode="Disabled", **given)


class Still:
    """Stays where it is for ever."""

    def __init__(self, env: TrialVectorEnv) -> None:
        self.starts: list[tuple[list[bool], list[bool]]] = []
        self._count = env.num_envs

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        self.starts.append((trial_start.tolist(), episode_start.tolist()))

    def actions(self, observation: Observation) -> np.ndarray:
        return np.full(self._count, 4)

    def steps_back(self) -> np.ndarray:
        return np.arange(self._count)


@pytest.mark.parametrize("num_envs", [1, 2, 5])
def test_the_oracle_by_hand(num_envs: int) -> None:
    """It moves |x| + |y| steps to the goal, and is paid from the last of them on."""
    env = darkroom(num_envs)
    seeds = range(30, 35)
    expected = []
    for seed in seeds:
        single = TrialEnv(Darkroom, trial_episodes=3, size=4, max_episode_steps=7)
        expected.append(7 - int(single.reset(seed=seed)[1]["goal"].sum()) + 1)
    played = play_scores(env, OraclePlayer(env), seeds, "return")
    assert played.scores.tolist() == expected
    assert played.mean == np.mean(expected)
    assert played.stderr == pytest.approx(np.std(expected, ddof=1) / np.sqrt(5))
    assert len(played.steps_back) == 0


def test_trials_and_starts() -> None:
    env = darkroom(2)
    player = Still(env)
    steps = list(played_steps(env, player, [5, 6, 7]))
    assert len(steps) == 2 * 3 * 7  # the second environment keeps pace in the second trial of the first
    assert [step.trial.tolist() for step in steps[::21]] == [[0, 1], [2, -1]]
    assert [step.episode[0] for step in steps] == 2 * (7 * [0] + 7 * [1] + 7 * [2])
    begins = [k for k, (trial, _) in enumerate(player.starts) if trial[0]]
    assert begins == [0, 21] and sum(episode[0] for _, episode in player.starts) == 6
    assert [step.info["seed"][0] for step in steps[::21]] == [5, 7]
    assert {int(step.info["trial_id"][0]) for step in steps} == {0}


def test_episodes_after_the_first_count() -> None:
    env = darkroom(2)
    played = play_scores(env, Still(env), [1, 2, 3, 4], "num_steps")
    assert played.scores.tolist() == [7.0] * 4
    assert played.steps_back.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]  # two of each of four trials
    single = darkroom(2, trial_episodes=1)
    assert len(play_scores(single, Still(single), [1, 2, 3, 4], "num_steps").steps_back) == 4


def test_an_episode_that_the_end_of_the_trial_cuts_does_not_count() -> None:
    env = darkroom(1, trial_episodes=None, trial_steps=17)
    assert play_scores(env, Still(env), [1, 2], "num_steps").scores.tolist() == [7.0, 7.0]
    env = darkroom(1, trial_episodes=None, trial_steps=13)
    with pytest.raises(ValueError, match="trials must have an episode after the first, got none in trial 0"):
        play_scores(env, Still(env), [1, 2], "num_steps")
    with pytest.raises(ValueError, match="score_key must be a key of info, got 'points'"):
        play_scores(env, Still(env), [1, 2], "points")


def test_drawn_actions_follow_from_trial_and_episode_alone() -> None:
    def actions(num_envs: int) -> dict[tuple[int, int], list[int]]:
        env = darkroom(num_envs)
        found: dict[tuple[int, int], list[int]] = {}
        for step in played_steps(env, DrawnPlayer(env, 3), range(6)):
            for i in np.flatnonzero(step.trial >= 0):
                found.setdefault((int(step.trial[i]), int(step.episode[i])), []).append(int(step.actions[i]))
        return found

    one, three = actions(1), actions(3)
    assert one == three and len(one) == 18
    assert len({tuple(each) for each in one.values()}) == 18
    counts = np.bincount(np.concatenate(list(one.values())), minlength=5)
    assert counts.sum() == 126 and counts.min() > 10


def test_steps_back_and_windows_of_the_toy_task() -> None:
    for window, delay, score in ((20, 20, 0.0), (21, 20, 1.0), (64, 20, 1.0)):
        env = TrialVectorEnv(Cue, 4, trial_episodes=1, delay=delay, autoreset_mode="Disabled")
        played = play_scores(env, Window(CueIdeal(env.task), window), range(40), "success")
        assert played.mean == 1.0 if score else 0.3 < played.mean < 0.7
    env = TrialVectorEnv(Cue, 4, trial_episodes=1, delay=20, autoreset_mode="Disabled")
    assert play_scores(env, CueIdeal(env.task), range(8), "return").steps_back.tolist() == 8 * [20.0]
