"""Scripted answers of ViewRecall: the mean picture, and the queried view from a window."""

from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.recall import observer
from memenvs.recall.config import ViewRecallConfig
from memenvs.recall.observer import MeanView, ViewObserver, mean_view, stitch
from memenvs.recall.pools import ViewPool
from memenvs.recall.turns import NO_MOVE, OBSERVED_HEADINGS, QUERY_HEADINGS
from memenvs.recall.view_recall import ViewRecall
from memenvs.rules import Window
from memenvs.task import Observation
from tests.rule_scores import play_episode

SMALL = {"rooms": (4, 5), "image_size": (12, 16), "steps": (20, 20)}


@pytest.fixture(autouse=True)
def few_positions(monkeypatch: pytest.MonkeyPatch):
    """Mean pictures of three positions."""
    monkeypatch.setattr(observer, "_POSITIONS", 3)
    mean_view.cache_clear()
    yield
    mean_view.cache_clear()


def test_the_mean_picture_is_that_of_the_training_split() -> None:
    mean = mean_view(ViewRecallConfig(**SMALL, split="test"))
    pictures = ViewPool(ViewRecallConfig(**SMALL, split="train"), positions=3).pictures.astype(float)
    np.testing.assert_allclose(mean, np.concatenate([pictures, pictures[:, :, :, ::-1]]).mean((0, 1)))
    assert not np.allclose(mean, ViewPool(ViewRecallConfig(**SMALL, split="test"), positions=3).pictures.mean((0, 1)))


def observe(pictures: list[float], heading: list[float], move: list[int], phase: list[int]) -> Observation:
    """Observation of one step: pictures of one grey each."""
    rgb = np.broadcast_to(np.array(pictures, np.uint8)[:, None, None, None], (len(pictures), 12, 16, 3))
    angles = np.column_stack([np.cos(heading), np.sin(heading)]).astype(np.float32)
    return {"rgb": rgb, "heading": angles, "move": np.array(move), "phase": np.array(phase)}


def test_episodes_by_hand() -> None:
    """Left of the middle the view is that of the picture to the left; where no picture reaches, it is the mean."""
    task = ViewRecall(2, **SMALL)
    rule = ViewObserver(task)
    mean = mean_view(task.config)
    turn = OBSERVED_HEADINGS[1]
    for k, grey in enumerate((10, 200, 90, 0)):
        rule.see(observe([grey, 77], [k * turn, -k * turn], [0, 1] if k else [NO_MOVE, NO_MOVE], [0, 0]))
    query = observe([0, 0], [QUERY_HEADINGS[0], QUERY_HEADINGS[5]], [NO_MOVE, NO_MOVE], [1, 1])
    rule.see(query)
    pictures = (rule.choose(query).reshape(2, 12, 16, 3) + 1) * 127.5
    # Between headings 1 and 2 (counter-clockwise): the left half is nearer to 2 or equal; both show the middle.
    assert set(np.unique(pictures[0, 4:8].round())) <= {200.0, 90.0}
    np.testing.assert_allclose(pictures[0, 5, [0, 15], 0], [90, 200], atol=0.01)
    np.testing.assert_allclose(pictures[1], mean, atol=0.01)  # behind all that it saw
    assert rule.steps_back().tolist() == [3, 0]  # headings 1 and 2 were three and two steps ago
    # Another episode begins at another position: the pictures of the one before show nothing of it.
    rule.see(observe([1, 77], [np.pi, 0.0], [NO_MOVE, 0], [0, 0]))
    query = observe([0, 0], [QUERY_HEADINGS[0], QUERY_HEADINGS[9]], [NO_MOVE, NO_MOVE], [1, 1])
    rule.see(query)
    pictures = (rule.choose(query).reshape(2, 12, 16, 3) + 1) * 127.5
    np.testing.assert_allclose(pictures[0], mean, atol=0.01)
    assert (np.abs(pictures[1] - 77) < 0.01).mean() > 0.7
    rule.forget(np.array([False, True]))
    np.testing.assert_array_equal(rule.choose(query), MeanView(task).choose(query))
    # Blank steps of a gap are no pictures.
    blank = observe([0, 0], [0.0, 0.0], [0, 0], [0, 0])
    rule.see({**blank, "heading": np.zeros((2, 2), np.float32)})
    np.testing.assert_allclose((rule.choose(query).reshape(2, 12, 16, 3)[1] + 1) * 127.5, mean, atol=0.01)
    task.close()


def test_windows_answer_from_their_pictures() -> None:
    """Answers are those of the pictures of the last steps, computed from a panorama; one observation is no picture."""
    env = TrialVectorEnv(ViewRecall, 4, autoreset_mode="Disabled", trial_episodes=1, **SMALL)
    home: dict[str, Any] = {"layout": 0}
    blind, blind_info = play_episode(env, MeanView(env.task), home)
    np.testing.assert_array_equal(play_episode(env, Window(ViewObserver(env.task), 1), home)[0], blind)
    mean = mean_view(env.task.config)
    for window in (4, 41):
        answers, info = play_episode(env, Window(ViewObserver(env.task), window), home)
        pool = ViewPool(env.task.config, positions=1)
        for i in range(4):
            pictures = pool.pictures[0]
            poses = np.tile(info["start"][i], (40, 1))
            poses[:, 2] += np.concatenate([OBSERVED_HEADINGS, QUERY_HEADINGS])
            env.task._cameras.draw_all(env.task.home(i), poses, pictures)
            last = np.unique(env.task._heading[i, 41 - window :])
            view, _ = stitch(pictures[last], OBSERVED_HEADINGS[last], QUERY_HEADINGS[info["query"][i]], 90.0)
            expected = np.where(np.isnan(view), mean, view)
            np.testing.assert_allclose((answers[i] + 1) * 127.5, expected.ravel(), atol=0.01)
    assert info["mse"].mean() < 0.5 * blind_info["mse"].mean()
    everything, _ = play_episode(env, ViewObserver(env.task), home)
    np.testing.assert_array_equal(everything, answers)
    env.close()
