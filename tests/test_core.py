import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.task import BatchTask, load_task, make_task, metric_values, setting_names
from tests.rollouts import same


class Corridor(BatchTask):
    """A corridor of cells 0 ... 4; cell 4 gives reward 1 and terminates.

    Action 1 steps ahead, 0 stays. The layout is observed; `start` is an option.
    """

    option_names = ("start",)

    def __init__(self, num_envs: int, *, length: int = 4) -> None:
        self.num_envs, self.length = num_envs, length
        self.observation_space = gym.spaces.Dict(
            {"cell": gym.spaces.Box(0, length, (1,), np.int64), "layout": gym.spaces.Discrete(3)}
        )
        self.action_space = gym.spaces.Discrete(2)
        self.max_episode_steps, self.num_layouts = 10, 3
        self.cell, self.start, self.layout = np.zeros((3, num_envs), np.int64)
        self.trial_draw, self.episode_draw = np.zeros((2, num_envs))
        self.num_closed = 0

    def begin_trial(self, i, layout, rng):
        self.layout[i], self.trial_draw[i] = layout, rng.random()

    def begin_episode(self, i, rng, options):
        start = options.get("start", 0)
        if not 0 <= start <= self.length:
            raise ValueError(f"option 'start' must be in 0 ... {self.length}, got {start}")
        self.start[i] = self.cell[i] = start
        self.episode_draw[i] = rng.random()

    def step(self, actions, active):
        self.cell += np.where(active, actions, 0)
        arrived = active & (self.cell >= self.length)
        return arrived.astype(np.float64), arrived

    def observe(self, out, env_mask):
        out["cell"][env_mask, 0] = self.cell[env_mask]
        out["layout"][env_mask] = self.layout[env_mask]

    def info(self):
        draws = np.column_stack([self.trial_draw, self.episode_draw])
        return {"success": self.cell >= self.length, "start": self.start, "draws": draws}

    def oracle_actions(self):
        return np.ones(self.num_envs, np.int64)

    def render(self, i):
        return np.full((2, 2, 3), self.cell[i], np.uint8)

    def close(self):
        self.num_closed += 1


def cells(env, actions):
    """Cell, terminated, truncated after each action."""
    rows = []
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        rows.append((int(observation["cell"][0]), terminated, truncated))
    return rows


def test_episode_by_hand():
    env = TrialEnv(Corridor)
    observation, info = env.reset(seed=3)
    assert observation["cell"].tolist() == [0]
    assert (info["seed"], info["trial_id"], info["episode_index"], info["num_steps"]) == (3, 0, 0, 0)
    assert info["trial_start"] is True
    assert cells(env, [1, 0, 1, 1]) == [(1, False, False), (1, False, False), (2, False, False), (3, False, False)]
    observation, reward, terminated, truncated, info = env.step(1)
    assert (observation["cell"].tolist(), reward, terminated, truncated) == ([4], 1.0, True, False)
    assert (info["num_steps"], info["success"], info["is_success"], info["trial_start"]) == (5, True, True, False)


def test_time_limit():
    env = TrialEnv(Corridor, max_episode_steps=4)
    env.reset(seed=0)
    assert cells(env, [0, 0, 0, 0])[-1] == (0, False, True)
    env.reset()
    assert cells(env, [1, 1, 1, 1])[-1] == (4, True, True)  # the task and the time limit
    assert TrialEnv(Corridor)._batch.max_episode_steps == 10


def test_randomness_depends_on_numbers_and_not_on_order():
    env = TrialEnv(Corridor, trial_episodes=2)
    infos = [env.reset(seed=8)[1]] + [env.reset()[1] for _ in range(5)]
    assert [(info["trial_id"], info["episode_index"]) for info in infos] == [(t, e) for t in range(3) for e in range(2)]
    for info in infos:
        trial_rng = np.random.default_rng([8, info["trial_id"], 0])
        assert info["layout_id"] == trial_rng.integers(3)
        assert info["draws"][0] == trial_rng.random()
        assert info["draws"][1] == np.random.default_rng([8, info["trial_id"], 1 + info["episode_index"]]).random()
    for layout in range(3):  # given, it changes no other draw
        assert env.reset(seed=8, options={"layout": layout})[1]["draws"].tolist() == infos[0]["draws"].tolist()


