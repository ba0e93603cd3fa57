import numpy as np
import pytest

from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.ballet3d.env import Ballet3D
from memenvs.core import TrialEnv
from memenvs.testing import TaskUnderTest
from memenvs.testing.determinism import check_pickle


@pytest.mark.usefixtures("miniworld")
@pytest.mark.slow
def test_pictures_of_both_worlds_agree():
    """By the measures of FourBoxes: the same pixels and colours of dancers, the same brightness elsewhere."""
    worlds = [Ballet3DConfig(world=name).make_world() for name in ("builtin", "miniworld")]
    episodes = worlds[0].sample_batch(2, np.random.default_rng(0))
    steps = np.zeros(episodes.place.shape, bool)
    steps[:, ::6] = True
    views = [world.draw(episodes, steps)[0].astype(int) for world in worlds]
    queries = [world.front_views.astype(int) for world in worlds]
    for ours, theirs in (views, queries):
        assert np.abs(ours - theirs).mean() < 4
        few = [view[:, ::3, ::3] for view in (ours, theirs)]  # enough to find the same picture
        closest = np.abs(few[0][:, None] - few[1][None]).mean((2, 3, 4)).argmin(1)
        assert (closest == np.arange(len(ours))).mean() > 0.95  # of all theirs the same one is the nearest
    ours, theirs = queries
    lit = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])  # red, green, blue and yellow dancers
    for shape in range(2):
        for channels, colour in zip(lit, (0, 1, 2, 4), strict=True):
            rows = slice(6 * (6 * shape + colour), 6 * (6 * shape + colour) + 6)
            masks = [
                (view[rows][..., channels == 1].min(-1) > 120) & (view[rows][..., channels == 0].max(-1) < 60)
                for view in (ours, theirs)
            ]
            both, either = masks[0] & masks[1], masks[0] | masks[1]
            assert either.sum((1, 2)).min() > 100
            assert (both.sum((1, 2)) / either.sum((1, 2))).min() > 0.85


@pytest.mark.usefixtures("miniworld")
@pytest.mark.slow
def test_an_episode_in_miniworld():
    check_pickle(TaskUnderTest.of(Ballet3D, world="miniworld"))
    env, plain = (TrialEnv(Ballet3D, world=world, render_mode="rgb_array") for world in ("miniworld", "builtin"))
    assert env.reset(seed=1)[1]["key"] == plain.reset(seed=1)[1]["key"]
    nothing = np.zeros(127008, np.float32)
    for _ in range(126):
        assert env.step(nothing)[4]["place"] == plain.step(nothing)[4]["place"]
    assert env.render().shape == (384, 768, 3)
    assert env.step(env.oracle_action())[1] == pytest.approx(0, abs=1e-9)
    env.close()
