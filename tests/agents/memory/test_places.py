"""Places and actions on their path from an environment to a memory that requires them."""

from __future__ import annotations

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

SEEN = spaces.Dict(
    {"range": spaces.Box(0.0, 1.0, (4,), np.float32), "place": spaces.Discrete(3), "move": spaces.Discrete(5)}
)
READER = {"dim": 8, "layers": 2, "mlp_dim": 6, "n_places": 3, "capacity": 5}
MEMORIES: dict[str, dict[str, Any]] = {
    "t-fifo+a": {"dim": 8, "layers": 2, "mlp_dim": 6, "capacity": 5},
    "sat-fifo": READER | {"strategy": "mvfo"},
    "sat-pm-ph": READER | {"chunk": 2, "top_k": 2},
}


def rooms() -> DummyVecEnv:
    """Two environments of random rooms, actions and ranges; episodes of 11 steps."""
    return DummyVecEnv([lambda: Noise(SEEN, spaces.Discrete(3), 11)] * 2)


def ppo(memory: str, frozen: bool = False, **settings: Any) -> PartialUpdatePPO:
    policy = {"memory": memory, "memory_kwargs": MEMORIES[memory], "freeze_features": frozen}
    base = {"batch_size": 2, "n_epochs": 1, "seed": 0, "device": "cpu"}
    return PartialUpdatePPO("MemoryPolicy", rooms(), policy_kwargs=policy, **(base | settings))


def policy(space: spaces.Space, memory: str) -> MemoryPolicy:
    kwargs = {**MEMORIES[memory]}
    return MemoryPolicy(space, spaces.Discrete(3), lambda _: 1e-3, memory=memory, memory_kwargs=kwargs)


def test_a_memory_gets_its_required_inputs_and_the_features_the_rest() -> None:
    seen = {"range": torch.rand(2, 4), "place": torch.tensor([2, 0]), "move": torch.tensor([4, 1])}
    for memory, key, width in (("sat-fifo", "place", 4 + 5), ("t-fifo+a", "move", 4 + 3)):
        made = policy(SEEN, memory)
        assert made.features_dim == width  # the other one is a key like the rest
        assert made.extra_inputs(seen).keys() == {key}
        assert torch.equal(made.extra_inputs(seen)[key], seen[key])
        yes = torch.ones(2, dtype=torch.bool)
        acted = made.act(seen, made.initial_state(2), yes, yes)
        assert torch.equal(acted.state[key][:, 0], seen[key])


def test_what_is_missing_is_named() -> None:
    for seen, memory, message in (
        ({"range": SEEN["range"]}, "sat-fifo", "'sat-fifo' needs the key 'place', the number of a place, in observ"),
        (
            {**SEEN, "move": spaces.Box(0, 4, ())},
            "t-fifo+a",
            r"'t-fifo\+a' needs the key 'move', the number of a",
        ),
        ({"place": SEEN["place"]}, "sat-fifo", "observations must have a key besides 'place'"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(spaces.Dict(seen), memory)


@pytest.mark.slow
@pytest.mark.parametrize("memory", MEMORIES)
def test_learning_uses_the_places_of_acting(memory: str) -> None:
    for frozen in (False, True):
        check_segments(ppo(memory, frozen, n_steps=24, n_updates=3, prefix_grad="detach"))


def test_room_for_a_step_of_each_place_is_room_for_those_there_are() -> None:
    env = make_vec_env("memenvs/RoomBallet-FIFO-v0", 2, seed=0, obs="symbols", place=True)
    small = {"dim": 8, "layers": 1, "mlp_dim": 6, "capacity": 8}  # the environment has 8 rooms
    made = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs={"memory": "sat-pm", "memory_kwargs": small}, n_steps=8)
    assert made.policy.memory.config.n_places == 8
    with pytest.raises(ValueError, match=r"capacity must be at least n_places \(8\).* got 7"):
        policy = {"memory": "sat-pm", "memory_kwargs": {**small, "capacity": 7}}
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, n_steps=8)


def test_a_bounded_memory_goes_on_from_rollout_to_rollout() -> None:
    check_rollouts(ppo("sat-fifo", n_steps=7, n_updates=1, learning_rate=1e-9, reset_each_rollout=False))
