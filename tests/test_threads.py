"""Pools of threads in forked processes and copies."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.actions import draw_actions
from memenvs.registry import ENVIRONMENTS
from memenvs.task import setting_names
from memenvs.threads import ThreadPool
from tests.rollouts import same

# From Python 3.12 on, a fork beside threads warns, whatever the threads are.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"),
]


def in_fork(task: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Result of a task in a forked process, which has to end too."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(task()))
    process.start()
    try:
        assert receiver.poll(seconds), "the forked process hangs"
        result = receiver.recv()
        process.join(seconds)
        assert process.exitcode == 0
        return result
    finally:
        process.kill()
        process.join()


def test_pool_in_fork_and_copy():
    pool = ThreadPool(1, "test")
    assert pool.submit(lambda: threading.current_thread().name).result().startswith("test")
    assert in_fork(lambda: [pool.submit(int, "7").result(), pool.close()]) == [7, None]
    copy = pickle.loads(pickle.dumps(pool))
    pool.close()
    assert in_fork(pool.close) is None
    for each in (pool, copy):
        assert each.submit(int, "8").result() == 8
        each.close()


@pytest.mark.parametrize("id", [spec.id for spec in ENVIRONMENTS if "threads" in setting_names(spec.task)])
def test_used_environment_goes_on_in_a_fork(id):
    env = gym.make_vec(id, 3, threads=2)
    env.reset(seed=0)
    actions = draw_actions(env.unwrapped.single_action_space, 3, np.random.default_rng(0))
    if id.endswith("ExtObjNav-v0"):  # starts its other threads, which compute distances
        layout = env.unwrapped.task.layout(0)
        for goal in layout.goals.tolist()[:4]:
            env.unwrapped.task._distance_field(layout, goal)
        assert env.unwrapped.task._background._executor is not None

    def play() -> list:
        seen = [env.step(actions)[0] for _ in range(3)]
        env.close()
        return seen

    forked = in_fork(play)
    for one, other in zip(forked, play(), strict=True):
        assert same(one, other)
