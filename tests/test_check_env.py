"""`check_env` names each fault of tasks that are broken on purpose."""

import threading
from dataclasses import make_dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.actions import draw_actions
from memenvs.core import BatchTask, TrialEnv, TrialVectorEnv
from memenvs.testing import ContractError, check_env
from memenvs.testing.comparison import difference

LENGTH = 4


class Cue(BatchTask):
    """A cue is shown at the first step; the last action must be the same.

    A layout shifts the cues.
    """

    option_names = ("cue",)

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Dict(
            {"cue": gym.spaces.Box(-1.0, 1.0, (1,), np.float32), "step": gym.spaces.Box(0, LENGTH, (), np.int64)}
        )
        self.action_space = gym.spaces.Discrete(2)
        self.max_episode_steps = LENGTH
        self.num_layouts = 3
        self.layout, self.cue, self.steps = (np.zeros(num_envs, np.int64) for _ in range(3))

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        self.layout[i] = layout

    def begin_episode(self, i: int, rng: np.random.Generator, options: Any) -> None:
        self.cue[i] = options.get("cue", (rng.integers(2) + self.layout[i]) % 2)
        self.steps[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.steps += active
        ended = active & (self.steps == LENGTH)
        return (ended & (actions == self.cue)).astype(float), ended

    def observe(self, out: Any, env_mask: np.ndarray) -> None:
        out["cue"][env_mask, 0] = ((2 * self.cue - 1) * (self.steps == 0))[env_mask]
        out["step"][env_mask] = self.steps[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        return {"cue": self.cue, "maze": self.layout}

    def oracle_actions(self) -> np.ndarray:
        return self.cue.copy()


class Dial(Cue):
    """As the cue, but the answer is a vector: the nearer it is, the better."""

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        super().__init__(num_envs)
        self.action_space = gym.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 3], np.float32))

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert actions.dtype == np.float32
        self.steps += active
        ended = active & (self.steps == LENGTH)
        return np.where(ended, -abs(actions - self.oracle_actions()).sum(1).astype(float), 0.0), ended

    def oracle_actions(self) -> np.ndarray:
        return np.column_stack([2 * self.cue - 1, 3 * self.cue]).astype(np.float32)


@pytest.mark.slow
def test_a_task_without_optional_methods_passes() -> None:
    check_env(Dial, trial_episodes=2)
    check_env(Cue, trial_episodes=2)
    check_env(gym.make("memenvs/Darkroom-v0", size=3, render_mode="rgb_array"))


def test_vectors_as_actions() -> None:
    env, single = TrialVectorEnv(Dial, 2), TrialEnv(Dial)
    assert (env.action_space.shape, env.action_space.dtype) == ((2, 2), np.float32)
    env.reset(seed=0)
    single.reset(seed=0)
    for action, error, message in (
        ([[0.0, 0.0]], ValueError, r"actions must have the shape \(2, 2\), got \(1, 2\)"),
        ([["a", "b"]] * 2, TypeError, "actions must be numbers, got <U1"),
        ([[0, 0], [0, 3.5]], ValueError, r"actions must be in 0 \.\.\. 3, got 3.5 at \[1, 1\]"),
        ([[0, 0], [np.nan, 0]], ValueError, r"actions must be in -1 \.\.\. 1, got nan at \[1, 0\]"),
    ):
        with pytest.raises(error, match=message):
            env.step(action)
    with pytest.raises(ValueError, match=r"action must have the shape \(2,\), got an array of shape \(\)"):
        single.step(0)
    for made in (env, single):
        with pytest.raises(TypeError, match="action_masks needs Discrete actions, got Box"):
            made.action_masks()
    assert single.get_keys_to_action() == {}
    for _ in range(LENGTH):
        oracle = single.oracle_action()
        assert oracle.dtype == np.float32 and (oracle == env.oracle_actions()[0]).all()
        _, reward, terminated, _, _ = single.step(oracle.tolist())  # any numbers
    assert (reward, terminated) == (0.0, True)
    drawn = draw_actions(env.single_action_space, 500, np.random.default_rng(0))
    np.testing.assert_allclose([drawn.min(0), drawn.max(0), drawn.mean(0)], [[-1, 0], [1, 3], [0, 1.5]], atol=0.1)


