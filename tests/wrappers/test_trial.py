import gymnasium as gym
import numpy as np
import pytest

from memenvs.wrappers import TrialWrapper


class Countdown(gym.Env):
    """Ends after `length` steps: by itself or by its clock."""

    observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=3, terminates=True):
        self.length, self.terminates, self.t, self.seeds = length, terminates, 0, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.seeds.append(seed)
        return np.zeros(1, np.float32), {"options": options}

    def step(self, action):
        self.t += 1
        over = self.t >= self.length
        observation = np.full(1, self.t, np.float32)
        return observation, float(self.t), over and self.terminates, over and not self.terminates, {"options": None}


def play(env, seed=0):
    """Steps until the end; a list of (t, reward, episode_start, terminated, truncated)."""
    observation, info = env.reset(seed=seed)
    rows = [(int(observation["observation"][0]), 0.0, int(observation["episode_start"]), False, False)]
    while not (rows[-1][3] or rows[-1][4]):
        assert len(rows) < 20, "the trial does not end"
        observation, reward, terminated, truncated, info = env.step(0)
        assert info["episode_start"] == bool(observation["episode_start"])
        t, start = int(observation["observation"][0]), int(observation["episode_start"])
        rows.append((t, reward, start, terminated, truncated))
    return rows


@pytest.mark.parametrize("terminates", [True, False])
def test_episodes_are_fused_by_hand(terminates):
    rows = play(TrialWrapper(Countdown(3, terminates), trial_episodes=2))
    assert rows == [
        (0, 0.0, 1, False, False),
        (1, 1.0, 0, False, False),
        (2, 2.0, 0, False, False),
        (0, 3.0, 1, False, False),  # reward of the last step, observation of the next episode
        (1, 1.0, 0, False, False),
        (2, 2.0, 0, False, False),
        (3, 3.0, 0, terminates, not terminates),
    ]


def test_trial_steps_truncate():
    rows = play(TrialWrapper(Countdown(3), trial_steps=5))
    assert [row[0] for row in rows] == [0, 1, 2, 0, 1, 2]
    assert rows[-1][3:] == (False, True)
    rows = play(TrialWrapper(Countdown(3), trial_steps=6))
    assert [row[0] for row in rows] == [0, 1, 2, 0, 1, 2, 3]
    assert rows[-1][3:] == (True, True)  # the task ended it on the step that used up the trial


def test_every_trial_has_all_its_steps_and_episodes():
    for limits, length in (({"trial_steps": 5}, 6), ({"trial_episodes": 2}, 7)):
        env = TrialWrapper(Countdown(3), **limits)
        for seed in (0, None, 1):
            assert len(play(env, seed=seed)) == length
            env.reset()  # and a trial that is cut short
            for _ in range(4):
                env.step(0)


def test_info():
    env = TrialWrapper(Countdown(2), trial_episodes=2)
    assert env.observation_space["episode_start"] == gym.spaces.Discrete(2)
    _, info = env.reset(seed=0)
    assert (info["trial_start"], info["episode_start"], info["trial_id"], info["episode_index"]) == (True, True, 0, 0)
    _, _, _, _, info = env.step(0)
    assert (info["trial_start"], info["episode_start"], info["trial_id"], info["episode_index"]) == (False, False, 0, 0)
    _, _, _, _, info = env.step(0)
    assert (info["trial_start"], info["episode_start"], info["trial_id"], info["episode_index"]) == (False, True, 0, 1)
    assert info["last_obs"]["observation"][0] == 2
    assert info["last_obs"]["episode_start"] == 0
    own = ("trial_start", "episode_start", "trial_id", "episode_index")
    assert [info["last_info"][key] for key in own] == [False, False, 0, 0]
    _, info = env.reset()
    assert (info["trial_id"], info["episode_index"]) == (1, 0)


def test_seeds_of_a_trial():
    env = TrialWrapper(Countdown(1), trial_episodes=2)
    play(env, seed=5)
    env.reset()
    env.step(0)
    first, second = env.unwrapped.seeds[:2], env.unwrapped.seeds[2:]
    assert first == [5, 5]
    assert second == [np.random.default_rng([5, 1]).integers(2**31)] * 2
    other = TrialWrapper(Countdown(1), trial_episodes=2, same_seed=False)
    play(other, seed=5)
    assert other.unwrapped.seeds == [5, None]
    drawn = [TrialWrapper(Countdown(1), trial_episodes=2) for _ in range(2)]
    for env in drawn:
        play(env, seed=None)
        play(env, seed=None)
    (first, again, third, _), (another, *_) = (env.unwrapped.seeds for env in drawn)
    assert first == again and len({first, third, another}) == 3


