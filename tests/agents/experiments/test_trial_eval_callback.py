"""Evaluation while learning: no memory of one trial enters the next."""

import errno
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, TrialEvalCallback, make_vec_env
from memenvs.agents.algorithms.saving import SavableAlgorithm
from memenvs.wrappers import TrialWrapper
from tests.agents.learners import STEPS, N, darkroom, learner, weights

EPISODES, HORIZON = 3, 5  # trials of 15 steps


def watch_memory(model: Any) -> list[list[int]]:
    """Steps in the memory of each environment, after each further step of the policy."""
    lengths: list[list[int]] = []
    step = model.policy.memory.step

    def watched(x: Any, state: Any) -> Any:
        output = step(x, state)
        lengths.append(output[1]["length"].tolist())
        return output

    model.policy.memory.step = watched
    return lengths


def trials(n: int = 2, episodes: int | None = EPISODES) -> Any:
    return darkroom(n, horizon=HORIZON, episodes=episodes, seed=0)


def wrapped(n: int = 1) -> VecEnv:
    settings = {"size": 3, "max_episode_steps": HORIZON, "trial_episodes": EPISODES}
    env = DummyVecEnv([lambda: TrialWrapper(gym.make("memenvs/Darkroom-v0", **settings))] * n)
    env.seed(0)
    return env


@pytest.mark.slow
def test_evaluate_policy_starts_a_trial_where_predict_can_see_it(tmp_path: Path, monkeypatch: Any) -> None:
    state_of = SavableAlgorithm._process_state

    def state_of_earlier_versions(self: Any) -> dict[str, Any]:
        return {key: value for key, value in state_of(self).items() if key != "episode_is_trial"}

    def check(model: PartialUpdatePPO, env: VecEnv, steps: int) -> None:
        lengths = watch_memory(model)
        evaluate_policy(model, env, n_eval_episodes=3, warn=False)
        assert lengths == [[t] for t in list(range(1, steps + 1)) * 3]

    for make, steps in ((wrapped, EPISODES * HORIZON), (lambda n: trials(n, 1), HORIZON)):
        model = learner("relic", env=make(N), memory_kwargs={"max_episode_steps": 64}).learn(N * STEPS)
        assert not model.policy.resets_with_episode
        model.save(tmp_path / "model.zip")
        check(model, make(1), steps)
        check(PartialUpdatePPO.load(tmp_path / "model.zip", device="cpu"), make(1), steps)
        if make is wrapped:  # without the setting, the key of the observation shows it
            with monkeypatch.context() as patch:
                patch.setattr(SavableAlgorithm, "_process_state", state_of_earlier_versions)
                model.save(tmp_path / "earlier.zip")
            check(PartialUpdatePPO.load(tmp_path / "earlier.zip", device="cpu"), make(1), steps)


def test_evaluate_policy_warns_where_predict_cannot_see_trials() -> None:
    model = learner("relic").learn(N * STEPS)
    with pytest.warns(UserWarning, match="cannot see whether a trial starts with it: the memory is kept; evaluate wi"):
        evaluate_policy(model, trials(1), n_eval_episodes=2)
    with pytest.warns(UserWarning, match="cannot see whether a trial starts"):
        model.learn(N * STEPS, EvalCallback(trials(N), n_eval_episodes=2 * N, eval_freq=STEPS, verbose=0))
    evaluate_policy(model, trials(2), n_eval_episodes=2)  # no episode after the first: nothing to see
    observation, state = model.env.reset(), None  # type: ignore[union-attr]
    for t in range(3):  # the caller knows
        _, state = model.predict(observation, state, np.ones(N, bool), trial_start=np.full(N, t == 0))
    assert state["length"].tolist() == [3] * N


def callback(env: Any = None, **kwargs: Any) -> TrialEvalCallback:
    settings = {"n_eval_trials": 3, "eval_freq": STEPS, "verbose": 0, **kwargs}
    return TrialEvalCallback(trials() if env is None else env, **settings)


def test_whole_trials_with_an_empty_memory() -> None:
    for make in (trials, wrapped):
        model = learner("relic", env=make(N), memory_kwargs={"max_episode_steps": 64})
        evaluation = callback(make(2))
        model._setup_learn(1, evaluation)
        model.collect_rollouts(model.env, model._init_callback(None), model.rollout_buffer, STEPS)
        lengths = watch_memory(model)
        results = evaluation._play()
        assert lengths == [[t, t] for t in range(1, EPISODES * HORIZON + 1)] * 2  # two waves
        episodes = 1 if make is wrapped else EPISODES
        assert results.metrics["return"].shape == (3, episodes)
        assert (results.metrics["length"] == EPISODES * HORIZON / episodes).all()


@pytest.mark.slow
def test_evaluations_play_the_same_trials_and_leave_learning_alone(tmp_path: Path) -> None:
    layouts = []

    class Layouts(TrialEvalCallback):
        def _on_step(self) -> bool:
            goes_on = super()._on_step()
            if self.n_calls % STEPS == 0:
                layouts.append(self.last_results.layouts.tolist())  # type: ignore[union-attr]
            return goes_on

    plain, evaluated = learner("relic"), learner("relic")
    plain.learn(3 * N * STEPS)
    evaluation = Layouts(trials(), n_eval_trials=3, eval_freq=STEPS, deterministic=False, verbose=0)
    evaluated.learn(3 * N * STEPS, evaluation)
    assert torch.equal(weights(plain), weights(evaluated))
    assert layouts == [layouts[0]] * 3
    assert len(set(layouts[0])) > 1