class LeakedScore(Cue):
    def info(self):  # the sum over all episodes since the environment was made
        self.total = getattr(self, "total", np.zeros(self.num_envs))
        return {**super().info(), "total": self.total}

    def step(self, actions, active):
        rewards, ended = super().step(actions, active)
        self.info()["total"] += rewards
        return rewards, ended


class OwnGenerator(Cue):
    def __init__(self, num_envs, **kwargs):
        super().__init__(num_envs)
        self.rng = np.random.default_rng(0)

    def begin_episode(self, i, rng, options):
        super().begin_episode(i, self.rng, options)


class UnseededGenerator(Cue):
    def begin_episode(self, i, rng, options):
        super().begin_episode(i, np.random.default_rng(), options)


class WrongSpace(Cue):
    def observe(self, out, env_mask):
        super().observe(out, env_mask)
        out["cue"][env_mask] *= 2


class WrongMask(Cue):
    def action_masks(self):
        return np.ones(2, bool)


class EmptyMask(Cue):
    def action_masks(self):
        return np.zeros((self.num_envs, 2), bool)


class StepsTheIdle(Cue):
    def step(self, actions, active):
        rewards, ended = super().step(actions, active)
        self.cue[~active] = 1 - self.cue[~active]
        return rewards, ended


class KeepsOldNumbers(Cue):
    def observe(self, out: Any, env_mask: np.ndarray) -> None:
        first = env_mask & (self.steps == 0)
        out["cue"][first, 0] = (2 * self.cue - 1)[first]
        out["step"][env_mask] = self.steps[env_mask]


class WritesAllRows(Cue):
    def observe(self, out, env_mask):
        super().observe(out, np.ones(self.num_envs, bool))


class WrongReward(Cue):
    def step(self, actions, active):
        rewards, ended = super().step(actions, active)
        return rewards.astype(np.float32), ended


class EndlessReward(Cue):
    def step(self, actions, active):
        rewards, ended = super().step(actions, active)
        return np.where(ended, np.inf, rewards), ended


class LimitEndsEpisode(Cue):
    config_type = make_dataclass("Limit", [("max_episode_steps", int, 9)], frozen=True)

    def __init__(self, num_envs, **kwargs):
        super().__init__(num_envs)
        self.observation_space["step"] = gym.spaces.Box(0, 99, (), np.int64)
        self.max_episode_steps = kwargs.get("max_episode_steps", 9)

    def step(self, actions, active):
        rewards, _ = super().step(actions, active)
        return rewards, active & (self.steps >= self.max_episode_steps)


class KeysComeLater(Cue):
    def info(self):
        return super().info() | ({"late": self.steps} if self.steps.any() else {})


class ScalarInfo(Cue):
    def info(self):
        return {**super().info(), "best": 1.0}


class TakenKey(Cue):
    def info(self):
        return {**super().info(), "num_steps": self.steps}


class NoLayouts(Cue):
    def begin_trial(self, i, layout, rng):
        self.layout[i] = 0


class ForgetsOption(Cue):
    def begin_episode(self, i, rng, options):
        super().begin_episode(i, rng, {})


class OptionStays(Cue):
    def begin_episode(self, i, rng, options):
        self.kept = {**getattr(self, "kept", {}), **({i: options["cue"]} if "cue" in options else {})}
        super().begin_episode(i, rng, {"cue": self.kept[i]} if i in self.kept else {})


class OptionChangesDraws(Cue):
    def begin_episode(self, i, rng, options):
        cue = options["cue"] if "cue" in options else rng.integers(2)
        super().begin_episode(i, rng, {"cue": cue})
        self.layout[i] = self.layout[i] % 3 + 3 * rng.integers(300)


class OracleChanges(Cue):
    def oracle_actions(self):
        self.steps += 1
        return self.cue.copy()


