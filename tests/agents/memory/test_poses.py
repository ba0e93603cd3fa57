"""Poses on their path from an observation to a memory, past the features extractor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor

import memenvs.agents.memory
from memenvs.agents import PartialUpdatePPO
from memenvs.agents.memory import Memory, State, StepInputs
from memenvs.agents.memory.base import check_inputs, n_last_steps
from memenvs.agents.policies.memory_policy import MemoryPolicy
from tests.agents.learners import Noise, check_rollouts, check_segments

POSE = spaces.Box(-3.0, 3.0, (3,), np.float32)
SEEN = spaces.Dict({"pose": POSE, "range": spaces.Box(0.0, 1.0, (4,), np.float32)})
#: Settings of `Noise`: random poses and ranges, episodes of 11 steps.
POSES: dict[str, Any] = {"observation_space": SEEN, "action_space": spaces.Discrete(3), "horizon": 11}


@dataclass(frozen=True)
class OdometerConfig:
    """Nothing to set."""


class Odometer(Memory):
    """Gives the embedding, and the sum of all poses of the trial."""

    uses_pose = True

    def __init__(self, input_dim: int, config: OdometerConfig) -> None:
        super().__init__()
        self.config, self.input_dim, self.output_dim = config, input_dim, input_dim + 3

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        return {"sum": torch.zeros(batch_size, 3)}

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        features, state = self(x, state)
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        batch, steps = check_inputs(x, self.input_dim, uses_pose=True)
        total = self.initial_state(batch)["sum"] if state is None else state["sum"]
        sums = []
        for t in range(steps):
            assert x.pose is not None
            total = total * ~x.trial_start[:, t, None] + x.pose[:, t]
            sums.append(total)
        kept = n_last_steps(steps, last)
        return torch.cat([x.embedding, torch.stack(sums, 1)], -1)[:, steps - kept :], {"sum": total}


@pytest.fixture(autouse=True)
def odometer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memenvs.agents.memory, "_TABLE", dict(memenvs.agents.memory._TABLE))
    memenvs.agents.memory.register_memory("odometer", Odometer, OdometerConfig, "sums poses")


def policy(space: spaces.Space = SEEN, memory: str = "odometer", **kwargs: Any) -> MemoryPolicy:
    torch.manual_seed(0)
    return MemoryPolicy(space, spaces.Discrete(3), lambda _: 1e-3, memory=memory, **kwargs)


def observations(n: int, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {"pose": torch.randn(n, 3, generator=generator), "range": torch.rand(n, 4, generator=generator)}


def test_the_pose_goes_to_the_memory_and_not_to_the_features() -> None:
    made = policy()
    assert made.features_dim == 4
    seen = observations(2)
    assert torch.equal(made.features(seen), seen["range"])
    assert torch.equal(made.extra_inputs(seen)["pose"], seen["pose"])
    x = made.memory_inputs(
        seen["range"][:, None], torch.zeros(2, 1, dtype=torch.int64), *torch.ones(2, 2, 1, dtype=torch.bool),
        {"pose": seen["pose"][:, None]},
    )  # fmt: skip
    assert torch.equal(x.pose, seen["pose"][:, None])  # type: ignore[arg-type]
    yes = torch.ones(2, dtype=torch.bool)
    acted = made.act(seen, made.initial_state(2), yes, yes)
    assert torch.equal(acted.state["sum"], seen["pose"])
    assert acted.extra_inputs.keys() == {"pose"}
    more = observations(2, seed=1)
    _, state = made.predict({key: value.numpy() for key, value in more.items()}, acted.state, np.array([False, True]))
    assert torch.equal(state["sum"], more["pose"] + torch.tensor([[1.0], [0.0]]) * seen["pose"])


def test_for_other_memories_the_pose_is_a_key_like_the_rest() -> None:
    made, seen = policy(memory="none"), observations(2)
    assert torch.equal(made.features(seen), torch.cat([seen["pose"], seen["range"]], -1))
    assert made.extra_inputs(seen) == {}
    yes = torch.ones(2, dtype=torch.bool)
    assert made.act(seen, made.initial_state(2), yes, yes).extra_inputs == {}


def test_scene_memories_may_do_without_a_pose() -> None:
    space = spaces.Dict({"range": SEEN["range"]})
    made = policy(space, "smt", memory_kwargs={"poses": False})
    seen = {"range": observations(2)["range"]}
    assert made.extra_inputs(seen) == {}
    yes = torch.ones(2, dtype=torch.bool)
    assert made.act(seen, made.initial_state(2), yes, yes).values.shape == (2,)


def test_observations_without_a_pose_are_named() -> None:
    for space, message in (
        (
            spaces.Dict({"range": SEEN["range"]}),
            r"'odometer' needs the key 'pose', \(3,\) of x, y and heading, in",
        ),
        (spaces.Box(0.0, 1.0, (4,), np.float32), "memory 'odometer' needs the key 'pose', .*PoseWrapper adds it"),
        (spaces.Dict({"pose": spaces.Box(0.0, 1.0, (2,)), "range": SEEN["range"]}), "'odometer' needs the key 'pose'"),
        (spaces.Dict({"pose": POSE}), "observations must have a key besides 'pose'"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(space)
    made, yes = policy(), torch.ones(2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"pose must be \(2, 1, 3\), got None"):
        made.step(observations(2)["range"], made.initial_state(2), yes, yes)


def ppo(memory: str, more: dict[str, Any] | None = None, **settings: Any) -> PartialUpdatePPO:
    """A learner of two environments with random poses."""
    policy = {"memory": memory, **({} if more is None else more)}
    base = {"n_steps": 12, "n_updates": 2, "batch_size": 2, "n_epochs": 1, "seed": 0, "device": "cpu"}
    env = DummyVecEnv([lambda: Noise(**POSES)] * 2)
    return PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, **(base | settings))


@pytest.mark.parametrize("frozen", [False, True])
def test_learning_uses_the_poses_of_acting(frozen: bool) -> None:
    model = ppo("odometer", {"freeze_features": frozen})
    _, callback = model._setup_learn(24)
    for _ in range(2):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, 12)  # type: ignore[arg-type]
    poses = model.rollout_buffer.extra_inputs["pose"]
    assert poses.abs().min() > 0
    with torch.no_grad():
        distribution, values, actions = model.evaluate(torch.arange(2), 0, 12)
    torch.testing.assert_close(values, model.rollout_buffer.values)
    torch.testing.assert_close(distribution.log_prob(actions), model.rollout_buffer.log_probs)
    poses += 1.0
    with torch.no_grad():
        assert not torch.allclose(model.evaluate(torch.arange(2), 0, 12)[1], values)
    model.learn(48)


SETTINGS: dict[str, dict[str, Any]] = {
    "smt": {"dim": 8, "heads": 2, "capacity": 4},
    "smt-factorized": {"dim": 8, "heads": 2, "n_centres": 3},
    "smt-causal": {"dim": 8, "heads": 2, "capacity": 4},
    "sm-pooling": {"dim": 8, "capacity": 3},
    "frmqn": {"dim": 8, "capacity": 4},
}


@pytest.mark.parametrize("memory", SETTINGS)
@pytest.mark.slow
def test_scene_memories_learn_with_ppo(memory: str) -> None:
    for prefix_grad in ("full", "detach", "window"):
        prefix = {"prefix_grad": prefix_grad, "prefix_window": 8}
        check_segments(ppo(memory, {"memory_kwargs": SETTINGS[memory]}, n_steps=24, n_updates=3, **prefix))


@pytest.mark.parametrize("memory", SETTINGS)
def test_scene_memories_go_on_from_rollout_to_rollout(memory: str) -> None:
    carried = {"n_steps": 7, "n_updates": 1, "learning_rate": 1e-9, "reset_each_rollout": False}
    check_rollouts(ppo(memory, {"memory_kwargs": SETTINGS[memory]}, **carried))
