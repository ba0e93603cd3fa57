"""Ends of `learn`: the next call goes on as if nothing had, or warns of what it drops."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.base import MemoryAlgorithm
from tests.agents.algorithms.q_worlds import q_learner
from tests.agents.interruptions import POINTS, learn_interrupted
from tests.agents.learners import MEMORIES, SEGMENT, STEPS, Hooks, N, darkroom, learner, weights

DQN = {"capacity": 12, "batch_size": 6, "updates_per_collect": 3, "final_epsilon": 0.1}
CARRIES = {"n_updates": 1, "n_steps": 8, "n_epochs": 1, "reset_each_rollout": False}


def dqn() -> EpisodeDQN:
    policy = {"memory": "relic", "memory_kwargs": MEMORIES["relic"]}
    return q_learner(darkroom(4, horizon=6, episodes=2), policy, **DQN)


LEARNERS: dict[str, tuple[Callable[[], MemoryAlgorithm], int]] = {
    "partial updates": (lambda: learner("relic", n_epochs=1), 4 * N * SEGMENT),
    "carried memory": (lambda: learner("gru", **CARRIES), 4 * N * 8),
    "no trials": (lambda: learner("gru", env=make_vec_env("CartPole-v1", N, seed=0), **CARRIES), 4 * N * 8),
    "Q-learning": (dqn, 5 * 4 * 6),
}
CALLS = (1, 13)  # at which learning is interrupted: in the first and in a later segment or episode


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.slow
def test_learning_goes_on_or_says_what_it_drops(name):
    make, steps = LEARNERS[name]
    whole = weights(make().learn(steps))  # type: ignore[arg-type]
    reached: dict[str, set[bool]] = {point: set() for point in POINTS}
    for point in POINTS:
        for call in CALLS:
            model = make()
            was_reached, dropped = learn_interrupted(model, steps, point, call)
            if not was_reached:
                break
            reached[point].add(dropped)
            where = f"{point}, call {call}"
            assert model.num_timesteps >= steps and not model._is_unfinished, where
            if not dropped:
                assert torch.equal(weights(model), whole), where  # type: ignore[arg-type]
    assert all(reached.values()), reached
    for point in ("reset", "training_start", "rollout_start", "dump"):  # nothing is half done there
        assert reached[point] == {False}, point
    for point in ("step_wait", "on_step", "stop", "rollout_end", "optimizer"):
        assert True in reached[point], point


def test_a_replay_that_is_saved_while_episodes_run_goes_on(tmp_path):
    def save(own: Hooks) -> None:
        if own.n_calls == 27:  # in the fifth collection
            own.model.save(tmp_path / "model.zip")
            own.model.save_replay_buffer(tmp_path / "replay")

    dqn().learn(30 * 4, Hooks(step=save))
    loaded = EpisodeDQN.load(tmp_path / "model.zip", darkroom(4, horizon=6, episodes=2), device="cpu")
    loaded.load_replay_buffer(tmp_path / "replay")
    assert (loaded.filled_at, loaded.replay.count) == (72, 8)
    loaded.learn(1, reset_num_timesteps=False)
    assert loaded.replay.is_full and loaded._n_updates == 6 + 3


CARRYING = {name: MEMORIES[name] for name in ("gru", "trxl")} | {"frmqn": {"dim": 8, "capacity": 4}}


@pytest.mark.parametrize(
    ("memory", "trial_steps", "expected"),
    [("gru", 16, {0, 64, 128, 192}), ("trxl", 12, {0, 96, 192}), ("frmqn", 40, {0, 160})],
)
@pytest.mark.slow
def test_a_carried_memory_is_saved_between_trials_only(memory, trial_steps, expected, tmp_path):
    """In rollouts of 8 steps, wherever the learner says that it would resume exactly."""
    saved: set[int] = set()
    refused: set[int] = set()

    def save(own: Hooks) -> None:
        (saved if own.model.at_rollout_boundary else refused).add(own.num_timesteps)
        if own.model.at_rollout_boundary:
            own.model.save(tmp_path / f"{own.num_timesteps}.zip")

    points = ("training_start", "rollout_start", "step", "rollout_end", "training_end")
    policy = {"memory": memory, "memory_kwargs": CARRYING[memory]}
    make = partial(darkroom, episodes=None, trial_steps=trial_steps)
    whole = learner("none", env=make(), policy_kwargs=policy, **CARRIES)
    whole.learn(192, Hooks(**dict.fromkeys(points, save)))
    assert saved == expected and refused
    for steps in expected - {192}:
        resumed = PartialUpdatePPO.load(tmp_path / f"{steps}.zip", make(), device="cpu")
        resumed.learn(192 - steps, reset_num_timesteps=False)
        assert torch.equal(weights(resumed), weights(whole)), steps


def test_a_trial_without_a_step_is_the_next_one(tmp_path):
    """A learner that is saved as learning starts, or is resumed, goes on with the trial that it has just begun."""

    begun: list[Any] = []

    def save(own: Hooks) -> None:
        assert own.model.at_rollout_boundary
        own.model.save(tmp_path / "start")
        begun[:] = [info["trial_id"] for info in own.model.env.unwrapped.reset_infos]

    model = learner("lstm", env=darkroom(seed=0))
    for _ in range(2):
        model.learn(N * STEPS, callback=Hooks(training_start=save), reset_num_timesteps=False)
        resumed = PartialUpdatePPO.load(tmp_path / "start", env=darkroom())
        _, callback = resumed._setup_learn(10**6, reset_num_timesteps=False)
        resumed.collect_rollouts(resumed.env, callback, resumed.rollout_buffer, STEPS)
        assert [info["trial_id"] for info in resumed.env.unwrapped.reset_infos] == begun
        model = PartialUpdatePPO.load(tmp_path / "start", env=darkroom())
