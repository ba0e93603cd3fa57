import importlib.util
import json
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.four_boxes.env import FourBoxes
from memenvs.four_boxes.room import BOX_POSITIONS
from memenvs.testing import TaskUnderTest
from memenvs.testing.declared import check_views
from memenvs.testing.determinism import check_pickle
from memenvs.two_rooms.env import TwoRooms
from tests.four_boxes.test_four_boxes import CEILINGS, FORWARD, STAY, one_for_each_goal


def reference_room(goal: int):
    """A Miniworld environment with a single box, made as its documentation says."""
    from miniworld.entity import Box
    from miniworld.miniworld import MiniWorldEnv
    from miniworld.params import DEFAULT_PARAMS

    class OneBox(MiniWorldEnv):
        def _gen_world(self) -> None:
            self.add_rect_room(min_x=0, max_x=6, min_z=0, max_z=6)
            radius = Box("red").radius
            x, z = [(radius, radius), (6 - radius, radius), (6 - radius, 6 - radius), (radius, 6 - radius)][goal]
            self.box = self.place_entity(Box("red"), pos=np.array([x, 0, z]), dir=0.0)
            self.place_agent(pos=np.array([3.0, 0, 3.0]), dir=0.0)

        def is_rewarded(self) -> bool:
            gap = (self.box.pos - self.agent.pos)[[0, 2]]
            cosine = np.dot(gap, self.agent.dir_vec[[0, 2]]) / np.linalg.norm(gap)
            near = np.linalg.norm(gap) < self.box.radius + self.agent.radius + 1.5 * self.max_forward_step
            return bool(near and np.degrees(np.arccos(min(1.0, cosine))) <= 30 + 1e-6)

    params = DEFAULT_PARAMS.no_random()
    params.set("forward_step", 0.7)
    params.set("turn_step", 15)
    return OneBox(params=params, max_episode_steps=10_000)


@pytest.mark.usefixtures("miniworld")
@pytest.mark.slow
def test_same_actions_same_poses_and_rewards_in_both_worlds():
    """Compare with plain Miniworld environments too, one for each goal, with only the goal box."""
    ours = one_for_each_goal(max_episode_steps=300)
    theirs = one_for_each_goal(max_episode_steps=300, world="miniworld")
    references = [reference_room(goal) for goal in range(4)]
    rng = np.random.default_rng(1)
    num_rewarded = 0.0
    num_blocked = 0
    before = np.zeros((4, 3))
    for _ in range(100):
        random = rng.choice(4, 4, p=[0.15, 0.15, 0.65, 0.05])
        # The oracle brings the robot near the box now and then.
        actions = np.where(rng.random(4) < 0.3, ours.oracle_actions(), random)
        rewards, their_rewards = ours.step(actions)[1], theirs.step(actions)[1]
        pose, their_pose = ours.task._room.pose, theirs.task._room.pose
        np.testing.assert_allclose(pose, their_pose, atol=1e-9)
        np.testing.assert_array_equal(rewards, their_rewards)
        for i, reference in enumerate(references):
            if actions[i] != STAY:
                reference.step(int(actions[i]))
            x, _, z = reference.agent.pos
            np.testing.assert_allclose(pose[i, :2], (x, -z), atol=1e-9)
            np.testing.assert_allclose((pose[i, 2] - reference.agent.dir + 1) % (2 * np.pi), 1, atol=1e-9)
            assert rewards[i] == reference.is_rewarded()
        num_rewarded += rewards.sum()
        num_blocked += ((actions == FORWARD) & (pose == before).all(1)).sum()
        before = pose.copy()
    assert 50 < num_rewarded < 500
    assert num_blocked > 30
    theirs.close()


def both_views(count: int, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Images of both worlds from random poses; uint8, (count, *size, 3) each."""
    rng = np.random.default_rng(0)
    low, high = [0.4, -5.6], [5.6, -0.4]
    starts = np.column_stack([rng.uniform(low, high, (4 * count, 2)), rng.uniform(0, 2 * np.pi, 4 * count)])
    distances = np.hypot(*np.moveaxis(starts[:, None, :2] - BOX_POSITIONS, -1, 0)).min(1)
    starts = starts[distances > 1.0][:count]
    images = []
    for world in ("builtin", "miniworld"):
        env = TrialVectorEnv(FourBoxes, count, world=world, image_size=size)
        images.append(env.reset(seed=0, options=[{"goal": 0, "start": start} for start in starts])[0]["rgb"])
        env.close()
    return images[0], images[1]


@pytest.mark.usefixtures("miniworld")
def test_images_of_both_worlds_agree():
    ours, theirs = both_views(50, (60, 80))
    # Only boxes are coloured. Miniworld's edges are smooth; a box that covers half of a pixel gives 90 of up to 213.
    masks = [view.max(-1).astype(int) - view.min(-1) > 90 for view in (ours, theirs)]
    both, either = masks[0] & masks[1], masks[0] | masks[1]
    has_boxes = either.any((1, 2))
    assert has_boxes.sum() > 30
    assert (both.sum((1, 2))[has_boxes] / either.sum((1, 2))[has_boxes]).min() > 0.9
    lit = [view[both].astype(int) > 60 for view in (ours, theirs)]  # the channels that are lit identify the colour
    assert (lit[0] == lit[1]).all(1).mean() > 0.99
    assert np.abs(ours.astype(int) - theirs).mean() < 8


@pytest.mark.usefixtures("miniworld")
def test_another_miniworld_environment_does_not_change_the_images():
    env = TrialEnv(FourBoxes, world="miniworld")
    before = env.reset(seed=0)[0]["rgb"]
    other = gym.make("MiniWorld-FourRooms-v0")
    other.reset(seed=0)
    np.testing.assert_array_equal(env.reset(seed=0)[0]["rgb"], before)
    other.close()
    env.close()


@pytest.mark.usefixtures("miniworld")
@pytest.mark.parametrize("check", [check_pickle, check_views])
@pytest.mark.parametrize("task", [FourBoxes, TwoRooms])
def test_pickle_and_render_in_miniworld(task, check):
    check(TaskUnderTest.of(task, world="miniworld"))


@pytest.mark.usefixtures("miniworld")
@pytest.mark.slow
def test_rollout_in_miniworld_prints_nothing_but_its_document():
    rollout = ["rollout", "FourBoxes-v0", "--policy", "oracle", "--episodes", "1", "--json", "--env_kwargs"]
    command = [sys.executable, "-m", "memenvs", *rollout, '{"world": "miniworld"}']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["return"]["mean"] in CEILINGS


#: Tries every task in Miniworld without a display, then without the package, and prints the errors.
TRY_ALL = """
import sys
from memenvs.core import TrialEnv
for _ in range(2):
    for task in ("four_boxes.env:FourBoxes", "two_rooms.env:TwoRooms", "ballet3d.env:Ballet3D"):
        try:
            TrialEnv(f"memenvs.{task}", world="miniworld")
        except ImportError as error:
            print(error)
    sys.modules["miniworld"] = None
"""


@pytest.mark.slow
def test_without_a_display_and_without_the_package():
    environ = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = subprocess.run([sys.executable, "-c", TRY_ALL], env=environ, capture_output=True, text=True, check=True)
    errors = done.stdout.splitlines()
    expected = "world 'miniworld' needs the package miniworld; install it with: pip install 'memenvs[miniworld]'"
    assert errors[3:] == [expected] * 3
    if importlib.util.find_spec("miniworld") is not None:  # importing it would need a display
        for error in errors[:3]:
            assert error.startswith("world 'miniworld' needs a display with OpenGL")
            assert error.endswith("without a screen, start with: xvfb-run -a")
