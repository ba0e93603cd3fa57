"""Poses, places and moves on their path from an observation to a memory."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import memenvs  # noqa: F401  (registers)
from memenvs.agents import PartialUpdatePPO
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import make_vec_env
from tests.agents.learners import Noise, check_rollouts, check_segments

POSE = spaces.Box(-3.0, 3.0, (3,), np.float32)
RANGE = spaces.Box(0.0, 1.0, (4,), np.float32)
SEEN = spaces.Dict({"range": RANGE, "pose": POSE, "place": spaces.Discrete(3), "move": spaces.Discrete(5)})
#: Width of each input as a feature.
WIDTHS = {"pose": 3, "place": 3, "move": 5}
#: Settings of `Noise`: random poses and ranges, episodes of 11 steps.
POSES: dict[str, Any] = {
    "observation_space": spaces.Dict({"pose": POSE, "range": RANGE}),
    "action_space": spaces.Discrete(3),
    "horizon": 11,
}
READER = {"dim": 8, "layers": 2, "mlp_dim": 6, "capacity": 5}
MEMORIES: dict[str, dict[str, Any]] = {
    "smt": {"dim": 8, "heads": 2, "capacity": 4},
    "smt-factorized": {"dim": 8, "heads": 2, "n_centres": 3},
    "smt-causal": {"dim": 8, "heads": 2, "capacity": 4},
    "sm-pooling": {"dim": 8, "capacity": 3},
    "frmqn": {"dim": 8, "capacity": 4},
    "t-fifo+a": READER,
    "sat-fifo": READER | {"n_places": 3, "strategy": "mvfo"},
    "sat-pm-ph": READER | {"n_places": 3, "chunk": 2, "top_k": 2},
}


def policy(memory: str, space: spaces.Space = SEEN, **kwargs: Any) -> MemoryPolicy:
    kwargs = {**MEMORIES.get(memory, {}), **kwargs}
    return MemoryPolicy(space, spaces.Discrete(3), lambda _: 1e-3, memory=memory, memory_kwargs=kwargs)


def test_an_input_goes_to_the_memory_that_requires_it_and_is_a_feature_of_others() -> None:
    seen = {"range": torch.rand(2, 4), "pose": torch.randn(2, 3)}
    seen |= {"place": torch.tensor([2, 0]), "move": torch.tensor([4, 1])}
    yes = torch.ones(2, dtype=torch.bool)
    for memory, required in (("sm-pooling", "pose"), ("sat-fifo", "place"), ("t-fifo+a", "move"), ("gru", None)):
        made = policy(memory)
        assert made.features_dim == 4 + sum(width for key, width in WIDTHS.items() if key != required)
        acted = made.act(seen, made.initial_state(2), yes, yes)
        assert list(acted.extra_inputs) == list(made.extra_inputs(seen)) == ([] if required is None else [required])
        if required is not None:
            assert torch.equal(acted.extra_inputs[required], seen[required])
            number = torch.zeros(2, 1, dtype=torch.int64)
            x = made.memory_inputs(
                made.features(seen)[:, None], number, yes[:, None], yes[:, None], {required: seen[required][:, None]}
            )
            assert torch.equal(getattr(x, required)[:, 0], seen[required])


def test_scene_memories_may_do_without_a_pose() -> None:
    made, yes = policy("smt", spaces.Dict({"range": RANGE}), poses=False), torch.ones(2, dtype=torch.bool)
    seen = {"range": torch.rand(2, 4)}
    assert made.act(seen, made.initial_state(2), yes, yes).extra_inputs == {}


def test_what_is_missing_is_named() -> None:
    place = {"place": spaces.Discrete(3)}
    space: spaces.Space
    for space, memory, message in (
        (spaces.Dict({"range": RANGE}), "smt", r"'smt' needs the key 'pose', \(3,\) of x, y and heading, in"),
        (RANGE, "smt", "memory 'smt' needs the key 'pose', .*PoseWrapper adds it"),
        (spaces.Dict({"pose": spaces.Box(0.0, 1.0, (2,)), "range": RANGE}), "smt", "'smt' needs the key 'pose'"),
        (spaces.Dict({"range": RANGE}), "sat-fifo", "'sat-fifo' needs the key 'place', the number of a place, in"),
        (
            spaces.Dict({**place, "move": spaces.Box(0, 4, ())}),
            "t-fifo+a",
            r"'t-fifo\+a' needs the key 'move', the number of a",
        ),
        (spaces.Dict({"pose": POSE}), "smt", "observations must have a key besides 'pose'"),
        (spaces.Dict(place), "sat-fifo", "observations must have a key besides 'place'"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(memory, space)
    made, yes = policy("smt"), torch.ones(2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"pose must be \(2, 1, 3\), got None"):
        made.step(torch.rand(2, 12), made.initial_state(2), yes, yes)


def ppo(memory: str, frozen: bool = False, **settings: Any) -> PartialUpdatePPO:
    """A learner of two environments with random observations, and episodes of 11 steps."""
    env = DummyVecEnv([lambda: Noise(SEEN, spaces.Discrete(3), 11)] * 2)
    policy = {"memory": memory, "memory_kwargs": MEMORIES[memory], "freeze_features": frozen}
    base = {"batch_size": 2, "n_epochs": 1, "seed": 0, "device": "cpu"}
    return PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, **(base | settings))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.slow
def test_learning_uses_the_inputs_of_acting(memory: str) -> None:
    for prefix_grad, frozen in (("detach", True), ("window", False)):
        check_segments(ppo(memory, frozen, n_steps=24, n_updates=3, prefix_grad=prefix_grad, prefix_window=8))


@pytest.mark.parametrize("memory", [name for name in MEMORIES if name != "sat-pm-ph"])
def test_bounded_memories_go_on_from_rollout_to_rollout(memory: str) -> None:
    check_rollouts(ppo(memory, n_steps=7, n_updates=1, learning_rate=1e-9, reset_each_rollout=False))


def test_room_for_a_step_of_each_place_is_room_for_those_there_are() -> None:
    env = make_vec_env("memenvs/RoomBallet-FIFO-v0", 2, seed=0, obs="symbols", place=True)
    small = {"dim": 8, "layers": 1, "mlp_dim": 6, "capacity": 8}  # the environment has 8 rooms
    made = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs={"memory": "sat-pm", "memory_kwargs": small}, n_steps=8)
    assert made.policy.memory.config.n_places == 8
    with pytest.raises(ValueError, match=r"capacity must be at least n_places \(8\).* got 7"):
        policy = {"memory": "sat-pm", "memory_kwargs": {**small, "capacity": 7}}
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, n_steps=8)
