"""Masked actions: the last observation of an episode may leave none."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents import PartialUpdatePPO
from tests.agents.algorithms.q_worlds import copies, q_learner


class Board(gym.Env):
    """Three cells; an action fills a free one and is worth its number.

    The full board ends the episode.

    Args:
        terminates: If True the full board terminates the episode; otherwise it truncates it.
        late: If True the episode goes on with a full board.
    """

    observation_space = spaces.Dict({"board": spaces.MultiBinary(3), "candidate_mask": spaces.MultiBinary(3)})
    action_space = spaces.Discrete(3)

    def __init__(self, terminates: bool = True, late: bool = False) -> None:
        self.terminates, self.late = terminates, late

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        self.board = np.zeros(3, np.int8)
        return self._observe(), {}

    def step(self, action: int) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        assert not self.board[action]
        self.board[action] = 1
        over = bool(self.board.all()) and not self.late
        return self._observe(), float(action), over and self.terminates, over and not self.terminates, {}

    def _observe(self) -> dict[str, np.ndarray]:
        return {"board": self.board.copy(), "candidate_mask": 1 - self.board}


@pytest.mark.parametrize(
    ("terminates", "n_step", "policy"),
    [
        (True, 1, {"memory": "none", "net_arch": [16]}),
        (False, 2, {"memory": "gru", "memory_kwargs": {"hidden_dim": 8}}),
    ],
)
@pytest.mark.slow
def test_q_learning_values_a_full_board_as_0(terminates: bool, n_step: int, policy: dict[str, Any]) -> None:
    settings = {"n_step": n_step, "gamma": 1.0, "episode_steps": 3, "learning_rate": 0.02}
    model = q_learner(copies(Board, terminates=terminates), policy, **settings)
    model.learn(3 * (32 + 4 * 4))
    assert model._n_updates > 0
    rows = torch.arange(32)
    last = torch.full((32, 1), 2)
    with torch.no_grad():
        assert not model.q_values(model.policy, rows, last + 1).any()
        taken = model.q_values(model.policy, rows, last).gather(2, model.replay.actions(rows, last)[..., None])
        steps = torch.arange(3).expand(32, -1)
        is_free = model.replay.read(rows, steps).observations["candidate_mask"] > 0
        assert torch.equal(model.q_values(model.policy, rows, steps) > -torch.inf, is_free)
    np.testing.assert_allclose(taken.flatten(), model.replay.actions(rows, last).flatten(), atol=0.15)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_ppo_learns_with_full_boards(bootstrap: bool) -> None:
    for terminates in (True, False):
        model = PartialUpdatePPO(
            "MemoryPolicy",
            copies(Board, terminates=terminates),
            n_steps=12,
            n_updates=2,
            batch_size=2,
            bootstrap_truncated=bootstrap,
            policy_kwargs={"memory": "gru", "memory_kwargs": {"hidden_dim": 4}},
            seed=0,
            device="cpu",
        ).learn(4 * 24)
        assert all(bool(torch.isfinite(parameter).all()) for parameter in model.policy.parameters())


def test_acting_where_no_action_is_left_is_refused() -> None:
    policy = {"memory": "gru", "memory_kwargs": {"hidden_dim": 4}}
    message = r"candidate_mask must allow at least one action in each observation that is acted on"
    ppo = PartialUpdatePPO("MemoryPolicy", copies(Board, late=True), policy_kwargs=policy, n_steps=12, n_updates=1)
    q_learning = q_learner(copies(Board, late=True), policy)
    for model in (ppo, q_learning):
        with pytest.raises(ValueError, match=message):
            model.learn(100)
        full = {"board": np.ones(3, np.int8), "candidate_mask": np.zeros(3, np.int8)}
        with pytest.raises(ValueError, match=message):
            model.predict(full)
