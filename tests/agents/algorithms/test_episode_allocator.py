"""PPO with an allocator: choosing a strategy, learning with it, saving and acting."""

import functools
import io
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import AllocatorConfig, EpisodeDQN, PartialUpdatePPO, PPOConfig
from memenvs.agents.memory.base import STRATEGY
from memenvs.retention import STRATEGY_NAMES
from tests.agents.corridor import corridor
from tests.agents.learners import Hooks, Noise, act, act_next, check_values, shake, weights

FIFO, MVFO = (STRATEGY_NAMES.index(name) for name in ("fifo", "mvfo"))
N, STEPS = 6, 9


def learner(memory: str = "sat-fifo", *, env: Any = None, seed: int = 0, **settings: Any) -> PartialUpdatePPO:
    """A learner of the corridor; `memory_kwargs` and `allocator` are settings of these."""
    sizes = {"dim": 8, "layers": 1, "heads": 1, "mlp_dim": 8, "capacity": 4} | settings.pop("memory_kwargs", {})
    allocator = AllocatorConfig(**{"strategies": ("fifo", "mvfo"), **settings.pop("allocator", {})})
    base = {"n_steps": STEPS, "n_updates": 1, "batch_size": 3, "n_epochs": 2, "learning_rate": 1e-2, "device": "cpu"}
    policy = {"memory": memory, "memory_kwargs": sizes, "previous_action_dim": 0}
    env = corridor(N) if env is None else env
    learner_settings = base | {"allocator": allocator} | settings
    return PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, seed=seed, **learner_settings)


def save_at(steps: int, file: io.BytesIO) -> Hooks:
    """Saves the learner before the rollout that begins after some steps."""
    return Hooks(rollout_start=lambda own: own.model.save(file) if own.num_timesteps == steps else None)


