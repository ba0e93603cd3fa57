import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.config import goal_cells
from memenvs.darkroom.env import Darkroom

TEST_GOALS = [
    (2, 5), (3, 7), (8, 1), (4, 6), (3, 9), (6, 5), (5, 8), (1, 2), (8, 8), (7, 0),
    (8, 7), (3, 6), (2, 1), (8, 3), (0, 9), (9, 6), (6, 7), (6, 4), (4, 7), (4, 4),
]  # fmt: skip


def returns(split: str, policy) -> np.ndarray:
    """Return of one episode for each goal of a split; `policy(t, env)` gives the N actions."""
    n = len(goal_cells(split))
    env = TrialVectorEnv(Darkroom, n, split=split, autoreset_mode="SameStep")
    env.reset(seed=0, options=[{"layout": layout} for layout in range(n)])
    for t in range(100):
        _, _, _, truncated, info = env.step(policy(t, env))
    assert truncated.all()
    return info["final_info"]["return"]


def sweep(t: int, env: TrialVectorEnv) -> np.ndarray:
    """Serpentine over the board, column by column along y, that stays on the goal."""
    info = env.task.info()
    x, y = info["pose"][:, :2].T
    on_goal = (info["pose"][:, :2] == info["goal"]).all(1)
    up, down = (x % 2 == 0) & (y < 9), (x % 2 == 1) & (y > 0)
    return np.where(on_goal, 4, np.select([up, down], [2, 3], 0))


def test_published_test_goals_in_order():
    np.testing.assert_array_equal(goal_cells("test"), TEST_GOALS)
    train = {tuple(cell) for cell in goal_cells("train").tolist()}
    assert len(train) == 80
    assert not train & set(TEST_GOALS)
    assert len({tuple(cell) for cell in goal_cells("all").tolist()}) == 100


def test_ceiling_of_a_known_goal():
    for split, ceiling in (("all", 91.99), ("train", 92.26), ("test", 90.90)):
        scores = returns(split, lambda t, env: env.oracle_actions())
        assert round(float(scores.mean()), 2) == ceiling


def test_blind_sweep():
    for split, expected in (("all", 51.5), ("test", 47.9)):
        assert round(float(returns(split, sweep).mean()), 1) == expected


def test_random_policy():
    rng = np.random.default_rng(0)
    scores = [returns("all", lambda t, env: rng.integers(5, size=100)).mean() for _ in range(10)]
    standard_error = np.std(scores) / np.sqrt(len(scores))
    assert abs(np.mean(scores) - 1.04) < 3 * standard_error < 0.3


def test_board_by_hand():
    env = TrialEnv(Darkroom, size=3)
    observation, info = env.reset(seed=0, options={"goal": (1, 2)})
    assert observation["position"].tolist() == [0, 0]
    assert observation["previous_reward"].tolist() == [0]
    assert info["goal"].tolist() == [1, 2]
    rows = []
    for action in (1, 3, 0, 2, 2, 2, 4, 1):  # the edges clip; every step that ends on the goal is rewarded
        observation, reward, *_, info = env.step(action)
        rows.append((*observation["position"].tolist(), reward, info["place"], info["success"], info["return"]))
        assert observation["previous_reward"].tolist() == [reward]
        assert info["pose"].tolist() == [*observation["position"], 0]
    assert rows == [
        (0, 0, 0.0, 0, False, 0.0),
        (0, 0, 0.0, 0, False, 0.0),
        (1, 0, 0.0, 3, False, 0.0),
        (1, 1, 0.0, 4, False, 0.0),
        (1, 2, 1.0, 5, True, 1.0),
        (1, 2, 1.0, 5, True, 2.0),
        (1, 2, 1.0, 5, True, 3.0),
        (0, 2, 0.0, 2, True, 3.0),
    ]


def test_observations_do_not_depend_on_the_goal():
    env = TrialVectorEnv(Darkroom, 2)
    observation, _ = env.reset(seed=0, options=[{"goal": (9, 9)}, {"goal": (8, 8)}])
    for action in (0, 2, 0, 2, 4):
        for value in observation.values():
            np.testing.assert_array_equal(value[0], value[1])
        observation, *_ = env.step(np.full(2, action))


def test_spaces_and_places_follow_the_size():
    for size, settings in ((10, {}), (4, {"size": 4})):
        env = TrialEnv(Darkroom, **settings)
        position, reward = Box(0, size - 1, (2,), np.float32), Box(0, 1, (1,), np.float32)
        assert env.observation_space == Dict({"position": position, "previous_reward": reward})
        assert env.action_space == Discrete(5)
        assert env.num_places == size**2
        corner = np.array([size - 1, size - 1])
        observation, info = env.reset(seed=0, options={"start": corner, "goal": corner})
        assert env.observation_space.contains(observation)
        assert (info["place"], info["start"].tolist()) == (size**2 - 1, corner.tolist())
        assert env.oracle_action() == 4


def test_render_shows_goal_and_agent():
    env = TrialEnv(Darkroom, render_mode="rgb_array")
    env.reset(seed=0, options={"goal": (3, 4), "start": (9, 0)})
    image = env.render()
    assert image.shape == (320, 320, 3)
    cells = np.array([[3, 4], [9, 0]])
    pixels = env.task.map_pixels(0, cells)
    assert pixels.tolist() == [[112, 176], [304, 304]]  # 32 pixels a cell, y upwards
    goal, agent = (image[int(row), int(column)].tolist() for column, row in pixels)
    assert goal == [60, 170, 90]
    assert agent[0] > 200
    path = env.task.draw_map(0, np.array([[0, 0, 0], [9, 9, 0]]))
    assert (path[int(pixels[0, 1]), int(pixels[0, 0])] == goal).all() and (path != image).any()


def test_bad_options():
    env = TrialEnv(Darkroom)
    for name in ("goal", "start"):
        for value in ((10, 0), (-1, 0), (1, 2, 3), (0.5, 1), "corner", 3):
            message = rf"option '{name}' must be two integers \(x, y\) in 0 \.\.\. 9, got"
            with pytest.raises(ValueError, match=message):
                env.reset(options={name: value})
