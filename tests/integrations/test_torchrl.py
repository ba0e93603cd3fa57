"""TorchRL: single and vector environments of every id, with the starts of trials."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from memenvs.registry import EnvironmentSpec
from tests.ids import each_id
from tests.rollouts import any_action

pytest.importorskip("torchrl", reason="needs torchrl")
from torchrl.data import Unbounded
from torchrl.envs import GymWrapper, check_env_specs, default_info_dict_reader

pytestmark = pytest.mark.filterwarnings("default")  # those of TorchRL

N, STEPS = 3, 8
SHORT = {"max_episode_steps": 3, "trial_episodes": 2}
#: Entries of `info` that tensors can hold, and that are no observations.
READ = {"trial_start": torch.bool, "trial_id": torch.int64, "episode_index": torch.int64}


def vector_env(spec: EnvironmentSpec) -> GymWrapper:
    """The batch-native form, which TorchRL resets by itself, with the counters of trials."""
    settings = {**SHORT, **any_action(spec)}
    env = GymWrapper(gym.make_vec(spec.id, N, autoreset_mode="Disabled", **settings), categorical_action_encoding=True)
    specs = [Unbounded((N,), dtype=dtype) for dtype in READ.values()]
    return env.set_info_dict_reader(default_info_dict_reader(list(READ), specs))


@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly))
@pytest.mark.slow
def test_rollout_of_a_vector_environment(spec: EnvironmentSpec) -> None:
    """Every bit of a rollout, the last observation of each episode included, is that of single environments."""
    env = vector_env(spec)
    check_env_specs(env)
    env.set_seed(4)
    torch.manual_seed(0)
    rollout = env.rollout(STEPS, break_when_any_done=False)
    assert rollout.batch_size == (N, STEPS)
    num_ends = 0
    for i in range(N):
        single = gym.make(spec.id, **SHORT, **any_action(spec))
        single.reset(seed=4 + i)
        observation, info = single.reset()  # set_seed has reset once, and rollout again
        for t in range(STEPS):
            now = rollout[i, t]
            for key in single.observation_space:
                assert np.array_equal(now[key].numpy(), observation[key]), key
            assert {key: now[key].item() for key in READ} == {key: info[key] for key in READ}
            observation, reward, terminated, truncated, info = single.step(now["action"].numpy())
            for key in single.observation_space:
                assert np.array_equal(now["next", key].numpy(), observation[key]), key
            assert now["next", "reward"].item() == pytest.approx(reward)
            ends = now["next", "terminated"].item(), now["next", "truncated"].item()
            assert ends == (terminated, truncated)
            if terminated or truncated:
                num_ends += 1
                observation, info = single.reset()
        single.close()
    assert num_ends >= 2 * N
    env.close()
