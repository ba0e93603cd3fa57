"""Seeds, generators, trials to resume and logged episodes of a learner, by hand."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.distributed import Processes
from memenvs.resets import SEED_LIMIT, stream_seed
from tests.agents.algorithms.q_worlds import Ring, copies, q_learner
from tests.agents.learners import MEMORIES, STEPS, N, darkroom, learner


def saved(model: MemoryAlgorithm) -> io.BytesIO:
    file = io.BytesIO()
    model.save(file)
    return file


def test_seeds_of_environments() -> None:
    """Environment i of process r of P with N environments each has the seed (seed P + r) N + i."""
    for processes, first in ((Processes(), 3 * N), (Processes(0, 2), 6 * N), (Processes(1, 2), 7 * N)):
        model = learner("none")
        model.processes = processes
        model.set_random_seed(3)
        model.env.reset()
        assert [info["seed"] for info in model.env.reset_infos] == [first + i for i in range(N)]


def test_trials_to_resume() -> None:
    model = learner("gru", env=darkroom(episodes=2, seed=8), seed=None)
    assert model.has_resumable_trials and model.at_rollout_boundary  # nothing was played
    model.learn(N * STEPS)
    assert model._next_trials() == {
        "seed": [stream_seed(8) + i for i in range(N)],
        "trial": [3] * N,
    }  # the third, of 10 steps, has begun
    infos = model.env.reset_infos
    for first, step in ((stream_seed(8), 2), (SEED_LIMIT - 1, 1), (-2, 1), (stream_seed(8), 1)):
        for i, info in enumerate(infos):
            info["seed"] = first + step * i
        # only the last are consecutive seeds that a file may hold
        assert model.has_resumable_trials == model.at_rollout_boundary == ((first, step) == (stream_seed(8), 1))
    cart = learner("gru", env=make_vec_env("CartPole-v1", N, seed=0)).learn(N * STEPS)
    assert not cart.has_resumable_trials
    loaded = PartialUpdatePPO.load(saved(model), darkroom(N, episodes=2), device="cpu")
    assert loaded._next_trials() == {"seed": [stream_seed(8) + i for i in range(N)], "trial": [3] * N}
    other = PartialUpdatePPO.load(saved(model), darkroom(N - 1, episodes=2), device="cpu")
    assert other._resume_trials is None  # of another number of environments


def test_logged_episodes() -> None:
    model = q_learner(copies(Ring), updates_per_collect=1)
    model._setup_learn(1)
    for buffer in (model.ep_info_buffer, model.ep_success_buffer):
        assert buffer is not None and len(buffer) == 0
    model.dump_logs()
    assert "rollout/ep_rew_mean" not in model.logger.name_to_value
    model.ep_info_buffer.extend([{"r": 1.0, "l": 4}, {"r": 4.0, "l": 8}])
    model.ep_success_buffer.extend([True, False, False, False])
    model._record_episodes()
    logged = model.logger.name_to_value
    means = [logged[f"rollout/{name}"] for name in ("ep_rew_mean", "ep_len_mean", "success_rate")]
    assert means == [2.5, 6.0, 0.25]


def test_a_checkpoint_is_that_of_these_settings(tmp_path: Path) -> None:
    model = learner("gru")
    model.save(tmp_path / "model")
    file, policy = tmp_path / "model.zip", {"memory": "gru", "memory_kwargs": MEMORIES["gru"]}
    PartialUpdatePPO.check_checkpoint(file, model.config, policy, N)
    for settings, n_envs, message in (
        (policy, N + 1, "n_envs must be 5, got 4"),
        (policy | {"memory": "lstm"}, N, "memory must be lstm, got gru"),
        (policy | {"memory_kwargs": {"hidden_dim": 9}}, N, r"memory_kwargs\.hidden_dim must be 9, got 8"),
        (policy | {"memory_kwargs": {"layers": 1}}, N, r"memory_kwargs\.\w+ must be (1|left out), got (8|left out)"),
    ):
        with pytest.raises(ValueError, match=rf"model\.zip: is of another run: {message}"):
            PartialUpdatePPO.check_checkpoint(file, model.config, settings, n_envs)
    with pytest.raises(ValueError, match="algorithm must be 'EpisodeDQN', got 'PartialUpdatePPO'"):
        q_learner(copies(Ring)).check_checkpoint(file, model.config, policy, N)