@pytest.mark.parametrize("same_seed", [True, False])
def test_a_trial_is_chosen_by_its_number(same_seed):
    in_turn = TrialWrapper(Countdown(1), trial_episodes=1)
    expected = [play(in_turn, seed) and in_turn.unwrapped.seeds[-1] for seed in (5, None, None, None)]
    env = TrialWrapper(Countdown(1), trial_episodes=2, same_seed=same_seed)
    _, info = env.reset(seed=5, options={"trial": 2})
    assert (info["trial_id"], info["options"]) == (2, None)
    assert env.step(0)[4]["trial_id"] == 2
    env.reset(options={"trial": 1})
    env.step(0)
    second = [expected[2], expected[1]] if same_seed else [None, None]
    assert env.unwrapped.seeds == [expected[2], second[0], expected[1], second[1]]
    _, info = env.reset(options={"trial": np.int64(2)})
    assert info["trial_id"] == 2 and type(info["trial_id"]) is int
    for value in (-1, 1.5, "2"):
        with pytest.raises(ValueError, match=f"option 'trial' must be an integer of at least 0 or None, got {value!r}"):
            env.reset(seed=1, options={"trial": value})
    _, info = env.reset()
    assert info["trial_id"] == 3
    assert env.unwrapped.seeds[-1] == (np.random.default_rng([5, 3]).integers(2**31) if same_seed else None)


def test_seed_and_number_name_a_trial():
    """In `info`, if they determine it; the environment's own entries of these names do not count."""

    class WithSeed(Countdown):
        def reset(self, *, seed=None, options=None):
            observation, info = super().reset(seed=seed)
            return observation, {**info, "seed": "mine", "trial_id": "mine"}

    env = TrialWrapper(WithSeed(1), trial_episodes=2)
    infos = [env.reset(seed=5)[1], env.step(0)[4], env.reset()[1]]
    assert [(info["seed"], info["trial_id"]) for info in infos] == [(5, 0), (5, 0), (5, 1)]
    drawn = TrialWrapper(Countdown(1), trial_episodes=2)
    assert drawn.reset()[1]["seed"] == drawn.unwrapped.seeds[0]
    differing = TrialWrapper(WithSeed(1), trial_episodes=2, same_seed=False)
    assert "seed" not in differing.reset(seed=5)[1]
    ours = TrialWrapper(gym.make("memenvs/Darkroom-v0", trial_episodes=3), same_seed=False)
    assert ours.reset(seed=5)[1]["seed"] == 5


def test_options_hold_for_every_inner_episode():
    env = TrialWrapper(Countdown(1), trial_episodes=2)
    _, info = env.reset(seed=0, options={"goal": 3})
    assert info["options"] == {"goal": 3}
    assert env.step(0)[4]["options"] == {"goal": 3}
    _, info = env.reset()
    assert info["options"] is None


def test_our_trials_are_whole_gym_episodes(make):
    env = TrialWrapper(make("darkroom"))  # 3 episodes of 7 steps
    _, info = env.reset(seed=4)
    for trial in range(3):
        assert (info["trial_id"], info["trial_start"], info["episode_index"]) == (trial, True, 0)
        goals, ends = {tuple(info["goal"])}, []
        for _ in range(21):
            _, _, terminated, truncated, info = env.step(0)
            goals.add(tuple(info["goal"]))
            ends.append(terminated or truncated)
        assert ends == [False] * 20 + [True]
        assert len(goals) == 1
        assert info["episode_index"] == 2
        _, info = env.reset()


def test_bad_settings(make):
    with pytest.raises(ValueError, match=r"trials of .* would never end; pass trial_episodes or trial_steps"):
        TrialWrapper(Countdown())
    with pytest.raises(ValueError, match="would never end"):
        TrialWrapper(make("darkroom", trial_episodes=None))
    for name in ("trial_episodes", "trial_steps"):
        for value in (0, 2.5, "3", True):
            with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1 or None, got {value!r}"):
                TrialWrapper(Countdown(), **{name: value})
