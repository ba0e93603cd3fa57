"""Tasks that end with an answer, in episodes short enough to reach it."""

import copy
from typing import Any

import numpy as np
import pytest

from memenvs.ballet3d.env import Ballet3D
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.faces.env import FFHQWorldLongStay
from memenvs.recall.color_recall import ColorRecall
from memenvs.recall.view_recall import ViewRecall
from memenvs.task import BatchTask
from memenvs.testing.comparison import check_same
from memenvs.testing.task_under_test import draws, info_of, vector_actions
from memenvs.two_rooms.env import TwoRooms
from memenvs.visual_match.env import VisualMatch

HOMES = {"rooms": (4, 5), "image_size": (12, 16), "steps": (5, 5)}
#: Task, settings, and each of its options as the number 0.
CASES: list[tuple[type[BatchTask], dict[str, Any], dict[str, int]]] = [
    (TwoRooms, {"phases": (1, 30, 20), "image_size": (8, 8)}, {"goal": 0}),
    (VisualMatch, {"phases": (1, 30, 20)}, {"goal": 0}),
    (ColorRecall, {**HOMES, "square_size": 3, "capacity": 20}, {"key": 0, "colour": 0}),
    (ViewRecall, HOMES, {"key": 0, "query": 0}),
    (FFHQWorldLongStay, {"steps": (3, 0, 0), "num_images": 3}, {"key": 0, "picture": 0}),
    (Ballet3D, {}, {"key": 0, "query": 0}),
]


@pytest.mark.parametrize(("task", "settings", "zeros"), CASES, ids=[case[0].__name__ for case in CASES])
def test_an_answer_leaves_nothing_behind(task, settings, zeros):
    """The oracle answers in one environment, random actions in the other; each then begins as it does alone."""
    env = TrialVectorEnv(task, 2, trial_episodes=3, autoreset_mode="NextStep", **settings)
    given = env.reset(seed=0, options=zeros)[1]
    assert all((given[name] == 0).all() for name in zeros)  # 0 is a number like others
    drawn = env.reset(seed=0)[1]
    assert all((drawn[name] != 0).any() for name in zeros)
    alone = [TrialEnv(task, trial_episodes=3, **settings) for _ in range(2)]
    nobody = ended = np.zeros(2, bool)
    waiting = {0, 1}
    for numbers in draws(200, 2):
        actions = vector_actions(env, numbers)
        actions[0] = env.task.oracle_actions()[0]
        before = copy.deepcopy(env.task.info())
        rewards, terminated = env.task.step(actions, nobody)  # where nobody is active nothing happens
        assert not rewards.any() and not terminated.any()
        check_same("info after a step of nobody", env.task.info(), before)
        observation, rewards, terminated, truncated, info = env.step(actions)
        assert not rewards[ended].any()  # this step begins their next episode
        for i in waiting & set(np.flatnonzero(ended).tolist()):
            start, expected = alone[i].reset(seed=i, options={"episode_index": 1})
            found = info_of(info, i)
            check_same("first observation", info_of(observation, i), start)
            check_same("first info", {key: found[key] for key in expected} | {"trial_start": True}, expected)
            shows_answer = hasattr(env.task, "_answer")  # images for people have it beside the query
            for step in (0, env.task.max_episode_steps - 2)[: 1 + shows_answer]:
                env.task._step[i] = alone[i].task._step[0] = step
                np.testing.assert_array_equal(env.task.render(i), alone[i].task.render(0))
            env.task._step[i] = 0
            waiting.remove(i)
        ended = terminated | truncated
        if not waiting:
            break
    assert not waiting