@pytest.mark.slow
def test_the_best_model_is_kept_and_scores_are_never_half_written(tmp_path: Path, monkeypatch: Any) -> None:
    scores = iter([1.0, 3.0, 2.0, 2.0])
    best: list[torch.Tensor] = []

    class Scored(TrialEvalCallback):
        def _play(self) -> Any:
            results = super()._play()
            results.metrics["return"][:] = next(scores)
            if results.metrics["return"][0, 0] == 3.0:
                best.append(weights(self.model))  # type: ignore[arg-type]
            return results

    made = Scored(
        trials(), None, None, 3, STEPS, log_path=str(tmp_path / "log"), best_model_save_path=str(tmp_path), verbose=0
    )
    model = learner("relic").learn(3 * N * STEPS, made)
    assert (made.best_mean_reward, made.last_mean_reward) == (3.0, 2.0)
    loaded = PartialUpdatePPO.load(tmp_path / "best_model.zip", device="cpu")
    assert torch.equal(weights(loaded), best[0])
    assert not torch.equal(weights(model), best[0])
    with np.load(tmp_path / "log" / "evaluations.npz") as file:
        assert file["timesteps"].tolist() == [N * STEPS, 2 * N * STEPS, 3 * N * STEPS]
        assert file["results"].tolist() == [[1.0] * 3, [3.0] * 3, [2.0] * 3]
        assert file["ep_lengths"].tolist() == [[float(HORIZON)] * 3] * 3

    def fill_disk(file: Path, **_: Any) -> None:
        file.write_bytes(b"PK")
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(np, "savez", fill_disk)
    with pytest.raises(OSError, match=r"disk full.*evaluations\.npz"):
        model.learn(N * STEPS, made, reset_num_timesteps=False)
    with np.load(tmp_path / "log" / "evaluations.npz") as file:
        assert len(file["timesteps"]) == 3


@pytest.mark.slow
def test_other_callbacks_around_it() -> None:
    for point in ("callback_on_new_best", "callback_after_eval"):
        model = learner("none").learn(10**6, callback(**{point: StopTrainingOnRewardThreshold(-1.0)}))
        assert model.num_timesteps == N * STEPS
    replay = EpisodeDQN(
        "MemoryPolicy", trials(), capacity=2, batch_size=2, episode_steps=HORIZON, updates_per_collect=1, device="cpu"
    )
    evaluation = callback(eval_freq=HORIZON)
    replay.learn(4 * HORIZON, evaluation)
    assert evaluation.last_results.metrics["return"].shape == (3, EPISODES)


@pytest.mark.slow
def test_refusals(tmp_path: Path) -> None:
    for setting in ("n_eval_trials", "eval_freq", "trial_steps"):
        with pytest.raises(ValueError, match=f"{setting} must be an integer of at least 1"):
            callback(**{setting: 0})
    with pytest.raises(ValueError, match="trial_steps must be given where trials do not end by themselves"):
        callback(trials(2, None))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"trial_steps must be None with an itinerary, .* got 9"):
        callback(make_vec_env("Darkroom-v0", 2, itinerary="AB"), trial_steps=9)
    endless = callback(trials(2, None), trial_steps=2 * HORIZON)  # type: ignore[arg-type]
    learner("relic").learn(N * STEPS, endless)
    assert endless.last_results.metrics["return"].shape == (3, 2)
    with pytest.raises(ValueError, match="trial_steps must be enough for an episode of each trial, got 2"):
        learner("relic").learn(N * STEPS, callback(trial_steps=2))
    with pytest.raises(ValueError, match=r"has learned with 'position', which the environment does not"):
        learner("relic").learn(N * STEPS, callback(make_vec_env("CartPole-v1", 2, seed=0)))
    cartpole = make_vec_env("CartPole-v1", 1, seed=0)
    with pytest.raises(TypeError, match=r"needs a learner of memenvs\.agents, got PPO"):
        PPO("MlpPolicy", cartpole, device="cpu", n_steps=16, batch_size=16).learn(16, callback())
    model = PartialUpdatePPO(
        "MemoryPolicy", cartpole, n_steps=16, n_updates=1, seed=0, device="cpu", policy_kwargs={"memory": "none"}
    )
    alone = callback(cartpole, eval_freq=16)
    model.learn(16, alone)
    returns = alone.last_results.metrics["return"]
    assert returns.shape == (3, 1)  # without trials each episode is one
    again, other = callback(cartpole, eval_freq=16), callback(cartpole, eval_freq=16, seed=9)
    for evaluation in (again, other):
        evaluation.init_callback(model)
        evaluation.last_results = evaluation._play()
    assert not np.array_equal(again.last_results.metrics["return"], other.last_results.metrics["return"])
