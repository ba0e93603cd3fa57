"""Places and actions on their path from an environment to a memory that requires them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import memenvs  # noqa: F401  (registers)
from memenvs.agents import EpisodeDQN, PartialUpdatePPO
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.vec_env import make_vec_env
from memenvs.resets import stream_seed
from memenvs.wrappers import PlaceWrapper
from tests.agents.learners import check_rollouts, check_segments

SEEN = spaces.Dict(
    {"range": spaces.Box(0.0, 1.0, (4,), np.float32), "place": spaces.Discrete(3), "move": spaces.Discrete(5)}
)
READER = {"dim": 8, "layers": 2, "mlp_dim": 6, "n_places": 3, "capacity": 5}
MEMORIES: dict[str, dict[str, Any]] = {
    "t-fifo+a": {"dim": 8, "layers": 2, "mlp_dim": 6, "capacity": 5},
    "sat-fifo": READER | {"strategy": "mvfo"},
    "sat-pm-ph": READER | {"chunk": 2, "top_k": 2},
}


class Rooms(gym.Env):
    """Random rooms, actions and ranges; episodes of 11 steps."""

    observation_space = SEEN
    action_space = spaces.Discrete(3)

    def _observe(self) -> dict[str, Any]:
        self.t += 1
        rng = self.np_random
        return {"range": rng.random(4, np.float32), "place": rng.integers(3), "move": rng.integers(5)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._observe(), float(action == 1), self.t > 11, False, {}


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
    with pytest.raises(ValueError, match="memory 'sat-fifo' needs the key 'place', the number of a place, in observ"):
        policy(spaces.Dict({"range": SEEN["range"]}), "sat-fifo")
    with pytest.raises(ValueError, match="memory 't-fifo\\+a' needs the key 'move', the number of a move, in observ"):
        policy(spaces.Dict({"range": SEEN["range"], "move": spaces.Box(0, 4, ())}), "t-fifo+a")
    with pytest.raises(ValueError, match="observations must have a key besides 'place'"):
        policy(spaces.Dict({"place": SEEN["place"]}), "sat-fifo")


@pytest.mark.slow
@pytest.mark.parametrize("memory", MEMORIES)
def test_learning_uses_the_places_of_acting(memory: str) -> None:
    for frozen in (False, True):
        model = PartialUpdatePPO(
            "MemoryPolicy", DummyVecEnv([Rooms] * 2),
            policy_kwargs={"memory": memory, "memory_kwargs": MEMORIES[memory], "freeze_features": frozen},
            n_steps=24, n_updates=3, batch_size=2, n_epochs=1, seed=0, device="cpu", prefix_grad="detach",
        )  # fmt: skip
        check_segments(model)


@pytest.mark.slow
def test_a_memory_has_as_many_places_as_the_observation_space() -> None:
    env = make_vec_env("memenvs/RoomBallet-MVFO-v0", 2, seed=0, rooms=12, obs="symbols", place=True)
    small = {"dim": 8, "layers": 1, "mlp_dim": 6, "capacity": 5}
    once = {"n_steps": 600, "n_updates": 1, "n_epochs": 1, "seed": 0, "device": "cpu"}
    policy: dict[str, Any] = {"memory": "sat-fifo", "memory_kwargs": small}
    model = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, **once)
    model.learn(1200)  # all 12 rooms are visited within an episode of 576 steps
    assert model.policy.memory.config.n_places == 12
    with pytest.raises(ValueError, match=r"place must be 0 \.\.\. 8, .* \(n_places\)"):
        policy = {"memory": "sat-fifo", "memory_kwargs": {**small, "n_places": 9}}
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, **once).learn(1200)


def test_room_for_a_step_of_each_place_is_room_for_those_there_are() -> None:
    env = make_vec_env("memenvs/RoomBallet-FIFO-v0", 2, seed=0, obs="symbols", place=True)
    small = {"dim": 8, "layers": 1, "mlp_dim": 6, "capacity": 8}  # the environment has 8 rooms
    made = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs={"memory": "sat-pm", "memory_kwargs": small}, n_steps=8)
    assert made.policy.memory.config.n_places == 8
    with pytest.raises(ValueError, match=r"capacity must be at least n_places \(8\).* got 7"):
        policy = {"memory": "sat-pm", "memory_kwargs": {**small, "capacity": 7}}
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, n_steps=8)


def test_a_bounded_memory_goes_on_from_rollout_to_rollout() -> None:
    model = PartialUpdatePPO(
        "MemoryPolicy", DummyVecEnv([Rooms] * 2),
        policy_kwargs={"memory": "sat-fifo", "memory_kwargs": MEMORIES["sat-fifo"]},
        n_steps=7, n_updates=1, batch_size=2, n_epochs=1, seed=0, device="cpu", learning_rate=1e-9,
        reset_each_rollout=False,
    )  # fmt: skip
    check_rollouts(model)


def test_q_learning_uses_the_places_of_acting() -> None:
    model = EpisodeDQN(
        "MemoryPolicy", DummyVecEnv([Rooms] * 2),
        policy_kwargs={"memory": "sat-pm-ph", "memory_kwargs": MEMORIES["sat-pm-ph"]},
        capacity=4, episode_steps=12, batch_size=2, decisions=3, updates_per_collect=2, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(100)
    rows = torch.arange(2)
    steps = model.replay.read(rows, torch.arange(12).expand(2, -1))
    assert isinstance(steps.observations, dict)
    assert torch.equal(steps.extra_inputs["place"], steps.observations["place"])


def test_places_of_a_batch_are_those_of_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "memenvs/RoomBallet-FIFO-v0"
    batch, alone = make_vec_env(name, 2, seed=3, place=True), PlaceWrapper(gym.make(name))
    assert batch.observation_space["place"] == alone.observation_space["place"]  # type: ignore[index]
    seen, (one, _) = batch.reset(), alone.reset(seed=stream_seed(3))
    places = set()
    for _ in range(1000):
        assert seen["place"].dtype == np.int64
        assert seen["place"][0] == one["place"]
        places.add(int(one["place"]))
        seen, _, done, infos = batch.step(np.zeros(2, np.int64))
        one, _, terminated, truncated, _ = alone.step(0)
        assert done[0] == (terminated or truncated)
        if done[0]:
            assert infos[0]["terminal_observation"]["place"] == one["place"]
            break
    assert done[0]
    assert len(places) == 8
    monkeypatch.setattr(type(batch.unwrapped.env.task), "num_places", None)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="place must be False where there are None places and observations are Dict"):
        make_vec_env(name, 1, place=True)
