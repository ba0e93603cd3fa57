"""Stable-Baselines3 and sb3-contrib learn on every id, through SB3's own `make_vec_env`.

`tests/test_other_libraries.py` has SB3's wrappers of vector environments, and masks of actions.
"""

from __future__ import annotations

import pytest
from gymnasium.spaces import Discrete
from gymnasium.wrappers import FilterObservation, FlattenObservation
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from memenvs.registry import EnvironmentSpec
from tests.ids import each_id
from tests.rollouts import any_action

#: SB3's encoder of images needs 36 x 36 pixels, which those of FourBoxes do not have; those of homes only take time.
IMAGES = {"FourBoxes-v0": {"image_size": (36, 36)}, "ExtObjNav-v0": {"image_size": (36, 48)}} | {
    name: {"image_size": (36, 36)} for name in ("ColorRecall-v0", "ViewRecall-v0")
}
SMALL = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "seed": 0}


@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly))
@pytest.mark.slow
def test_learners_on_every_id(spec: EnvironmentSpec) -> None:
    settings = {"max_episode_steps": 5, "trial_episodes": 2, **any_action(spec), **IMAGES.get(spec.name, {})}
    no_patches = {"filter_keys": ["phase", "move", "moves"]} if spec.family == "faces" else None  # of 16 x 16 pixels
    wrapper = no_patches and FilterObservation
    env = make_vec_env(spec.id, 2, seed=0, env_kwargs=settings, wrapper_class=wrapper, wrapper_kwargs=no_patches)
    flat = make_vec_env(spec.id, 2, seed=0, env_kwargs=settings, wrapper_class=FlattenObservation)
    is_discrete = isinstance(env.action_space, Discrete)
    policy = {"net_arch": [8]}
    lstm = {**policy, "lstm_hidden_size": 8}
    masked = [MaskablePPO("MultiInputPolicy", env, policy_kwargs=policy, **SMALL)] if is_discrete else []
    for model in (
        PPO("MultiInputPolicy", env, policy_kwargs=policy, **SMALL),
        PPO("MlpPolicy", flat, policy_kwargs=policy, **SMALL),
        RecurrentPPO("MultiInputLstmPolicy", env, policy_kwargs=lstm, **SMALL),
        *masked,
        A2C("MultiInputPolicy", env, policy_kwargs=policy, n_steps=4, seed=0),
    ):
        model.learn(16)
        assert model.num_timesteps == 16
        assert len(model.ep_info_buffer) >= 2  # the Monitor of SB3 saw the ends
    returns, lengths = evaluate_policy(model, env, 2, return_episode_rewards=True)
    assert len(returns) == 2 and max(lengths) <= 5
    env.close()
    flat.close()


def test_learners_with_a_replay_buffer() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, env_kwargs={"max_episode_steps": 5})
    model = DQN("MultiInputPolicy", env, learning_starts=8, buffer_size=64, batch_size=8, train_freq=2, seed=0)
    model.learn(40)
    assert model._n_updates > 0 and model.replay_buffer.size() == 20
    env.close()
