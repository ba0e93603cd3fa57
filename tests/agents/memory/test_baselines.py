"""ReLIC's baselines through the learner.

Memories are carried over the rollouts of a trial; credit may cross episodes; episodes may be single.

The defects of the release (ReLIC specification, B14 to B17) are named where a test would fail with them.
"""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.rollout_buffer import TrialRolloutBuffer
from memenvs.agents.memory import State
from memenvs.agents.policies.memory_policy import PREVIOUS_ACTION
from tests.agents.learners import ROWS, N, check_rollouts, check_values, learner

CHUNK, HORIZON, TRIAL = 8, 5, 16  # episodes end at 5, 10, 15 and 16: within chunks
CARRIED = ["lstm", "trxl"]


def carried(memory: str, **settings: Any) -> PartialUpdatePPO:
    """A learner whose rollouts are half a trial."""
    env = make_vec_env(
        "memenvs/Darkroom-v0", N, size=3, max_episode_steps=HORIZON, trial_episodes=None, trial_steps=TRIAL
    )
    base = {"n_steps": CHUNK, "n_updates": 1, "reset_each_rollout": False}
    model = learner(memory, env=env, **base | settings)
    model._setup_learn(10**6)
    return model


def collect(model: PartialUpdatePPO) -> None:
    callback = model._init_callback(None)
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.config.n_steps)


def copied(state: State | None) -> State:
    assert state is not None
    return {key: value.clone() for key, value in state.items() if key != PREVIOUS_ACTION}


@pytest.mark.parametrize("memory", CARRIED)
def test_training_passes_use_the_memory_of_acting(memory: str) -> None:
    """B15: with a memory of zeros in gradient passes, ratios are wrong before the first optimiser step."""
    check_rollouts(carried(memory), 5)


@pytest.mark.parametrize("memory", CARRIED)
def test_trials_go_on_over_rollouts_and_advance(memory: str) -> None:
    """B14, B17: trials outlive episodes and chunks; the next one has another layout and an empty memory."""
    model = carried(memory)
    layouts = []
    for chunk in range(6):
        collect(model)
        buffer = model.rollout_buffer
        first_half = chunk % 2 == 0
        assert buffer.trial_start.nonzero().tolist() == ([[i, 0] for i in range(N)] if first_half else [])
        starts = {0, 5} if first_half else {2, 7}
        assert buffer.episode_start[0].nonzero()[:, 0].tolist() == sorted(starts)
        layouts.append([info["layout_id"] for info in model.env.reset_infos])
        check_values(model, 0, CHUNK)
        model.train()
    trials = [info["trial_id"] for info in model.env.reset_infos]
    assert trials == [3] * N  # three whole trials were played; none was cut or repeated
    assert len({tuple(layout) for layout in layouts}) > 1


@pytest.mark.parametrize("memory", CARRIED)
def test_the_memory_is_rebuilt_after_an_update(memory: str) -> None:
    """B15: the chunk is run again, from the memory that it began with, by the new weights."""
    model = carried(memory)
    for _ in range(2):
        begun = copied(model._state) if model._state is not None else None
        collect(model)
        stale = copied(model._state)
        model.train()
        x, _ = model._inputs(ROWS, 0, CHUNK)
        with torch.no_grad():
            _, expected = model.policy.memory(x, begun)  # (None in the first chunk: nothing came before)
        fresh = copied(model._state)
        assert expected is not None
        for key, value in expected.items():
            torch.testing.assert_close(fresh[key], value, atol=1e-5, rtol=1e-5)
        assert any(not torch.allclose(fresh[key].double(), stale[key].double(), atol=1e-6) for key in fresh)


@pytest.mark.parametrize("memory", CARRIED)
def test_each_worker_forgets_when_its_own_layout_changes(memory: str) -> None:
    """B16: one worker begins a trial in the middle of a chunk; its memory, and no other, is emptied at that step."""
    model = carried(memory)
    collect(model)
    model.env.env_method("new_trial", indices=[2])  # from its next episode on
    collect(model)
    buffer = model.rollout_buffer
    assert buffer.trial_start.nonzero().tolist() == [[2, 2]]
    check_values(model, 0, CHUNK)


def test_credit_across_episodes_by_hand() -> None:
    """RL2: only the start of a trial stops the flow."""
    spec = (spaces.Box(-1.0, 1.0, (1,), np.float32), spaces.Discrete(2), torch.device("cpu"))
    buffer = TrialRolloutBuffer(1, 4, *spec)
    buffer.rewards[0] = torch.tensor([1.0, 2.0, 4.0, 8.0])
    buffer.values[0] = torch.tensor([0.5, 1.0, 1.5, 2.0])
    buffer.episode_start[0] = torch.tensor([True, True, False, True])
    buffer.trial_start[0] = torch.tensor([True, False, False, True])
    last = torch.tensor([10.0]), torch.tensor([False])
    got, returns = buffer.advantages(0, 4, *last, 0.5, 0.5, True)
    a3 = 8 + 0.5 * 10 - 2
    a2 = 4 - 1.5  # a trial begins at step 3
    a1 = 2 + 0.5 * 1.5 - 1 + 0.25 * a2
    a0 = 1 + 0.5 * 1.0 - 0.5 + 0.25 * a1  # an episode begins at step 1: credit flows on
    torch.testing.assert_close(got[0], torch.tensor([a0, a1, a2, a3]))
    torch.testing.assert_close(returns, got + buffer.values)
    cut, _ = buffer.advantages(0, 4, *last, 0.5, 0.5)
    torch.testing.assert_close(cut[0], torch.tensor([1 - 0.5, a1, a2, a3]))


def test_credit_at_the_end_of_a_chunk_goes_on_in_the_same_trial() -> None:
    """The value after the chunk counts at the end of an episode, and does not at the end of the trial."""
    model = carried("lstm", credit_across_episodes=True, gae_lambda=0.0, n_steps=5)
    seen: list[Tensor] = []
    original = model._optimizer_step
    model._optimizer_step = lambda rows, begin, end, targets: (
        seen.append(targets) or original(rows, begin, end, targets)
    )  # type: ignore[method-assign]
    for chunk in range(4):  # steps 0 ... 5, 5 ... 10, 10 ... 15, then one step of this trial and four of the next
        collect(model)
        assert bool(model._episode_start.all()) is (chunk < 3)
        buffer = model.rollout_buffer
        rewards, values = buffer.rewards.clone(), buffer.values.clone()
        after = torch.cat([values[:, 1:], model._last_values[:, None]], 1)
        if chunk == 3:
            after[:, 0] = 0.0
        seen.clear()
        model.train()
        torch.testing.assert_close(seen[0][..., 2], rewards + 0.99 * after - values, atol=1e-5, rtol=1e-5)
