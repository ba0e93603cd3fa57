from dataclasses import replace

import numpy as np
import pytest

from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.ballet3d.env import Ballet3D
from memenvs.ballet3d.episodes import CAPACITY, DANCE_POSITIONS, DANCES, NUM_STEPS, POSITIONS, DanceEpisodes
from memenvs.ballet3d.room import make_house
from memenvs.ballet3d.world import DanceWorld
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.retention import STRATEGIES, retained
from memenvs.testing import TaskUnderTest
from memenvs.testing.determinism import check_pickle

NOTHING = np.zeros(127008, np.float32)
#: Steps at which dancers take turns, for 3 and 4 dancers before the back wall.
TURNS = {3: [0, 18, 36, 63, 81, 108, 126], 4: [0, 18, 36, 54, 72, 90, 108, 126]}


@pytest.fixture(scope="module")
def world():
    return Ballet3DConfig().make_world()


def mean_answers(world: DanceWorld, episodes: DanceEpisodes) -> np.ndarray:
    """Answers averaged over all dances, the best without memory: (B, 84, 84, 18), 0 to 255."""
    dances = (replace(episodes, dance=np.full_like(episodes.dance, k)) for k in range(len(DANCES)))
    return np.mean([world.answers(world.with_query(danced, episodes.query_dancer)) for danced in dances], 0)