def test_without_a_seed_a_new_one_is_drawn():
    infos = [TrialEnv(Corridor).reset()[1] for _ in range(2)]
    assert infos[0]["seed"] != infos[1]["seed"]
    rebuilt = TrialEnv(Corridor).reset(seed=infos[0]["seed"])[1]
    assert rebuilt["draws"].tolist() == infos[0]["draws"].tolist()


def trial_numbers(env, resets):
    infos = [env.reset()[1] for _ in range(resets)]
    return [(info["trial_id"], info["episode_index"], info["trial_start"]) for info in infos]


def test_trial_ends_after_its_episodes():
    env = TrialEnv(Corridor, trial_episodes=2)
    env.reset(seed=0)
    assert not env.trial_over
    assert trial_numbers(env, 1) == [(0, 1, False)]
    assert env.trial_over
    assert trial_numbers(env, 3) == [(1, 0, True), (1, 1, False), (2, 0, True)]
    assert trial_numbers(TrialEnv(Corridor, trial_episodes=1), 2) == [(0, 0, True), (1, 0, True)]
    env = TrialEnv(Corridor)  # without limits it never ends
    assert [numbers[:2] for numbers in trial_numbers(env, 30)] == [(0, e) for e in range(30)]
    env.new_trial()
    assert trial_numbers(env, 1) == [(1, 0, True)]


def test_trial_steps_truncate_the_episode_in_progress():
    env = TrialEnv(Corridor, trial_steps=6)
    env.reset(seed=0)
    assert cells(env, [1, 1, 1, 1])[-1] == (4, True, False)
    env.reset()
    assert cells(env, [0, 0]) == [(0, False, False), (0, False, True)]
    assert env.trial_over
    assert trial_numbers(env, 1) == [(1, 0, True)]
    assert cells(env, [0] * 6)[-1] == (0, False, True)


def test_reasons_for_the_end_of_a_trial_may_coincide():
    for settings in ({"trial_episodes": 1}, {"trial_episodes": 1, "trial_steps": 2}, {"trial_steps": 2}):
        env = TrialEnv(Corridor, max_episode_steps=2, **settings)
        env.reset(seed=0)
        assert cells(env, [0, 0]) == [(0, False, False), (0, False, True)]
        env.new_trial()
        assert env.trial_over
        with pytest.raises(RuntimeError, match="after the end of the episode"):
            env.step(0)
        assert trial_numbers(env, 1) == [(1, 0, True)]
    env = TrialVectorEnv(Corridor, 2)
    env.reset(seed=0)
    env.new_trial(np.array([False, True]))
    env.new_trial(np.array([False, True]))
    assert env.trial_over.tolist() == [False, True]
    assert env.reset()[1]["trial_id"].tolist() == [0, 1]


def test_trial_options():
    env = TrialEnv(Corridor, trial_episodes=5)
    env.reset(seed=0)

    def numbers(**options):
        info = env.reset(options=options)[1]
        return info["trial_id"], info["episode_index"], info["trial_start"]

    assert numbers(new_trial=False) == (0, 1, False)
    assert numbers(new_trial=True) == (1, 0, True)
    assert numbers(trial=7) == (7, 0, True)
    assert numbers(trial=7) == (7, 0, True)
    assert numbers() == (7, 1, False)
    assert numbers(episode_index=4) == (7, 4, False)
    assert numbers() == (8, 0, True)
    assert numbers(trial=3, episode_index=2) == (3, 2, True)
    last = 2**62 - 1
    assert numbers(trial=last, episode_index=last) == (last, last, True)
    assert env.trial_over  # it is beyond the last episode of the trial
    assert numbers(trial=0) == (0, 0, True)


def test_another_layout_starts_a_trial_and_the_same_one_does_not():
    env = TrialEnv(Corridor)
    layout = env.reset(seed=0)[1]["layout_id"]
    assert env.reset(options={"layout": layout})[1]["episode_index"] == 1
    info = env.reset(options={"layout": (layout + 1) % 3})[1]
    assert (info["trial_id"], info["episode_index"], info["layout_id"]) == (1, 0, (layout + 1) % 3)


