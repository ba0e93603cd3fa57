"""Gymnasium, SB3 and sb3-contrib with one id of each family; nightly with all."""

import multiprocessing
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.play import play
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FilterObservation, FlattenObservation, RecordEpisodeStatistics, TimeLimit
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env as make_sb3_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from memenvs.agents.vec_env import make_vec_env
from memenvs.registry import EnvironmentSpec
from memenvs.resets import FOREIGN_OPTIONS, stream_seed
from tests.ids import each_id
from tests.rollouts import any_action, info_of, observation_of, random_actions, same

SHORT = {"max_episode_steps": 4, "trial_episodes": 2}


@pytest.fixture(params=each_id(others=pytest.mark.nightly, loads=pytest.mark.slow))
def spec(request: pytest.FixtureRequest) -> EnvironmentSpec:
    return request.param


@pytest.fixture
def make(spec: EnvironmentSpec) -> Callable[..., gym.Env]:
    """Makes one environment with short episodes."""
    return partial(gym.make, spec.id, **SHORT, **any_action(spec))


def play_episode(env: gym.Env) -> tuple[float, dict]:
    """Return and last info of an episode of random actions."""
    env.reset(seed=0)
    total = 0.0
    for action in random_actions(env, 4, 1)[:, 0]:
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        if terminated or truncated:
            break
    assert terminated or truncated
    return total, info


def test_wrappers_of_one_environment(make):
    for wrap in (RecordEpisodeStatistics, Monitor):
        env = wrap(make())
        total, info = play_episode(env)
        assert (info["episode"]["r"], info["episode"]["l"]) == (pytest.approx(total, abs=1e-5), info["num_steps"])
        env.close()
    assert play_episode(TimeLimit(make(max_episode_steps=9), 2))[1]["num_steps"] <= 2


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_form_equals_gymnasiums(spec, make, mode):
    """Observations, rewards, flags, info and the masks of info, in each autoreset mode."""
    ours = gym.make_vec(spec.id, 3, autoreset_mode=mode, **SHORT, **any_action(spec))
    theirs = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is mode
    pairs = [(ours.reset(seed=4), theirs.reset(seed=4))]
    first = {"reset_mask": np.array([True, False, False])}
    num_ends = 0
    for t, actions in enumerate(random_actions(ours, 14, 3)):
        if t == 2:  # so that not all episodes end together
            assert same(ours.reset(options=first)[0], theirs.reset(options=first)[0])
        pairs.append((ours.step(actions), theirs.step(actions)))
        done = pairs[-1][0][2] | pairs[-1][0][3]
        num_ends += done.sum()
        if mode is AutoresetMode.DISABLED and done.any():
            observations = [env.reset(options={"reset_mask": done})[0] for env in (ours, theirs)]
            assert same(*observations)
    assert num_ends >= 6
    for own, other in pairs:
        for one, reference in zip(own[:-1], other[:-1], strict=True):
            assert same(one, reference)
        assert_info_equal(own[-1], other[-1])
    ours.close()
    theirs.close()


def assert_info_equal(own: dict, reference: dict) -> None:
    """Check that keys and masks are the same, and values where the mask is True."""
    assert own.keys() == reference.keys()
    for key in [key for key in own if not key.startswith("_")]:
        mask = reference["_" + key]
        assert own["_" + key].tolist() == mask.tolist(), key
        if key == "final_info":
            assert_info_equal(own[key], reference[key])
            continue
        for i in np.flatnonzero(mask):
            np.testing.assert_equal(own[key][i], reference[key][i], key)


@pytest.mark.slow
def test_processes_that_are_not_forked_find_an_id_by_its_module() -> None:
    """As in a notebook, whose functions no new process can import: the default from Python 3.14 on."""
    code = (
        "import gymnasium as gym, memenvs\n"
        "make = lambda: gym.make('memenvs:memenvs/Darkroom-v0')\n"
        "env = gym.vector.AsyncVectorEnv([make] * 2, context='forkserver')\n"
        "print(env.reset(seed=3)[1]['seed'].tolist())\n"
        "env.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[3, 4]\n"), done.stderr


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes_of_gymnasium(make):
    single = make()
    observation, info = single.reset(seed=5)
    actions = random_actions(single, 5, 1)[:, 0]
    env = AsyncVectorEnv([make], context="fork")
    first, infos = env.reset(seed=5)
    assert same(observation_of(first, 0), observation)
    assert same(info_of(infos, 0), info)
    for action in actions:
        expected = single.step(action)
        assert same(observation_of(env.step([action])[0], 0), expected[0])
        if expected[2] or expected[3]:
            break
    single.close()
    env.close()


def test_vector_environments_of_stable_baselines3(spec):
    settings = {**SHORT, **any_action(spec)}
    dummy = make_sb3_vec_env(spec.id, 2, seed=stream_seed(0), env_kwargs=settings)
    own = make_vec_env(spec.id, 2, seed=0, **settings)
    boxes = [key for key, space in own.observation_space.spaces.items() if space.dtype == np.float32]
    seen: list[list] = []
    for env in (dummy, own):
        with warnings.catch_warnings():  # both have a record of episodes already
            warnings.filterwarnings("ignore", message="The environment is already wrapped with a `Monitor` wrapper")
            env = VecNormalize(VecMonitor(env), norm_obs=bool(boxes), norm_obs_keys=boxes or None)
        seen.append([env.reset()])
        for actions in random_actions(own, 9, 2):
            observation, rewards, done, infos = env.step(actions)
            assert [("episode" in info) for info in infos] == done.tolist()
            assert all(info["episode"]["l"] == info["num_steps"] for info in infos if "episode" in info)
            seen[-1] += [observation, rewards, done]
            if isinstance(own.action_space, gym.spaces.Discrete):
                seen[-1].append(np.stack(env.env_method("action_masks")))
        env.close()
    assert all(same(one, other) for one, other in zip(*seen, strict=True))


