"""Pools of threads in forked processes, and caches: what a copy of them has."""

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.actions import draw_actions
from memenvs.caches import RecentlyUsed
from memenvs.task import setting_names
from memenvs.threads import ThreadPool
from tests.ids import each_id
from tests.rollouts import same

# From Python 3.12 on, a fork beside threads warns, whatever the threads are.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"),
]


THREADED = [each for each in each_id(others=pytest.mark.nightly) if "threads" in setting_names(each.values[0].task)]


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


@pytest.mark.parametrize("spec", THREADED)
def test_used_environment_goes_on_in_a_fork(spec):
    env = gym.make_vec(spec.id, 3, threads=2)
    env.reset(seed=0)
    actions = draw_actions(env.unwrapped.single_action_space, 3, np.random.default_rng(0))
    if spec.name == "ExtObjNav-v0":  # starts its other threads, which compute distances
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


def test_values_that_were_used_last_are_kept() -> None:
    cache: RecentlyUsed[int, str] = RecentlyUsed(2)
    made: list[int] = []

    def value(key: int) -> str:
        return cache.get(key, lambda: made.append(key) or f"value {key}")

    for key in (0, 1, 0, 2, 0, 2):  # 2 in place of 1
        assert value(key) == f"value {key}"
    assert (len(cache), made) == (2, [0, 1, 2])
    for key in (1, 2):  # 1 in place of 0, which was used before 2
        value(key)
    assert (len(cache), made) == (2, [0, 1, 2, 1])


def test_a_pickle_has_no_values() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(2)
    cache.get("a", lambda: 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (len(copy), copy.size, copy.get("a", lambda: 2), cache.get("a", lambda: 2)) == (0, 2, 2, 1)
