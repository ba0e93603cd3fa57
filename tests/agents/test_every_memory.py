"""Every memory in every learner: the last step teaches what to keep of the first."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor

from memenvs.agents import MEMORIES, DQNConfig, EpisodeDQN, PartialUpdatePPO
from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.memory import Memory, StepInputs
from memenvs.agents.papers.sat.config import TOKEN_MEMORIES
from memenvs.agents.papers.sat.learner import make_prediction
from memenvs.query_task import make_query_task
from tests.agents.learners import Noise

#: What any memory needs.
SPACE = spaces.Dict(
    {
        "pose": spaces.Box(-1.0, 1.0, (3,), np.float32),
        "place": spaces.Discrete(3),
        "move": spaces.Discrete(4),
        "view": spaces.Box(-1.0, 1.0, (8,), np.float32),
    }
)
#: Steps of an episode.
T = 8


def watch(memory: Memory, method: str = "forward") -> list[Tensor]:
    """Let gradients pass through the features of the last step alone.

    Returns:
        The inputs of what is learned from, of which there are none yet.
    """
    compute: Callable[..., Any] = getattr(memory, method)
    inputs: list[Tensor] = []

    def watched(x: StepInputs, *arguments: Any, **keywords: Any) -> Any:
        if not torch.is_grad_enabled():
            return compute(x, *arguments, **keywords)
        embedding = x.embedding if x.embedding.requires_grad else x.embedding.requires_grad_()
        embedding.retain_grad()
        inputs.append(embedding)
        output = compute(replace(x, embedding=embedding), *arguments, **keywords)
        features = output if method == "features_at" else output[0]
        is_last = torch.zeros(features.shape[:2], dtype=torch.bool)
        is_last[:, -1:] = True
        if method == "features_at":
            is_last = arguments[0] == T - 1
        features.register_hook(lambda gradient: gradient * is_last[..., None])
        return output

    setattr(memory, method, watched)
    return inputs


def reaches_first_step(inputs: list[Tensor]) -> bool:
    """True if a gradient of the last step has come to the first one."""
    assert inputs and all(embedding.shape[1] >= T for embedding in inputs)
    return any(embedding.grad is not None and bool(embedding.grad[:, 0].any()) for embedding in inputs)


def ppo(memory: str, precision: str) -> bool:
    env = DummyVecEnv([lambda: Noise(SPACE, horizon=T) for _ in range(2)])
    policy = {"memory": memory, "size": "small"}
    config = {"n_steps": T, "n_updates": 1, "n_epochs": 1, "precision": precision}
    model = PartialUpdatePPO("MemoryPolicy", env, seed=0, device="cpu", policy_kwargs=policy, **config)
    assert sum(parameter.numel() for parameter in model.policy.parameters()) < 300_000
    return learned(model, watch(model.policy.memory))


def dqn(memory: str, precision: str) -> bool:
    env = DummyVecEnv([lambda: Noise(SPACE, horizon=T) for _ in range(2)])
    sizes = {"capacity": 2, "episode_steps": T, "updates_per_collect": 1, "batch_size": 2, "decisions": T}
    config = DQNConfig(**sizes, precision=precision)
    policy = {"memory": memory, "size": "small"}
    model = EpisodeDQN("MemoryPolicy", env, config, seed=0, device="cpu", policy_kwargs=policy)
    return learned(model, watch(model.policy.memory, "features_at"))


def learned(model: Any, inputs: list[Tensor]) -> bool:
    """Learn from one rollout, which changes the memory's weights."""
    before = [parameter.detach().clone() for parameter in model.policy.memory.parameters()]
    model.learn(2 * T)
    after = model.policy.memory.parameters()
    assert not before or any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    return reaches_first_step(inputs)


def supervised(memory: str, precision: str) -> bool:
    """One frame of each of 18 visits, then the question for one of them."""
    task = make_query_task("memenvs/RoomBallet-MVFO-v0", {})
    policy: dict[str, Any] = {"memory": memory, "dim": 16, "every": 32}
    if memory in TOKEN_MEMORIES:
        policy |= {"layers": 1, "mlp_dim": 16}
    elif memory != "none":
        policy |= {"size": "small", "memory_kwargs": {"steps": 20} if memory == "window" else {}}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make_prediction(task, policy)
    learner = SupervisedLearner(model, SupervisedConfig(batch_size=4, precision=precision), 2)
    if memory in TOKEN_MEMORIES:  # which have no state: their reader's first layer takes values from the tokens alone
        learner.step()
        gradient = model.model.reader.layers[0].value.weight.grad
        return bool(gradient.any())
    inputs = watch(model.model.memory)
    learner.step()
    return reaches_first_step(inputs)


@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("float32", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("learner", [ppo, dqn, supervised], ids=lambda learner: learner.__name__)
@pytest.mark.parametrize("memory", MEMORIES)
def test_the_last_step_teaches_what_to_keep_of_the_first(memory, learner, precision):
    """Also in half precision."""
    assert learner(memory, precision) == (memory != "none")
