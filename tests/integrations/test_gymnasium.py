"""Gymnasium: its wrappers, vector environments and player, over every id.

`tests/test_contract.py` has Gymnasium's checker, `tests/test_other_libraries.py` its records and autoreset modes.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.play import play
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import (
    Autoreset,
    FilterObservation,
    FlattenObservation,
    FrameStackObservation,
    NormalizeReward,
    TimeAwareObservation,
    TransformReward,
)

from memenvs.core import TrialVectorEnv
from memenvs.registry import EnvironmentSpec
from tests.ids import each_id
from tests.rollouts import any_action, random_actions, same

SHORT = {"max_episode_steps": 3, "trial_episodes": 2}


@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly, loads=pytest.mark.slow))
def test_wrappers_give_observations_of_their_space(spec: EnvironmentSpec) -> None:
    env = gym.make(spec.id, **SHORT, **any_action(spec))
    first, action = next(iter(env.observation_space)), random_actions(env, 1, 1)[0, 0]
    for wrap in (
        FlattenObservation,
        TimeAwareObservation,
        NormalizeReward,
        Autoreset,
        lambda env: FrameStackObservation(env, 2),
        lambda env: FilterObservation(env, [first]),
        lambda env: TransformReward(env, np.tanh),
    ):
        wrapped = wrap(env)
        observation, _ = wrapped.reset(seed=0)
        assert wrapped.observation_space.contains(observation)
        if isinstance(wrapped, FlattenObservation):
            inner = gym.spaces.unflatten(env.observation_space, observation)
            assert inner.keys() == env.observation_space.keys()
        num_ends = 0
        for _ in range(4):
            observation, _, terminated, truncated, _ = wrapped.step(action)
            assert wrapped.observation_space.contains(observation)
            num_ends += terminated or truncated
            if (terminated or truncated) and not isinstance(wrapped, Autoreset):
                break
        assert num_ends > 0
    env.close()


def test_every_mode_of_make_vec() -> None:
    default = gym.make_vec("memenvs/Darkroom-v0", 2, **SHORT)
    assert default.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    first = default.reset(seed=1)[0]
    for mode, cls in ((None, TrialVectorEnv), ("vector_entry_point", TrialVectorEnv), ("sync", SyncVectorEnv)):
        env = gym.make_vec("memenvs/Darkroom-v0", 2, vectorization_mode=mode, **SHORT)
        assert type(env.unwrapped) is cls
        assert same(env.reset(seed=1)[0], first)


def test_processes_and_their_autoreset_modes() -> None:
    for mode in AutoresetMode:
        env = gym.make_vec(
            "memenvs/Darkroom-v0",
            2,
            vectorization_mode="async",
            vector_kwargs={"autoreset_mode": mode, "context": "forkserver"},
            **SHORT,
        )
        ours = gym.make_vec("memenvs/Darkroom-v0", 2, autoreset_mode=mode, **SHORT)
        assert isinstance(env.unwrapped, AsyncVectorEnv)
        assert same(env.reset(seed=0)[0], ours.reset(seed=0)[0])
        for _ in range(9):
            theirs, own = env.step(np.array([0, 2])), ours.step(np.array([0, 2]))
            assert all(same(one, other) for one, other in zip(theirs[:4], own[:4], strict=True))
            done = own[2] | own[3]
            if mode is AutoresetMode.DISABLED and done.any():
                options = {"reset_mask": done}
                assert same(env.reset(options=dict(options))[0], ours.reset(options=options)[0])
        env.close()


def test_the_player_knows_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame", reason="needs pygame: pip install 'memenvs[play]'")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    key = {"key": pygame.K_1}
    quit_after = [
        [],  # of the reset
        [pygame.event.Event(pygame.KEYDOWN, key)],
        [pygame.event.Event(pygame.KEYUP, key)],
        [pygame.event.Event(pygame.KEYDOWN, {"key": pygame.K_ESCAPE})],
    ]
    monkeypatch.setattr(pygame.event, "get", lambda: quit_after.pop(0))
    steps = []
    env = gym.make("memenvs/Darkroom-v0", render_mode="rgb_array", **SHORT)
    play(env, fps=1000, seed=3, wait_on_player=True, callback=lambda *step: steps.append(step))
    assert [step[2] for step in steps] == [1] and steps[0][-1]["num_steps"] == 1 and steps[0][-1]["seed"] == 3
