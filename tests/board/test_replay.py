"""Actions of agents, recorded and played again."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.board.entry import Run
from memenvs.board.replay import Agent, record_actions, replay
from memenvs.certificates.test_sets import find_test_set
from memenvs.core import TrialEnv
from memenvs.registry import find_environment
from memenvs.rules import make_rule
from tests.board.cue_entries import CUE, forgets, remembers
from tests.certificates.cue import Cue, registered

GAP = "memenvs/Darkroom-Gap-v0"


def rule_agent(id: str, name: str) -> Agent:
    """A scripted rule of an id as an agent that is a function."""
    rule = make_rule(find_environment(id).policies[name], find_test_set(id).make_env({}).task)

    def agent(observation: Any, state: Any, trial_start: np.ndarray, episode_start: np.ndarray) -> Any:
        rule.start(trial_start, episode_start)
        return rule.actions(observation), (state or 0) + 1

    return agent


@pytest.fixture(scope="module")
def ideal() -> Run:
    return replay(GAP, record_actions(GAP, rule_agent(GAP, "ideal")), seed=7)


def test_the_score_is_that_of_the_certificate(ideal: Run) -> None:
    """Both play the ideal rule, the certificate without a record of actions."""
    row = find_environment(GAP).load_certificate().row("ideal")  # type: ignore[union-attr]
    scores = ideal.trial_scores()
    assert scores.mean() == pytest.approx(row.mean, rel=1e-12)
    assert scores.std(ddof=1) / np.sqrt(200) == pytest.approx(row.stderr, rel=1e-9)


def test_a_single_environment_gives_the_scores_for_the_actions(ideal: Run) -> None:
    trials = find_test_set(GAP)
    assert ideal.seed == 7 and ideal.actions is not None and len(ideal.actions) == len(ideal.scores) == 200
    for k in (0, 19, 20, 199):
        env = gym.make(GAP, **trials.settings)
        env.reset(seed=trials.first_seed + k, options={"trial": 0})
        returns = [0.0]
        for action in ideal.actions[k]:
            _, reward, terminated, truncated, _ = env.step(action)
            returns[-1] += float(reward)
            if (terminated or truncated) and not env.unwrapped.trial_over:  # type: ignore[attr-defined]
                env.reset()
                returns.append(0.0)
        assert env.unwrapped.trial_over and returns == list(ideal.scores[k])  # type: ignore[attr-defined]


def test_an_agent_learns_where_trials_and_episodes_start() -> None:
    seen = []

    def agent(observation: Any, state: Any, trial_start: np.ndarray, episode_start: np.ndarray) -> Any:
        seen.append((state, trial_start[0], episode_start[0], int(observation["cue"][0]) > 0))
        return np.zeros(len(trial_start), np.int64), len(seen)

    with registered(defaults={"trial_episodes": 3, "delay": 2}):
        actions = record_actions(CUE, agent)
    assert [len(trial) for trial in actions] == [9] * 200
    assert [state for state, *_ in seen] == [None, *range(1, 90)]  # 20 environments play ten trials of nine steps each
    assert [trial for _, trial, *_ in seen] == 10 * [k == 0 for k in range(9)]
    assert [(episode, shows) for _, _, episode, shows in seen] == 30 * [(True, True), (False, False), (False, False)]


def test_scores_by_hand() -> None:
    """The memory answers right in each episode. Who always answers 1 is right where the bit is 1."""
    with registered(defaults={"trial_episodes": 3, "delay": 2}) as spec:
        right, ones = (replay(CUE, record_actions(CUE, agent)) for agent in (remembers, forgets))
        assert set(right.scores) == {(1.0, 1.0, 1.0)} and right.trial_scores().tolist() == [1.0] * 200
        trials = find_test_set(CUE)
        for k in range(3):
            env = TrialEnv(spec.task, **trials.settings)
            bits = []
            for _ in range(3):
                first, _ = env.reset(seed=trials.first_seed + k if not bits else None)
                bits.append(int(first["cue"]) - 1)
                for _ in range(3):
                    env.step(0)
            assert ones.scores[k] == tuple(map(float, bits))
            assert ones.trial_scores()[k] == (bits[1] + bits[2]) / 2  # those after the first
        assert 0.4 < ones.trial_scores().mean() < 0.6


def test_observations_may_change_but_no_more() -> None:
    with registered(), pytest.raises(ValueError, match=r"has delay=20, got an environment with 3"):
        record_actions(CUE, remembers, observed={"delay": 3})


class Dial(Cue):
    """The answer is the first number of a vector."""

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        super().__init__(num_envs, **kwargs)
        self.action_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super().step(actions[:, 0].round().astype(int), active)


def test_vectors_as_actions() -> None:
    def agent(*seen: Any) -> Any:
        bits, state = remembers(*seen)
        return np.column_stack([bits, 0.3 + 0 * bits]), state

    with registered(task=Dial, defaults={"trial_episodes": 3, "delay": 2}):
        run = replay(CUE, record_actions(CUE, agent))
    assert run.actions is not None and run.actions[0].shape == (9, 2) and set(run.scores) == {(1.0, 1.0, 1.0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda trials: trials[:-1], "actions must be of 200 trials, got 199"),
        (lambda trials: [*trials[:7], trials[7][:-1], *trials[8:]], "trial 7 goes on after its 8 actions"),
        (lambda trials: [*trials[:7], np.append(trials[7], 0), *trials[8:]], "trial 7 is over after 9 steps, it has"),
        (lambda trials: [trial - 2 for trial in trials], r"actions must be in 0 \.\.\. 1, got \[-"),
    ],
)
def test_wrong_actions(change: Any, message: str) -> None:
    with registered(defaults={"trial_episodes": 3, "delay": 2}):
        actions = record_actions(CUE, remembers)
        with pytest.raises(ValueError, match=message):
            replay(CUE, change(actions))