def test_task_and_time_limit_may_end_an_episode_together():
    for mode, now in (("SameStep", [3, 3]), ("NextStep", [4, 3])):
        env = TrialVectorEnv(Corridor, 2, max_episode_steps=1, autoreset_mode=mode)
        env.reset(seed=0, options={"start": 3})
        observation, _, terminated, truncated, info = env.step(np.array([1, 0]))
        assert (terminated.tolist(), truncated.tolist()) == ([True, False], [True, True])
        assert observation["cell"][:, 0].tolist() == now
        assert info["num_steps"].tolist() == ([0, 0] if mode == "SameStep" else [1, 1])
        if mode == "SameStep":
            assert [final["cell"].tolist() for final in info["final_obs"]] == [[4], [3]]
        else:
            observation, _, terminated, truncated, info = env.step(np.array([1, 1]))
            assert (info["num_steps"].tolist(), (terminated | truncated).tolist()) == ([0, 0], [False, False])
            assert observation["cell"][:, 0].tolist() == [3, 3]


def test_disabled_by_hand():
    env = TrialVectorEnv(Corridor, 2, autoreset_mode="Disabled")
    env.reset(seed=0, options=[{"start": 3}, {}])
    env.step(np.array([1, 1]))
    with pytest.raises(RuntimeError, match=r"after the end of the episode of environment \[0\]"):
        env.step(np.array([1, 1]))
    observation, info = env.reset(options={"reset_mask": np.array([True, False]), "start": 2})
    assert observation["cell"][:, 0].tolist() == [2, 1]
    assert info["num_steps"].tolist() == [0, 1]
    for mask in (np.zeros(2, bool), np.ones(3, bool), np.array([1, 0]), True):
        with pytest.raises(ValueError, match=r"reset_mask must be a bool array of shape \(2,\) with a True in it"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="reset_mask must be all True at the first reset"):
        TrialVectorEnv(Corridor, 2).reset(options={"reset_mask": np.array([True, False])})