@pytest.mark.slow
def test_learning_sees_the_strategies_that_acted() -> None:
    """In all positions, with episodes of any length in a row, in each segment, and after episodes were shuffled."""
    by_place = ("fifo", "lifo", "lvfo", "mvfo")
    for memory, more, strategies, updates, prefix in (
        ("sat-fifo", {}, (*by_place, "quota"), 1, "full"),
        ("sat-pm-ph", {"chunk": 2, "top_k": 2}, by_place, 3, "full"),
        ("t-fifo", {}, ("fifo", "lifo"), 3, "detach"),
    ):
        env = corridor(N, delay=5, early=True, trial_episodes=2)
        settings = {"n_steps": 24, "n_updates": updates, "prefix_grad": prefix, "learning_rate": 1e-9}
        allocator = {"strategies": strategies, "epsilon_end": 1.0}
        model = learner(memory, env=env, memory_kwargs=more, allocator=allocator, **settings)
        shake(model)  # what a memory holds changes every probability
        act(model)
        for segment in range(updates):
            check_values(model, 24 // updates * segment, 24 // updates * (segment + 1))
            model.train()
            if segment + 1 < updates:
                act_next(model)
        buffer = model.rollout_buffer
        starts = buffer.trial_start
        chosen = buffer.extra_inputs[STRATEGY]
        assert {STRATEGY_NAMES[i] for i in chosen.unique().tolist()} == set(strategies)
        assert (chosen[:, 1:] == chosen[:, :-1])[~starts[:, 1:]].all()  # the same from one start to the next
        assert starts[:, 1:].any()
        if memory == "sat-fifo":
            buffer.extra_inputs[STRATEGY] = torch.full_like(chosen, FIFO)  # as if the strategy were lost
            with pytest.raises(AssertionError, match="not close"):
                check_values(model, 0, 24)


def test_it_learns_the_undiscounted_return_of_what_has_ended() -> None:
    model = learner(env=corridor(N, trial_episodes=2), n_steps=20)
    act(model)
    episodes, buffer = model._episodes, model.rollout_buffer
    returns = buffer.rewards[:, :18].sum(1)  # two episodes of nine steps
    chosen = buffer.extra_inputs[STRATEGY][:, 0].tolist()
    assert sorted(episodes.finished) == sorted(zip(chosen, returns.tolist(), strict=True))
    assert episodes.begun.total() == 2 * N  # the trials after them are cut off
    task = model.policy.allocator.constant(1)
    before = model.policy.allocator(task).detach()
    fixed = [p.detach().clone() for p in model._trained]
    model._train_allocator([(MVFO, 5.0)] * 40, episodes.begun)
    after = model.policy.allocator(task).detach()
    assert after[0, 1] > before[0, 1] + 0.05
    assert all(torch.equal(p, q) for p, q in zip(model._trained, fixed, strict=True))
    model.train()
    assert episodes.finished == [] and not episodes.begun


def test_stays_that_a_rollout_may_cut_off_do_not_count() -> None:
    """Of those only short ones end, whose returns are not those of the strategy."""
    n_steps = STEPS + 4
    model = learner(env=corridor(N, early=True), n_steps=n_steps)
    act(model)
    episodes, buffer = model._episodes, model.rollout_buffer
    ended, expected = 0, []
    for i in range(N):
        begins = buffer.trial_start[i].nonzero()[:, 0].tolist()
        ends = [*begins[1:], n_steps] if model._trial_start[i] else begins[1:]
        for begin, end in zip(begins, ends, strict=False):
            ended += 1
            if begin <= 4:
                strategy = int(buffer.extra_inputs[STRATEGY][i, begin])
                expected.append((strategy, float(buffer.rewards[i, begin:end].sum())))
    assert N < len(expected) < ended
    assert sorted(episodes.finished) == sorted(expected)


def test_its_log_and_its_exploration() -> None:
    model = learner(allocator={"epsilon_end": 0.0, "epsilon_steps": N * STEPS})
    model.learn(2 * N * STEPS)
    best = int(model.policy.allocator.best(model.policy.allocator.constant(1)))
    act_next(model)  # epsilon is 0 from the second rollout on
    assert model.rollout_buffer.extra_inputs[STRATEGY].unique().tolist() == [best]
    model.train()
    values = model.logger.name_to_value
    assert values[f"allocator/share_{STRATEGY_NAMES[best]}"] == 1.0
    assert {name for name in values if name.startswith("allocator/")} == {
        f"allocator/{kind}_{name}" for kind in ("share", "q") for name in ("fifo", "mvfo")
    }


@pytest.mark.slow
def test_it_resumes_with_the_same_bits_and_acts_with_the_best_strategy() -> None:
    total = 4 * N * STEPS
    whole = learner(env=corridor(N, early=True))
    whole.learn(total)
    file = io.BytesIO()
    stopped = learner(env=corridor(N, early=True))
    stopped.learn(total, callback=save_at(2 * N * STEPS, file))
    again = PartialUpdatePPO.load(file, corridor(N, early=True), device="cpu")
    again.learn(2 * N * STEPS, reset_num_timesteps=False)
    assert torch.equal(weights(again), weights(whole))
    states = [model.policy.optimizer.state_dict()["state"] for model in (again, whole)]
    assert all(torch.equal(states[0][i]["exp_avg"], states[1][i]["exp_avg"]) for i in states[1])
    for best in (0, 1):
        with torch.no_grad():
            again.policy.allocator.network[2].bias.copy_(torch.eye(2)[best] * 100)
        file = io.BytesIO()
        again.save(file)
        loaded = PartialUpdatePPO.load(file, device="cpu")
        observation = {"cue": np.zeros((1, 2), np.float32), "place": np.zeros(1, np.int64)}
        _, state = loaded.predict(observation)
        assert state[STRATEGY].tolist() == [(FIFO, MVFO)[best]]
        _, state = loaded.predict(observation, state, np.array([True]), trial_start=np.array([True]))
        assert state[STRATEGY].tolist() == [(FIFO, MVFO)[best]]


def test_learners_scale_the_memory_before_their_first_update() -> None:
    model = learner()
    act(model)
    check_values(model, 0, STEPS)
    before = model.policy.memory.embed.weight.clone()
    model.train()
    assert model.policy.memory.is_standardized and not torch.equal(model.policy.memory.embed.weight, before)
    sizes = {"dim": 8, "layers": 1, "heads": 1, "mlp_dim": 8, "capacity": 4}
    settings = {"capacity": 12, "episode_steps": STEPS, "updates_per_collect": 2, "batch_size": 2, "decisions": 4}
    policy: dict[str, Any] = {"memory": "sat-fifo", "memory_kwargs": sizes}
    q = EpisodeDQN("MemoryPolicy", corridor(N), policy_kwargs=policy, seed=0, device="cpu", **settings)
    q.learn(2 * N * STEPS)
    assert q._n_updates > 0 and q.policy.memory.is_standardized and q.target.memory.is_standardized


@pytest.mark.learning
def test_the_strategy_that_keeps_the_cue_is_found_by_reinforcement() -> None:
    """With the cue in memory every answer can be right; without it half of them are."""
    model = learner(
        env=corridor(32),
        batch_size=16,
        gamma=1.0,
        normalize_advantage=True,
        clip_range_vf=None,
        max_grad_norm=0.5,
        allocator={"learning_rate": 5e-3},
        memory_kwargs={"dim": 16, "mlp_dim": 16, "standardize": False},
    )
    model.learn(32 * STEPS * 40)
    allocator = model.policy.allocator
    fifo, mvfo = allocator(allocator.constant(1))[0].tolist()
    assert mvfo > fifo + 0.15 and fifo < 0.75, (fifo, mvfo)


class Limited(Noise):
    """Noise with a time limit; one with trials says so in the info of a reset."""

    def __init__(self, horizon: int, has_trials: bool) -> None:
        super().__init__(spaces.Box(-1.0, 1.0, (2,), np.float32), horizon=horizon)
        self.spec = EnvSpec("Limited-v0", max_episode_steps=horizon)
        self.has_trials = has_trials

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed)
        return observation, {"trial_start": True} if self.has_trials else info


