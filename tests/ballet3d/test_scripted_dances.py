"""Scripted answers of Ballet3D: read off the views; without views all are equally likely."""

import numpy as np
import pytest

from memenvs.ballet3d.env import Ballet3D
from memenvs.ballet3d.episodes import DANCES, NUM_STEPS
from memenvs.ballet3d.scripted_dances import DanceObserver, MeanDance
from memenvs.core import TrialVectorEnv
from memenvs.rules import Rule, Window
from memenvs.task import Observation
from tests.ballet3d.test_ballet3d import mean_answers
from tests.rule_scores import play_episode


@pytest.fixture(scope="module")
def task() -> Ballet3D:
    return Ballet3D(2)


def odds_in(task: Ballet3D, observation: Observation, rule: Rule) -> np.ndarray:
    """Weights of the five dances in the answers of a rule, (N, 5).

    They are the least-squares mixture of the dances' pictures.
    """
    answers = (rule.choose(observation) + 1) * 127.5
    episodes = task.world.make_episodes(np.zeros(5, np.int64))
    episodes.dance[:, 0] = np.arange(5)
    rows = []
    for answer, query in zip(answers, observation["query"], strict=True):
        at_rest = task.world.front_views[1::6]
        episodes.dancer[:, 0] = np.flatnonzero((at_rest == query).all((1, 2, 3)))
        pictures = task.world.answers(task.world.with_query(episodes, np.zeros(5, int))).reshape(5, -1)
        differs = np.flatnonzero((pictures != pictures[0]).any(0))[::7]
        rows.append(np.linalg.lstsq(pictures[:, differs].T.astype(float), answer[differs], rcond=None)[0])
    return np.array(rows)


def query_of(task: Ballet3D, dancers: list[int]) -> Observation:
    """Observation of two dancers in the query phase."""
    at_rest = task.world.front_views[6 * np.array(dancers) + 1]
    return {"rgb": np.zeros_like(at_rest), "query": at_rest, "phase": np.ones(2, np.int64)}


@pytest.mark.parametrize("shape", [0, 1], ids=["box", "ball"])
def test_every_dance_of_every_dancer_is_read(task: Ballet3D, shape: int) -> None:
    """Before all walls, in drawn turns; each dancer is there with another shape of its colour, which is not taken."""
    world = task.world
    episodes = world.make_episodes(np.arange(10) + 7)
    colour = np.arange(10)[:, None] + np.array([0, 0, 1, 1, 2, 2, 3])
    episodes.dancer[:] = colour % 6 + 6 * ((np.arange(7) + shape) % 2)
    episodes.dance[:] = (np.arange(10)[:, None] // 2 + np.arange(7)) % 5
    pictures, rows = world.draw(episodes)
    right = 0
    for b in range(0, 10, 2):
        rule = DanceObserver(task)
        for t in range(NUM_STEPS):
            rule.see({"rgb": pictures[rows[b : b + 2, t]], "phase": np.zeros(2, np.int64)})
        for number in range(7):
            answers = odds_in(task, query_of(task, episodes.dancer[b : b + 2, number].tolist()), rule)
            right += int((answers[[0, 1], episodes.dance[b : b + 2, number]] > 0.99).sum())
    assert right >= 69  # of 70: a dancer at the edge of the view is sometimes seen too seldom


def test_one_view_shows_the_height_alone(task: Ballet3D) -> None:
    """Three moves into a dance both circles, the second of which is a step aside, and two others are in the air."""
    episodes = task.world.make_episodes(np.array([3]))
    episodes.dancer[:] = np.arange(7)  # all boxes but the last
    episodes.dance[:] = DANCES.index("up_and_down")
    pictures, rows = task.world.draw(episodes)
    rule = DanceObserver(task)
    at = [t for t in range(NUM_STEPS) if t % 6 == 3 and 54 <= t < 72]
    assert len(at) == 3
    rule._steps[:] = at[0]  # as if it had seen another place; then to the end of the episode
    rule._frames[:] = 0
    for t in range(at[0], NUM_STEPS):
        image = pictures[rows[0, t]] if t == at[0] else np.zeros_like(pictures[0])
        rule.see({"rgb": np.stack([image] * 2), "phase": np.zeros(2, np.int64)})
    query = query_of(task, [3, 5])
    answers = odds_in(task, query, rule)
    np.testing.assert_allclose(answers[0], [0.25, 0.25, 0.25, 0, 0.25], atol=1e-3)
    np.testing.assert_allclose(answers[1], 0.2, atol=1e-3)  # another dancer, who was not seen
    assert rule.steps_back().tolist() == [NUM_STEPS - at[0], 0]


def test_scores_and_windows() -> None:
    env = TrialVectorEnv(Ballet3D, 8, autoreset_mode="Disabled", trial_episodes=1)
    blind, info = play_episode(env, MeanDance(env.task))
    blind_scores = info["return"]
    expected = mean_answers(env.task.world, env.task._episodes).reshape(8, -1)
    np.testing.assert_allclose((blind + 1) * 127.5, expected, atol=0.01)
    np.testing.assert_array_equal(play_episode(env, Window(DanceObserver(env.task), 1))[0], blind)
    answers, info = play_episode(env, DanceObserver(env.task))
    assert (info["return"] > 1e-3 * blind_scores).all() and blind_scores.max() < -1e-4
    for window in (16, 127):
        again, _ = play_episode(env, Window(DanceObserver(env.task), window))
        same = [np.array_equal(again[i], answers[i]) for i in range(8)]
        last = env.task._episodes.query_dancer == 6  # the dancer before the left wall, the last one to be seen
        assert all(same) if window == 127 else not any(np.array(same)[~last])
    env.close()