def test_the_player_of_gymnasium_knows_the_keys(monkeypatch):
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


def test_names_of_other_libraries_are_free(make):
    env = make()
    env.reset(seed=0, options=dict.fromkeys(FOREIGN_OPTIONS, False))
    info = env.step(random_actions(env, 1, 1)[0, 0])[-1]
    assert not {"episode", "final_obs", "final_info", "terminal_observation", "TimeLimit.truncated"} & set(info)
    assert not {"action", "reward", "done", "terminated", "truncated", "next"} & set(env.observation_space)  # TorchRL's
    env.close()


def test_episodes_of_make_can_be_longer():
    env = gym.make("memenvs/Darkroom-v0", max_episode_steps=103)
    assert env.unwrapped.max_episode_steps == gym.make(env.spec).unwrapped.max_episode_steps == 103
    assert gym.make("memenvs/Darkroom-v0", max_episode_steps=-1).unwrapped.max_episode_steps == 100
    env.reset(seed=0)
    assert [env.step(4)[3] for _ in range(103)] == [False] * 102 + [True]


#: SB3's encoder of images needs 36 x 36 pixels, which those of FourBoxes do not have; those of homes only take time.
IMAGES = {"ExtObjNav-v0": {"image_size": (36, 48)}} | {
    name: {"image_size": (36, 36)} for name in ("FourBoxes-v0", "FourBoxes-Gap-v0", "ColorRecall-v0", "ViewRecall-v0")
}
SMALL = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "seed": 0}


@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly))
@pytest.mark.slow
def test_learners_on_every_id(spec):
    settings = {"max_episode_steps": 5, "trial_episodes": 2, **any_action(spec), **IMAGES.get(spec.name, {})}
    no_patches = {"filter_keys": ["phase", "move", "moves"]} if spec.family == "faces" else None  # of 16 x 16 pixels
    wrapper = no_patches and FilterObservation
    env = make_sb3_vec_env(spec.id, 2, seed=0, env_kwargs=settings, wrapper_class=wrapper, wrapper_kwargs=no_patches)
    flat = make_sb3_vec_env(spec.id, 2, seed=0, env_kwargs=settings, wrapper_class=FlattenObservation)
    policy = {"net_arch": [8]}
    lstm = {**policy, "lstm_hidden_size": 8}
    is_discrete = isinstance(env.action_space, gym.spaces.Discrete)
    masked = [MaskablePPO("MultiInputPolicy", env, policy_kwargs=policy, **SMALL)] if is_discrete else []
    for model in (
        PPO("MlpPolicy", flat, policy_kwargs=policy, **SMALL),
        RecurrentPPO("MultiInputLstmPolicy", env, policy_kwargs=lstm, **SMALL),
        *masked,  # a masked action would be an error
        PPO("MultiInputPolicy", env, policy_kwargs=policy, **SMALL),
    ):
        model.learn(16)
        assert model.num_timesteps == 16
        assert len(model.ep_info_buffer) >= 2  # the Monitor of SB3 saw the ends
    returns, lengths = evaluate_policy(model, env, 2, return_episode_rewards=True)
    assert len(returns) == 2 and max(lengths) <= 5
    env.close()
    flat.close()


def test_learners_with_a_replay_buffer():
    env = make_sb3_vec_env("memenvs/Darkroom-v0", 2, seed=0, env_kwargs={"max_episode_steps": 5})
    model = DQN("MultiInputPolicy", env, learning_starts=8, buffer_size=64, batch_size=8, train_freq=2, seed=0)
    model.learn(40)
    assert model._n_updates > 0 and model.replay_buffer.size() == 20
    env.close()


@pytest.mark.slow
def test_masks_for_maskable_ppo():
    id = "memenvs/VLN-R2R-v0"
    single = gym.make(id)
    with pytest.raises(RuntimeError, match="action_masks was called before reset"):
        single.unwrapped.action_masks()
    observation, info = single.reset(seed=stream_seed(0))
    assert is_masking_supported(single)
    mask = get_action_masks(single)
    for other in (info["action_mask"], observation["candidate_mask"]):
        assert other.astype(bool).tolist() == mask.tolist()
    assert mask[-1] and not mask.all()
    for env in (make_sb3_vec_env(id, 2, seed=stream_seed(0)), make_vec_env(id, 2, seed=0)):
        env.reset()
        assert get_action_masks(env)[0].tolist() == mask.tolist()
        env.close()


def test_seeds_of_any_size():
    env = gym.make("memenvs/Darkroom-v0")
    goals = set()
    for seed in (0, np.int64(3), 2**62 - 1, 2**62, 2**63, 2**64 - 1, 2**200):
        observation, info = env.reset(seed=seed)
        assert (info["seed"] == seed) == (seed < 2**62)
        assert type(info["seed"]) is int and 0 <= info["seed"] < 2**62
        again, rebuilt = env.reset(seed=info["seed"])
        assert same(observation, again) and same(info, rebuilt)
        goals.add(info["seed"])
    assert len(goals) == 7
    env = gym.make_vec("memenvs/Darkroom-v0", 3)
    seeds = env.reset(seed=2**62 - 1)[1]["seed"]
    assert seeds[0] == 2**62 - 1
    assert seeds[1:].tolist() == [gym.make("memenvs/Darkroom-v0").reset(seed=2**62 + k)[1]["seed"] for k in (0, 1)]
