"""Seeds, trials to resume, logged episodes and learning rates, by hand."""

import io
import math
from pathlib import Path
from typing import Any

import pytest

from memenvs.agents import PartialUpdatePPO, PPOConfig, make_vec_env
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.schedules import cosine_schedule, linear_schedule
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
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


def test_linear_by_hand() -> None:
    for initial, final, warmup, step, rate in (
        (2.0, None, 0, 0, 2.0),
        (2.0, 0.5, 0, 0, 2.0),
        (2.0, 0.5, 0, 40, 0.6 * 2.0 + 0.4 * 0.5),
        (2.0, 0.5, 0, 300, 0.5),
        (2.0, None, 3, 0, 2.0 / 4),  # the warm-up rises in four equal steps
        (2.0, None, 3, 2, 2.0 * 3 / 4),
        (2.0, None, 3, 3, 2.0),
        (2.0, 0.5, 3, 2, (0.98 * 2.0 + 0.02 * 0.5) * 3 / 4),  # both at a time
    ):
        assert linear_schedule(initial, final, warmup, step, 100) == pytest.approx(rate)


def test_cosine_by_hand() -> None:
    for initial, final, warmup, step, total, rate in (
        (2.0, 0.5, 0, 0, 100, 2.0),
        (2.0, 0.5, 0, 25, 100, 0.5 + 0.75 * (1 + math.cos(math.pi / 4))),
        (2.0, 0.5, 0, 100, 100, 0.5),
        (2.0, 0.5, 0, 900, 100, 0.5),
        (2.0, 0.5, 20, 0, 120, 0.002),  # a thousandth
        (2.0, 0.5, 20, 19, 120, 2.0 * (0.001 + 0.999 * 19 / 20)),
        (2.0, 0.5, 20, 20, 120, 2.0),
        (2.0, None, 20, 70, 120, 2.0),
        (2.0, 0.5, 20, 20, 20, 2.0),  # the run ends with the warm-up, or before
        (2.0, 0.5, 20, 21, 20, 0.5),
    ):
        assert cosine_schedule(initial, final, warmup, step, total) == pytest.approx(rate), (step, total)


def test_learners_use_them() -> None:
    settings: Any = {"learning_rate": 2.0, "final_learning_rate": 0.5, "warmup_steps": 20}
    for step in (5, 70):
        assert PPOConfig(**settings).learning_rate_at(step, 120) == cosine_schedule(2.0, 0.5, 20, step, 120)
        assert SupervisedConfig(**settings).learning_rate_at(step, 120) == linear_schedule(2.0, 0.5, 20, step, 120)