def test_reset_of_some_does_not_change_the_others():
    env = TrialVectorEnv(Corridor, 3, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(np.array([1, 0, 1]))
    before = env.task.info()["draws"].copy()
    observation, info = env.reset(seed=[50, 60, 70], options={"reset_mask": np.array([False, True, False])})
    assert info["seed"].tolist() == [0, 60, 2]
    assert observation["cell"][:, 0].tolist() == [1, 0, 1]
    assert (info["draws"][[0, 2]] == before[[0, 2]]).all()
    assert (info["draws"][1] != before[1]).all()


def test_seeds_of_the_vector_form():
    env = TrialVectorEnv(Corridor, 3)
    assert env.reset(seed=5)[1]["seed"].tolist() == [5, 6, 7]
    assert env.reset(seed=[9, None, 1])[1]["seed"].tolist() == [9, 6, 1]
    assert env.reset(seed=np.int64(4))[1]["seed"].tolist() == [4, 5, 6]


def test_without_copies_final_observations_are_still_right():
    env = TrialVectorEnv(Corridor, 2, copy=False, autoreset_mode="SameStep")
    env.reset(seed=0, options=[{"start": 3}, {}])
    observation, *_, info = env.step(np.array([1, 0]))
    env.step(np.array([0, 1]))
    assert info["final_obs"][0]["cell"].tolist() == [4]
    assert observation["cell"][:, 0].tolist() == [3, 0]


def test_render_and_oracle():
    assert TrialEnv.metadata == TrialVectorEnv.metadata == {"render_modes": ["rgb_array"], "render_fps": 10}
    env = TrialVectorEnv(Corridor, 2, render_mode="rgb_array")
    for call, name in ((env.render, "render"), (env.oracle_actions, "oracle_actions")):
        with pytest.raises(RuntimeError, match=f"{name} was called before reset"):
            call()
    env.reset(seed=0, options=[{"start": 2}, {}])
    images = env.render()
    assert [int(image.max()) for image in images] == [2, 0]
    assert env.oracle_actions().tolist() == [1, 1]
    assert TrialVectorEnv(Corridor, 2).render() is None
    single = TrialEnv(Corridor, render_mode="rgb_array")
    single.metadata["autoreset_mode"] = "as Gymnasium 1.1's SyncVectorEnv does"
    assert "autoreset_mode" not in TrialEnv.metadata
    single.reset(seed=0)
    assert single.render().shape == (2, 2, 3)
    assert single.oracle_action() == 1


def test_close():
    env = TrialEnv(Corridor)
    env.reset(seed=0)
    env.close()
    env.close()
    assert env.task.num_closed == 1
    with pytest.raises(RuntimeError, match="step was called after close"):
        env.step(0)
    with pytest.raises(RuntimeError, match="reset was called after close"):
        env.reset()


def test_bad_numbers():
    for name in ("num_envs", "trial_episodes", "trial_steps", "max_episode_steps"):
        for value in (0, -1, 1.5, True, "3"):
            with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1"):
                TrialVectorEnv(Corridor, **{name: value})


def test_bad_settings():
    for name, choices in (("autoreset_mode", "choose from "), ("render_mode", "choose from None, 'rgb_array'")):
        for value in ("Always", np.array(["rgb_array"] * 2), 0):
            with pytest.raises(ValueError, match=rf"unknown {name} .*; {choices}"):
                TrialVectorEnv(Corridor, **{name: value})
    with pytest.raises(TypeError, match="width"):
        TrialVectorEnv(Corridor, width=3)


def test_bad_actions():
    """A refused action changes nothing."""
    env, vector, twin = TrialEnv(Corridor), TrialVectorEnv(Corridor, 2), TrialVectorEnv(Corridor, 2)
    for other, action in ((env, 0), (vector, np.zeros(2, int))):
        with pytest.raises(RuntimeError, match="step was called before reset"):
            other.step(action)
    for other in (env, vector, twin):
        other.reset(seed=0)
    for action, error, message in (
        (2, ValueError, r"actions must be in 0 \.\.\. 1, got \[2\]"),
        (float("nan"), TypeError, "actions must be integers, got float64"),
        ("up", TypeError, "actions must be integers"),
        ([0, 0], ValueError, r"action must be one number, got an array of shape \(2,\)"),
    ):
        with pytest.raises(error, match=message):
            env.step(action)
    for actions, error, message in (
        (np.zeros(3, int), ValueError, r"actions must have the shape \(2,\), got \(3,\)"),
        (np.array([0.0, np.nan]), TypeError, "actions must be integers, got float64"),
        (np.array([1, 2]), ValueError, r"actions must be in 0 \.\.\. 1, got \[2\]"),
        (None, ValueError, r"actions must have the shape \(2,\), got \(\)"),
    ):
        with pytest.raises(error, match=message):
            vector.step(actions)
    ahead = np.ones(2, int)
    assert cells(env, [1]) == [(1, False, False)]
    assert all(same(one, other) for one, other in zip(vector.step(ahead), twin.step(ahead), strict=True))


def test_bad_options():
    for options, message in (
        ({"layout": 3}, r"option 'layout' must be an integer in 0 \.\.\. 2, got 3"),
        ({"trial": 2**62}, rf"option 'trial' must be an integer in 0 \.\.\. {2**62 - 1}, got {2**62}"),
        ({"new_trial": 1}, "option 'new_trial' must be True or False, got 1"),
        ({"start": 9}, r"option 'start' must be in 0 \.\.\. 4, got 9"),
        ({"speed": 9}, r"unknown reset option 'speed'; choose from \['start', 'new_trial', 'trial', "),
        ({"new_trail": True}, r"unknown reset option 'new_trail'; did you mean 'new_trial'\?"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEnv(Corridor).reset(options=options)
        with pytest.raises(ValueError, match=message):
            TrialVectorEnv(Corridor, 2).reset(options=[{}, options])


def test_bad_seeds():
    env, single = TrialVectorEnv(Corridor, 2), TrialEnv(Corridor)
    assert single.reset(seed=[0])[1]["seed"] == 0
    for wrong, seed, message in (
        (env, -1, "seed must be at least 0, got -1"),
        (single, [1, 2], "seed must be an int or 1 of them, got 2"),
        (env, [1, 2, 3], "seed must be an int or 2 of them, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong.reset(seed=seed)
    for seed in (True, 0.5, [1, 0.5], {1, 2}):
        with pytest.raises(TypeError, match="seed must be an int"):
            env.reset(seed=seed)
    with pytest.raises(ValueError, match="options must be one dict or 2 of them, got 1"):
        env.reset(options=[{}])
    for options in (5, "layout", [{}, None]):
        with pytest.raises(TypeError, match="options must be a dict, a sequence of 2 of them or None, got"):
            env.reset(options=options)


def test_refused_reset_needs_another_one():
    vector = TrialVectorEnv(Corridor, 2)
    for env, action in ((TrialEnv(Corridor), 0), (vector, np.zeros(2, int))):
        env.reset(seed=0)
        with pytest.raises(ValueError, match="option 'start'"):
            env.reset(options={"start": 9})
        with pytest.raises(RuntimeError, match="step was called before reset"):
            env.step(action)
        with pytest.raises(ValueError, match="reset_mask must be all True at the first reset"):
            vector.reset(options={"reset_mask": np.array([True, False])})
        env.reset(seed=0)
        env.step(action)


def test_no_trial_goes_on_after_a_refused_reset():
    """Its first episode was never shown, so that a memory would not be emptied."""
    env = TrialVectorEnv(Corridor, 2, trial_steps=10)
    for refused in ([{}, {"start": 9}], [{"start": 9}, {}]):
        with pytest.raises(ValueError, match="option 'start'"):
            env.reset(seed=0, options=refused)
        info = env.reset()[1]
        assert info["trial_start"].tolist() == [True, True] and info["episode_index"].tolist() == [0, 0]
    single = TrialEnv("memenvs.darkroom.env:Darkroom", moves=0.5)
    single.reset(seed=0)
    with pytest.raises(ValueError, match="option 'episode_index' must be at most 10000 with moves"):
        single.reset(options={"episode_index": 2**40})
    assert single.reset()[1]["episode_index"] == 0


def test_no_trial_goes_on_after_a_refused_autoreset():
    env = TrialVectorEnv(Corridor, 1, trial_episodes=1, autoreset_mode="SameStep", max_episode_steps=1)
    env.reset(seed=0, options={"start": 1, "layout": 0})
    env.task.length = 0  # as a layout that lacks what the option needs
    with pytest.raises(ValueError, match="option 'start'"):
        env.step(np.zeros(1, int))
    with pytest.raises(RuntimeError, match="step was called before reset"):
        env.step(np.zeros(1, int))
    assert env.reset()[1]["trial_start"].tolist() == [True]


def test_load_task():
    assert load_task(Corridor) is Corridor and setting_names(Corridor) == []
    assert setting_names("memenvs.darkroom.env:Darkroom") == ["split", "size", "moves", "max_episode_steps"]
    assert make_task("memenvs.darkroom.env:Darkroom", 2, {"size": 3}).num_envs == 2
    with pytest.raises(TypeError, match=r"'sise'; did you mean 'size'\? Choose from \['cells', .*'split'\]"):
        make_task("memenvs.darkroom.env:Darkroom", 2, {"size": 3, "sise": 3}, ("cells",))


def test_what_a_task_must_define_and_what_it_need_not():
    methods = "begin_trial", "begin_episode", "step", "observe", "info"
    assert BatchTask.__abstractmethods__ == {"__init__", *methods}
    task = Corridor(2)
    assert (task.action_masks(), task.num_places, dict(task.goal_names)) == (None, None, {})
    with pytest.raises(NotImplementedError, match="Corridor does not define map_pixels"):
        task.map_pixels(0, np.zeros((1, 3)))
    env = TrialEnv(Corridor, trial_episodes=3, trial_steps=7)
    assert (env.num_places, env.trial_episodes, env.trial_steps, env.max_episode_steps) == (None, 3, 7, 10)
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, True]


def test_metrics_are_numbers_of_info():
    info = {"seed": 1, "goal_id": 2, "collision": True, "num_steps": 5, "success": np.True_, "return": np.float32(0.5)}
    others = {"pose": np.zeros(3), "instruction": "go", "start": 4, "label": 3, "moved": True, "trial_start": False}
    metrics = metric_values({**info, **others}, ("start",))
    assert metrics == {"num_steps": 5.0, "success": 1.0, "return": 0.5}
    assert all(type(value) is float for value in metrics.values())