def limited(*copies: tuple[int, bool]) -> DummyVecEnv:
    return DummyVecEnv([functools.partial(Limited, *limits) for limits in copies])


def test_what_cannot_work_is_named_before_anything_starts() -> None:
    by_time: dict[str, Any] = {"memory": "t-fifo", "allocator": {"strategies": ["fifo", "lifo"]}}
    endless = DummyVecEnv([lambda: Noise(spaces.Box(-1.0, 1.0, (2,)))])
    for settings, message in (
        ({"memory_kwargs": {"capacity": None}}, "without a capacity: with None nothing is evicted, got memory 'sat-f"),
        ({"memory": "t-fifo"}, r"strategies must be of those .* 't-fifo' .*\['fifo', 'lifo'\], got 'mvfo'"),
        # less than a step for each place
        ({"memory_kwargs": {"capacity": 1}, "allocator": {"strategies": ["fifo", "quota"]}}, "capacity=1.* 'quota'"),
        ({"allocator": {"strategies": ["fifo", "lru"]}}, "allocator.strategies must be of those .* got 'lru'"),
        ({"n_steps": 8}, "n_steps must be at least the 9 that a trial may take with allocator, .* got 8"),
        ({"env": corridor(2, trial_episodes=2)}, "n_steps must be at least the 18 that a trial may take .* got 9"),
        ({"env": corridor(2, trial_episodes=None)}, "allocator needs trials that end, .* got EpisodeLimits"),
        (by_time | {"env": endless, "n_updates": 3}, "allocator needs episodes that end, .* got EpisodeLimits"),
        (by_time | {"env": limited((5, False), (7, False))}, "must be None .* episodes differ, got .*=5,.*=7,"),
    ):
        with pytest.raises(ValueError, match=message):
            learner(**settings)
    mixed = learner(**by_time, env=limited((5, False), (5, True)))
    with pytest.raises(ValueError, match="whose episodes differ, got 'trial_start' in the info of 1 of 2"):
        mixed.learn(18)
    assert mixed.num_timesteps == 0
    learner(**by_time, env=limited((5, False), (5, False))).learn(18)
    with pytest.raises(ValueError, match=r"allocator must be None with a memory without eviction strategies, .* 'gru'"):
        PartialUpdatePPO("MemoryPolicy", corridor(2), policy_kwargs={"memory": "gru"}, allocator={})
    for allocator, message in (
        ({"strategies": ["fifo"]}, "allocator: strategies must be two or more different names, got"),
        ({"strategies": "fifo"}, "allocator: strategies must be a list of names, got 'fifo'"),
        ({"epsilon_end": 1.5}, "allocator: epsilon_end must be 0 ... 1, got 1.5"),
        ({"epsilon": 1}, "unknown setting 'epsilon' of allocator; did you mean 'epsilon_start'"),
        (3, "allocator must be .* got 3"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            PPOConfig(allocator=allocator)