def test_dances_by_hand():
    """Height and shift to the right after each move; every dance ends at rest."""
    circle = [(0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (0, 0)]
    mirrored = [(height, -shift) for height, shift in circle]
    assert DANCE_POSITIONS[0].tolist() == [list(each) for each in circle]
    assert DANCE_POSITIONS[1].tolist() == [list(each) for each in mirrored]
    assert DANCE_POSITIONS[2].tolist() == [[1, 0], [0, 0]] * 3
    assert DANCE_POSITIONS[3, :, 1].tolist() == [-1, 0, 1, 0, -1, 0]
    assert DANCE_POSITIONS[4].tolist() == [[1, -1], [0, 0], [1, 1], [0, 0], [1, -1], [0, 0]]
    assert {tuple(each) for each in DANCE_POSITIONS.reshape(-1, 2).tolist()} == {tuple(p) for p in POSITIONS.tolist()}


def test_turns_and_places(world):
    episodes = world.sample_batch(2000, np.random.default_rng(0))
    heading = np.degrees(episodes.heading)
    turned = -np.diff(heading, axis=1, prepend=225.0) % 360
    is_still = np.zeros(NUM_STEPS, bool)
    is_still[45:99] = True
    assert np.abs(turned[:, is_still] - 360 * (turned[:, is_still] > 180)).max() < 1e-9
    moving = turned[:, ~is_still]
    assert (moving.min(), moving.max()) == (pytest.approx(3, abs=1e-3), pytest.approx(7, abs=1e-3))
    assert abs(moving.mean() - 5) < 0.01
    assert (episodes.place == ((225 - heading) // 90 % 4)).all()
    assert (episodes.place[:, 45:99] == 2).all()
    counts = (episodes.place[..., None] == np.arange(4)).sum(1).mean(0)
    np.testing.assert_allclose(counts, [18.5, 18, 72, 17.5], atol=0.3)


def test_dancers_dances_and_queries_are_drawn_evenly():
    for n_south, queried in ((4, "3456 0123 2345 0156"), (3, "345 012 234 0145")):
        world = Ballet3DConfig(n_south=n_south).make_world()
        episodes = world.sample_batch(4000, np.random.default_rng(1))
        assert all(len(set(row)) == n_south + 3 for row in episodes.dancer.tolist())
        np.testing.assert_allclose(np.bincount(episodes.dancer.ravel()) / episodes.dancer.size, 1 / 12, atol=0.01)
        np.testing.assert_allclose(np.bincount(episodes.dance.ravel()) / episodes.dance.size, 0.2, atol=0.01)
        assert (np.diff(episodes.task_id) % 4 == 1).all()  # tasks take turns
        assert world.make_episodes(np.array([7, 4, 6, 1])).task_id.tolist() == [3, 0, 2, 1]  # by key, not by position
        for number, numbers in enumerate(queried.split()):
            found = episodes.query_dancer[episodes.task_id == number]
            assert set(found.tolist()) == {int(digit) for digit in numbers}, STRATEGIES[number]
            assert np.bincount(found)[np.unique(found)].min() > 0.8 * len(found) / len(numbers)
        assert world.back_dancer.tolist() == [
            min(max(np.searchsorted(TURNS[n_south], t, "right") - 1, 2), n_south + 1) for t in range(NUM_STEPS)
        ]


def test_the_strategy_of_the_task_keeps_two_loops_of_the_dance(world):
    episodes = world.sample_batch(2000, np.random.default_rng(2))
    dancer_of_step = np.searchsorted(TURNS[4], np.arange(NUM_STEPS), "right") - 1
    kept = retained(episodes.place, episodes.task_id.astype(np.int64), CAPACITY)
    of_query = dancer_of_step == episodes.query_dancer[:, None]
    assert (kept & of_query).sum(1).min() >= 12
    other = retained(episodes.place, (episodes.task_id.astype(np.int64) + 1) % 4, CAPACITY)
    assert (other & of_query).sum(1).mean() < 14


def test_each_picture_is_drawn_once_and_is_that_of_its_step(world):
    episodes = world.sample_batch(3, np.random.default_rng(3))
    pictures, rows = world.draw(episodes)
    assert pictures.shape == (3 * 95, 84, 84, 3)
    assert rows.shape == (3, NUM_STEPS)
    for b, t in ((0, 0), (1, 44), (1, 60), (2, 98), (2, 99), (0, 125)):
        on_stage = world.on_stage(episodes, np.array([b]), np.array([t]))
        alone = world.room.draw(episodes.heading[b, t : t + 1], *on_stage)
        np.testing.assert_array_equal(pictures[rows[b, t]], alone[0])
    steps = retained(episodes.place, "fifo", CAPACITY)
    some, some_rows = world.draw(episodes, steps)
    assert ((some_rows >= 0) == steps).all()
    assert len(some) < 0.6 * len(pictures)
    np.testing.assert_array_equal(some[some_rows[steps]], pictures[rows[steps]])


def test_who_is_before_which_wall(world):
    episodes = world.sample_batch(40, np.random.default_rng(5))
    for t, back in ((0, 2), (53, 2), (54, 3), (71, 3), (72, 4), (90, 5), (125, 5)):
        for b in range(40):
            dancer, position = world.on_stage(episodes, np.array([b]), np.array([t]))
            assert dancer[0].tolist() == episodes.dancer[b, [0, 1, back, 6]].tolist()
            for wall, number in enumerate((0, 1, back, 6)):
                moves = t % 6
                where = [0, 0] if moves == 0 else DANCE_POSITIONS[episodes.dance[b, number], moves - 1].tolist()
                assert POSITIONS[position[0, wall]].tolist() == where
    rows = np.arange(40)
    for shift in range(7):  # the answer is the dance of the queried dancer, another one in each episode
        number = (rows + shift) % 7
        queried = world.with_query(episodes, number)
        dance = DANCE_POSITIONS[episodes.dance[rows, number]]
        expected = 6 * episodes.dancer[rows, number, None].astype(int) + 3 * dance[..., 0] + 1 + dance[..., 1]
        np.testing.assert_array_equal(queried.answer, expected)
        np.testing.assert_array_equal(queried.query, expected[:, -1])  # at rest
    dancers = np.array([[0, 1, 2, 4]])  # red, green, blue and yellow boxes before the four walls
    lit = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]
    for heading, channels in zip(np.radians([180, 90, 0, 270]), lit, strict=True):
        for shift in (-1, 0, 1):
            position = np.full((1, 4), 1 + shift)
            view = world.room.draw(np.array([heading]), dancers, position)[0].astype(int)
            off = np.array(channels) == 0
            columns = np.nonzero((view[..., ~off].min(-1) > 120) & (view[..., off].max(-1) < 10))[1]
            assert len(columns) > 200
            assert abs((columns.mean() - 41.5) / 17 - shift) < 0.15  # 1 m is 17 pixels at that distance


def test_a_dancer_is_where_a_pinhole_camera_projects_it(world):
    """Before the front wall, 4.5 m away: its near face is at 4.05 m, 0.9 m wide, the eye 1.5 m high."""
    focal = 42 / np.tan(np.radians(30))
    for position, (up, side) in enumerate(POSITIONS.tolist()):
        box = world.front_views[position].astype(int)  # dancer 0, a red box
        rows, columns = np.nonzero((box[..., 0] > 100) & (box[..., 1] < 10))
        edges = 42 + focal * np.array([side - 0.45, side + 0.45]) / 4.05
        assert abs(columns.min() - edges[0]) <= 2
        assert abs(columns.max() + 1 - edges[1]) <= 2
        assert abs(rows.max() + 1 - (42 + focal * (1.5 - up) / 4.05)) <= 1
        ball = world.front_views[6 * 6 + position].astype(int)
        rows, columns = np.nonzero((ball[..., 0] > 100) & (ball[..., 1] < 10))
        assert abs(columns.mean() - (41.5 + focal * side / 4.5)) < 1
        assert abs(rows.mean() - (41.5 + focal * (1.05 - up) / 4.5)) < 1
    assert len(np.unique(world.front_views.reshape(72, -1), axis=0)) == 72
    with pytest.raises(ValueError, match="read-only"):
        world.front_views[0] = 0


def test_the_sky_and_the_large_picture(world):
    """The sky has its own colour over each wall; the picture for people shows the same as the small one."""
    dancer, position = np.array([0, 7, 4, 11]), np.array([0, 3, 5, 1])
    nearest = ((np.arange(84) + 0.5) * 384 / 84).astype(int)
    for heading in np.radians([180, 90, 0, 270]):
        small = world.room.draw(np.array([heading]), dancer[None], position[None])[0].astype(int)
        assert np.abs(small[0] - (64, 209, 255)).max() <= 4
        large = world.room.draw_large(heading, dancer, position)[nearest][:, nearest]
        assert np.abs(small - large).mean() < 2  # 4 and more in other directions


def test_the_map_has_each_dancer_in_its_place():
    house = make_house(np.array([3, 11, 8]), np.array([(1, 2, 0), (-3, 0.5, 1), (4, -4, 0)]))
    assert house.instances == ("building", "purple box", "grey ball", "blue ball")
    np.testing.assert_allclose(house.shapes.centre[-3:], [(1, 2, 0.45), (-3, 0.5, 1.45), (4, -4, 0.45)])
    assert (house.shapes.half[-3:] == np.float32(0.45)).all()
    assert house.shapes.colour[-3:].tolist() == [[112, 38, 194], [167, 167, 167], [0, 0, 255]]


def test_the_environment_plays_the_episodes_of_the_batch(world):
    env = TrialVectorEnv(Ballet3D, 2, trial_episodes=1, autoreset_mode="SameStep")
    observation, info = env.reset(seed=5)
    rngs = [np.random.default_rng([5 + i, 0, 1]) for i in range(2)]
    batches = [world.sample_batch(1, rng) for rng in rngs]
    for i, episodes in enumerate(batches):
        assert info["key"][i] == episodes.key[0]
    drawn = [world.draw(episodes) for episodes in batches]
    assert not env.oracle_actions().any()  # no pictures are drawn before the query
    for t in range(NUM_STEPS):
        for i, ((pictures, rows), episodes) in enumerate(zip(drawn, batches, strict=True)):
            np.testing.assert_array_equal(observation["rgb"][i], pictures[rows[0, t]])
            assert info["place"][i] == episodes.place[0, t]
            assert info["pose"][i, 2] == np.float32(episodes.heading[0, t])
        assert not observation["query"].any()
        assert not observation["phase"].any()
        observation, rewards, terminated, _, info = env.step(np.zeros((2, 127008), np.float32))
        assert not rewards.any()
        assert not terminated.any()
    assert observation["phase"].all()
    assert not observation["rgb"].any()
    actions = env.oracle_actions()
    for i, episodes in enumerate(batches):
        np.testing.assert_array_equal(observation["query"][i], world.front_views[episodes.query[0]])
        assert observation["task"][i].tolist() == np.eye(4)[episodes.task_id[0]].tolist()
        np.testing.assert_allclose(255 * (actions[i] + 1) / 2, world.answers(episodes).ravel(), atol=1e-4)
    actions[1] = mean_answers(world, batches[1]).ravel() / 127.5 - 1
    _, rewards, terminated, _, info = env.step(actions)
    error = ((mean_answers(world, batches[1]) - world.answers(batches[1])) ** 2).mean() / 255**2
    np.testing.assert_allclose(rewards, [0, -error], atol=1e-8)
    np.testing.assert_allclose(info["final_info"]["mse"], [0, error], atol=1e-8)
    assert terminated.all()
    assert error > 1e-4


def test_the_best_answer_without_memory(world):
    """Its error over every dancer with every dance is that of the documentation."""
    episodes = world.sample_batch(60, np.random.default_rng(4))
    episodes.dancer[:] = np.arange(12).repeat(5)[:, None]
    episodes.dance[:] = np.tile(np.arange(5), 12)[:, None]
    episodes = world.with_query(episodes, np.zeros(60, int))
    error = (mean_answers(world, episodes) - world.answers(episodes)) ** 2
    assert 0.0024 < error.mean() / 255**2 < 0.0026


def test_options_and_pictures():
    env = TrialEnv(Ballet3D, strategy_task="lvfo", n_south=3, render_mode="rgb_array")
    _, info = env.reset(seed=0)
    assert info["task_id"] == STRATEGIES.index("lvfo")
    again = TrialEnv(Ballet3D, strategy_task="lvfo", n_south=3)
    number = int(np.flatnonzero(info["dance"] != info["dance"][0])[0])
    _, other = again.reset(seed=9, options={"key": info["key"], "query": number})
    assert other["dancer"].tolist() == info["dancer"].tolist()
    assert (other["query"], other["label"]) == (number, info["dance"][number])
    for _ in range(126):
        env.step(NOTHING)
    before = env.render()
    env.step(env.oracle_action())
    after = env.render()
    assert before.shape == after.shape == (384, 768, 3)
    np.testing.assert_array_equal(after[192:], np.where(np.arange(768)[:, None] < 384, after[192:], after[:192]))


def test_bad_input(world):
    env, rng = TrialEnv(Ballet3D), np.random.default_rng(0)
    for options, message in (
        ({"key": -1}, "option 'key' must be an integer in 0"),
        ({"query": 2}, "option 'query' must come with 'key'"),
        ({"key": 3, "query": 7}, r"query must be the number of a dancer, 0 \.\.\. 6"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0, options=options)
    for call, message in (
        (lambda: Ballet3DConfig(n_south=5), "n_south must be an integer of at least 3 and at most 4, got 5"),
        (lambda: world.make_episodes(np.array([-1])), r"keys must be integers \(B,\)"),
        (lambda: world.sample_batch(0, rng), "batch must be an integer of at least 1"),
        (lambda: world.sample_batch(1, 0), "rng must be a numpy Generator"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


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
    for _ in range(126):
        assert env.step(NOTHING)[4]["place"] == plain.step(NOTHING)[4]["place"]
    assert env.render().shape == (384, 768, 3)
    assert env.step(env.oracle_action())[1] == pytest.approx(0, abs=1e-9)
    env.close()
