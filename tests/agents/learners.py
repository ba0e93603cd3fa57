"""Small learners in a small Darkroom, stopped at a chosen point of their first rollout."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from memenvs.agents import PartialUpdatePPO, make_vec_env

MEMORIES: dict[str, dict[str, Any]] = {
    "none": {},
    "gru": {"hidden_dim": 8},
    "lstm": {"hidden_dim": 8},
    "relic": {"layers": 2, "heads": 2, "dim": 8, "mlp_dim": 16, "depth_dropout": 0.0, "max_episode_steps": 8},
    "trxl": {"layers": 2, "heads": 2, "dim": 8, "mlp_dim": 16, "memory_length": 6, "dropout": 0.0},
}
STEPS, SEGMENT, N = 24, 8, 4
ROWS = torch.arange(N)


class Noise(gym.Env):
    """Random observations, rewards for large actions; episodes of `horizon` steps."""

    def __init__(
        self, observation_space: spaces.Space, action_space: spaces.Space | None = None, horizon: int = 5
    ) -> None:
        self.observation_space = observation_space
        self.action_space = spaces.Discrete(2) if action_space is None else action_space
        self.horizon = horizon

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), float(np.sum(action)), False, self.steps >= self.horizon, {}


class Hooks(BaseCallback):
    """Calls functions of the callback at points of learning; a `step` that returns False stops.

    Args:
        **hooks: Functions by point: "training_start", "rollout_start", "step", "rollout_end" or "training_end".
    """

    def __init__(self, step: Callable[[Any], Any] = lambda own: True, **hooks: Callable[[Any], Any]) -> None:
        super().__init__()
        self.step = step
        for point, hook in hooks.items():
            setattr(self, f"_on_{point}", partial(hook, self))

    def _on_step(self) -> bool:
        return self.step(self) is not False


def darkroom(n: int = N, *, horizon: int = 5, episodes: int | None = 10, seed: int | None = None, **more: Any) -> Any:
    """A small Darkroom; episodes of 5 steps, so that no segment of 8 ends with one."""
    settings = {"size": 3, "max_episode_steps": horizon, "trial_episodes": episodes, **more}
    return make_vec_env("memenvs/Darkroom-v0", n, seed=seed, **settings)


def learner(memory: str = "relic", *, env: Any = None, seed: int = 0, **settings: Any) -> PartialUpdatePPO:
    """A learner with 3 updates in a rollout.

    `settings` may have `policy_kwargs` and `memory_kwargs`; the others are of the learner.
    """
    kwargs = MEMORIES[memory] | settings.pop("memory_kwargs", {})
    policy = {"memory": memory, "memory_kwargs": kwargs} | settings.pop("policy_kwargs", {})
    sizes = {"n_steps": STEPS, "n_updates": STEPS // SEGMENT, "batch_size": 2, "n_epochs": 2}
    settings = {"device": "cpu", "learning_rate": 1e-2} | sizes | settings
    return PartialUpdatePPO("MemoryPolicy", env or darkroom(), policy_kwargs=policy, seed=seed, **settings)


def act(model: PartialUpdatePPO, segments: int = 1, *, train: bool = False) -> PartialUpdatePPO:
    """Collect segments of the rollout; learn between two of them if `train`."""
    _, callback = model._setup_learn(10**6)
    for i in range(segments):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.config.n_steps)
        if train and i + 1 < segments:
            model.train()
    return model


def act_next(model: PartialUpdatePPO) -> None:
    """Collect one more segment, after `act`."""
    model.collect_rollouts(model.env, model._init_callback(None), model.rollout_buffer, model.config.n_steps)


def check_segments(model: PartialUpdatePPO) -> None:
    """Compare learning with acting in each segment of a rollout."""
    steps, length = model.config.n_steps, model.config.n_steps // model.config.n_updates
    _, callback = model._setup_learn(2 * steps)
    for begin in range(0, steps, length):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, steps)
        check_values(model, begin, begin + length)
    model.learn(2 * steps)


def check_rollouts(model: PartialUpdatePPO, rollouts: int = 4) -> None:
    """Compare learning with acting where a memory is carried over between rollouts."""
    _, callback = model._setup_learn(10**6)
    for _ in range(rollouts):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.config.n_steps)
        check_values(model, 0, model.config.n_steps)
        model.train()


def check_values(model: PartialUpdatePPO, begin: int, end: int) -> None:
    """Compare values and probabilities at positions `begin` to `end` with those of acting."""
    stored = positions(model, begin, end)
    with torch.no_grad():
        distribution, values, actions = model.evaluate(torch.arange(model.n_envs), begin, end)
    torch.testing.assert_close(values, stored["values"], atol=1e-5, rtol=2e-6)
    torch.testing.assert_close(distribution.log_prob(actions), stored["log_probs"], atol=1e-5, rtol=0)


def positions(model: PartialUpdatePPO, begin: int, end: int) -> dict[str, Tensor]:
    """Content of the buffer at positions `begin` to `end`, in the current order."""
    buffer = model.rollout_buffer
    names = ("log_probs", "values", "rewards", "actions", "episode_start")
    rows = torch.arange(model.n_envs)
    return {name: buffer.ordered(getattr(buffer, name), rows, begin, end) for name in names}


def shake(model: Any, scale: float = 0.3) -> Any:
    """Add noise to the weights, so that each of them matters."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


def double(model: PartialUpdatePPO) -> PartialUpdatePPO:
    """Set the weights to float64 and large values, to compare gradients."""
    policy = model.policy.double()
    policy.optimizer.state.clear()
    features = policy.features
    policy.features = lambda observations: features(observations).double()  # type: ignore[method-assign]
    return shake(model)


def gradients(model: PartialUpdatePPO) -> Tensor:
    """All gradients, side by side."""
    return torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in model._trained])


def weights(model: PartialUpdatePPO) -> Tensor:
    """All weights, side by side."""
    return torch.cat([p.detach().flatten() for p in model.policy.parameters()])