class WrongOracle(Cue):
    def oracle_actions(self):
        return self.cue + 5


class WrongPicture(Cue):
    def render(self, i):
        return np.zeros((8, 8), np.uint8)


class NoPickle(Cue):
    def __init__(self, num_envs, **kwargs):
        super().__init__(num_envs)
        self.lock = threading.Lock()


class PickleForgets(Cue):
    def __getstate__(self):
        return {**self.__dict__, "cue": 1 - self.cue}


class OneWorld(Cue):
    def __init__(self, num_envs, **kwargs):
        super().__init__(num_envs)
        self.num_layouts = 1000

    def begin_episode(self, i, rng, options):
        super().begin_episode(i, rng, {"cue": 0, **options})

    def info(self):
        return {"cue": self.cue, "layout_id": np.zeros(self.num_envs, np.int64)}


class ViewOfState(Cue):
    def step(self, actions, active):
        self.rewards = getattr(self, "rewards", np.zeros(self.num_envs))
        self.rewards[:], ended = super().step(actions, active)
        return self.rewards, ended


FAULTS = {
    LeakedScore: r"after others .* differs .* alone: info of step 0: 'total' is 1\.0 and not 0\.0",
    OwnGenerator: r"environment \d of a batch differs from a single one with its seed: observation of step \d+: 'cue'",
    UnseededGenerator: r"the same seed again: observation of step \d+: 'cue' is -?\d\.0 and not -?\d\.0 at \[0\]",
    WrongSpace: r"observation 'cue' of step 0, environment 0, is not in Box.*: float32 \(1,\): \[-?2\.0\]",
    WrongMask: r"action_masks of step 0 must be bool or int8 \(3, 2\), got bool \(2,\)",
    EmptyMask: r"action_masks of step 0 leave no action",
    StepsTheIdle: r"a step with active \[True, False, False\] changed an environment that is not active",
    KeepsOldNumbers: r"observe left a number of an earlier step in its buffer: observation of step 1: 'cue' is -?1\.0",
    WritesAllRows: r"observe wrote row \d, which env_mask leaves out: 'cue' is",
    WrongReward: r"rewards of step 1 must be float64 \(N,\), got float32 \(4,\)",
    EndlessReward: r"rewards of step 4 must be finite, got \[inf",
    KeysComeLater: r"info of step 1 has other keys than before: \['late'\]",
    ScalarInfo: r"info\['best'\] must be an array \(N, \.\.\.\), got 1\.0",
    TakenKey: r"TakenKey\.info must not set 'num_steps', which others set",
    NoLayouts: r"num_layouts is 3, but layouts 0 to 2 are the same; without layouts it must be 1",
    ForgetsOption: r"option 'cue', mode NextStep, step \d+: is \d and not \d",
    OptionStays: r"options go on after the next reset: (observation|info)",
    OptionChangesDraws: r"options \{'cue': \d\}, as seed 20 draws them, change what .*: info of step 0: 'maze' is",
    OracleChanges: r"oracle_actions, render, draw_map or info change the episode: observation of step 1: 'step' is 2",
    LimitEndsEpisode: r"a limit of 5 steps changes terminated of step 5",
    WrongOracle: r"oracle_actions of step 1 are not possible",
    WrongPicture: r"render of step 1 must be uint8 \(H, W, 3\), got uint8 \(8, 8\)",
    NoPickle: r"NoPickle cannot be pickled, as other processes need: TypeError",
    PickleForgets: r"a pickled copy differs: info of step 6: 'cue' is \d and not \d",
    OneWorld: r"ten seeds must give 5 worlds or more, got 1",
    ViewOfState: r"reward of step \d+ was changed by a later step",
}


@pytest.mark.parametrize("task", FAULTS, ids=lambda task: task.__name__)
@pytest.mark.slow
def test_each_fault_is_named(task: type[BatchTask]) -> None:
    with pytest.raises(ContractError, match=FAULTS[task]):
        check_env(task, trial_episodes=2)


def test_what_a_task_declares_is_checked_when_it_is_made() -> None:
    for name, value, error, message in (
        ("observation_space", gym.spaces.Box(0, 1, (1,)), TypeError, "Cue.observation_space must be a Dict, got Box"),
        (
            "observation_space",
            gym.spaces.Dict({"cue": gym.spaces.Discrete(2), "more": gym.spaces.Tuple([gym.spaces.Discrete(2)])}),
            TypeError,
            r"Cue.observation_space\['more'\] must be one array or a Text, got Tuple",
        ),
        ("action_space", gym.spaces.MultiBinary(2), TypeError, "Cue.action_space must be a Discrete or a Box, got Mul"),
        ("action_space", gym.spaces.Box(0, np.inf, (2,)), ValueError, "Cue.action_space must be a float32 Box with"),
        ("action_space", gym.spaces.Box(0, 1, (2, 2)), ValueError, "Cue.action_space must be a float32 Box with one"),
        ("action_space", gym.spaces.Discrete(2, start=1), ValueError, "Cue.action_space must start at 0"),
        ("max_episode_steps", 0, ValueError, "Cue.max_episode_steps must be an integer of at least 1, got 0"),
        ("num_envs", 7, ValueError, r"Cue.num_envs must be the \d that it was made for, got 7"),
        ("observe", None, TypeError, "Cue.observe must be a method, got None"),
        ("oracle_actions", [0], TypeError, r"Cue.oracle_actions must be a method, got \[0\]"),
        ("action_names", ("left",) * 3, ValueError, "Cue.action_names must be 2, one for each Discrete action"),
        ("option_names", ["cue"], TypeError, r"Cue.option_names must be a tuple, got \['cue'\]"),
        ("option_names", ("layout",), ValueError, "Cue.option_names must not contain 'layout', an option of every id"),
        (
            "config_type",
            make_dataclass("Settings", [("task", str, "easy")]),
            ValueError,
            "Cue.config_type must not have 'task', an argument of every environment",
        ),
    ):

        class Faulty(Cue):
            def __init__(self, num_envs: int, **kwargs: Any) -> None:
                super().__init__(num_envs)
                setattr(self, name, value)  # noqa: B023

        Faulty.__name__ = "Cue"
        with pytest.raises(error, match=message):
            check_env(Faulty)


def test_actions_of_a_box_have_no_names() -> None:
    class Pushed(Dial):
        action_names = ("push", "pull")

    with pytest.raises(ValueError, match=r"Pushed\.action_names must be 0, one for each Discrete action, or none"):
        check_env(Pushed)


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'CartPole-v1' has none; see gymnasium\.utils\.env_checker"):
        check_env("CartPole-v1")
    with pytest.raises(TypeError, match=r"env must be an id, a BatchTask or an environment of gym\.make"):
        check_env(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match=r"env must be an id, a BatchTask class or an environment of gym\.make, got"):
        check_env(Cue(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="task must be a subclass of BatchTask"):
        check_env(int)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown id 'memenvs/Lightroom-v0'"):
        check_env("memenvs/Lightroom-v0")


def test_words_for_differences() -> None:
    for value, expected, words in (
        ({"a": np.nan}, {"a": np.nan}, None),
        ({"a": 1}, {"b": 1}, "keys are ['a'] and not ['b']"),
        ({"a": {"b": 2}}, {"a": {"b": 3}}, "'a' 'b' is 2 and not 3"),
        (np.zeros(2), np.zeros(3), "is float64 (2,) and not float64 (3,)"),
        (np.zeros(2), np.zeros(2, np.float32), "is float64 (2,) and not float32 (2,)"),
        (np.array([1.0, 2.0]), np.array([1.0, 4.5]), "is 2.0 and not 4.5 at [1], by at most 2.5 in 1 of 2 numbers"),
        (0.0, -0.0, "differs in the sign of a zero or the bits of a NaN"),
        (np.array(["a"], object), np.array(["b"], object), "is ['a'] and not ['b']"),
        (True, False, "is True and not False"),
    ):
        assert difference(value, expected) == words
