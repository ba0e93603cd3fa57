"""ColorRecall and ViewRecall: moves, images, and what must be remembered."""

import math
import os

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.houses.house import House, Room, Shapes
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.worlds import Home, HouseWorld, make_house_world
from memenvs.recall.color_recall import COLOURS, RGB, ColorRecall, draw_square
from memenvs.recall.config import ColorRecallConfig, ViewRecallConfig
from memenvs.recall.homes import RecallHome
from memenvs.recall.observer import stitch
from memenvs.recall.pools import ColorPool, ViewPool
from memenvs.recall.tours import FORWARD, LEFT, keeps_cue, make_tour
from memenvs.recall.turns import OBSERVED_HEADINGS, QUERY_HEADINGS, make_turns
from memenvs.recall.view_recall import ViewRecall
from memenvs.retention import retained

SMALL = {"rooms": (4, 5), "image_size": (12, 16)}
COLOR = {**SMALL, "steps": (60, 60), "capacity": 60, "square_size": 3}
VIEW = {**SMALL, "steps": (20, 20)}


class OneRoom(HouseWorld):
    """Homes of one empty room; home 1 has another room, which the observer cannot enter."""

    def __len__(self) -> int:
        return 2

    def make_house(self, index: int) -> House:
        # The strip of the first room that is nearer to the second one's centre has about 0.6 square metres.
        corners = [[[0, 0], [6, 0], [6, 4], [0, 4]], [[6.5, 0], [10, 0], [10, 4], [6.5, 4]]][: 1 + index]
        rooms = tuple(Room("other", np.array(outline, float), 0, (90, 90, 90)) for outline in corners)
        return House(f"room {index}", Shapes.empty(), rooms, (), (), ("building",))


def test_tours():
    """Moves lead from pose to pose, the stay is near the end of the path, and only MVFO keeps the first step."""
    home = RecallHome(0, make_house_world("procedural", rooms=(4, 5)).home(0))
    for key in range(6):
        tour = make_tour(home, key, (200, 200), 200)
        turned = np.diff(np.unwrap(tour.pose[:, 2]))
        moved = np.hypot(*np.diff(tour.pose[:, :2], axis=0).T)
        forward, left = tour.move[1:] == FORWARD, tour.move[1:] == LEFT
        np.testing.assert_allclose(np.degrees(turned), np.where(forward, 0, np.where(left, 10, -10)), atol=1e-9)
        assert (moved[~forward] == 0).all() and moved.max() <= 0.25 + 1e-9
        assert moved[:199].sum() > 10  # m: it goes somewhere
        assert np.hypot(*(tour.pose[199:, :2] - tour.pose[199, :2]).T).max() <= 2.0
        assert (home.navmap.islands(tour.pose[:, :2]) == 0).all()
        gaps = np.linalg.norm(tour.pose[:, None, :2] - home.centres, axis=-1)
        np.testing.assert_array_equal(gaps[np.arange(400), tour.place], gaps.min(1))
        assert tour.move[0] == 3 and len(tour.place) == 400
        assert not any(keeps_cue(tour.place[:length], "fifo", 200) for length in (201, 300, 400))
        assert keeps_cue(tour.place, "mvfo", 200)
    assert not keeps_cue(np.array([0, 0, 1, 1]), "mvfo", 4)  # the query, in place 1, would evict it
    assert keeps_cue(np.array([0, 1, 1, 1]), "mvfo", 4)
    with pytest.raises(ValueError, match=r"must have tours of \(9, 9\) steps in which a memory of capacity 1 keeps"):
        make_tour(home, 0, (9, 9), 1)


class Plane:
    """An endless floor of one place; keeps what was drawn, the start and then the goals."""

    name = "plane"

    def __init__(self) -> None:
        self.drawn: list[np.ndarray] = []

    def random_pose(self, rng):
        self.drawn.append(rng.uniform(-4, 4, 3))
        return self.drawn[-1]

    def distances_to(self, goal):
        return goal

    def turns_towards(self, goal, pose, turn, forward):
        x, y = goal - pose[:2]
        wrapped = (math.atan2(y, x) - pose[2] + math.pi) % (2 * math.pi) - math.pi
        return None if math.hypot(x, y) < forward else round(wrapped / turn)

    def forward(self, pose, distance):
        return pose + distance * np.array([math.cos(pose[2]), math.sin(pose[2]), 0])

    def places(self, poses):
        return np.zeros(len(poses))


def test_a_tour_goes_to_goal_after_goal_and_then_moves_at_random():
    """Each goal is passed within a step, in order. In the stay a step out of the radius becomes a turn at random."""
    starts = []
    for key in range(3):
        home = Plane()
        tour = make_tour(home, key, (400, 1500), 2000)
        start, *goals = home.drawn
        np.testing.assert_array_equal(tour.pose[0], start)
        starts.append(start[0])
        at = 0
        for goal in goals[:-1]:
            passes = np.hypot(*(tour.pose[at:400, :2] - goal[:2]).T) < 0.25
            assert passes.any()
            at += passes.argmax()
        assert len(goals) > 10
        before, end = tour.pose[399:-1], tour.pose[399, :2]
        ahead = before[:, :2] + 0.25 * np.column_stack([np.cos(before[:, 2]), np.sin(before[:, 2])])
        leaves = np.hypot(*(ahead - end).T) > 2
        for here, shares in ((~leaves, [1 / 3, 1 / 3, 1 / 3]), (leaves, [0, 1 / 2, 1 / 2])):
            assert here.sum() > 100
            np.testing.assert_allclose(np.bincount(tour.move[400:][here], minlength=3) / here.sum(), shares, atol=0.1)
    assert len(set(starts)) == 3  # each key has a tour of its own


def test_color_recall_by_hand():
    """The square is in the first image alone; the query is that image without it; only the answer is rewarded."""
    env = TrialEnv(ColorRecall, **COLOR)
    options = {"layout": 3, "key": 5, "colour": "cyan", "square": (2, 6)}
    for answer, reward in ((3, 1.0), (0, 0.0)):
        first, info = env.reset(seed=0, options=options)
        assert (info["key"], info["colour"], info["square"].tolist()) == (5, 3, [2, 6])
        for _ in range(119):
            observation, early, terminated, _, info = env.step(3)
            assert (early, terminated, observation["phase"]) == (0.0, False, 0)
        place = info["place"]
        query, early, terminated, _, info = env.step(3)
        assert (early, terminated, query["phase"], query["move"], info["place"]) == (0.0, False, 1, 3, place)
        differs = (first["rgb"] != query["rgb"]).any(-1)
        assert 0 < differs.sum() == differs[2:5, 6:9].sum()
        assert (first["rgb"][2:5, 6:9] == RGB[COLOURS.index("cyan")]).all()
        _, last, terminated, truncated, info = env.step(answer)
        assert (last, terminated, truncated, info["success"]) == (reward, True, False, reward == 1)


def test_nothing_after_the_first_image_shows_the_colour():
    envs = [TrialVectorEnv(ColorRecall, 2, **COLOR) for _ in range(2)]
    draws = [env.reset(seed=1, options={"colour": colour}) for colour, env in enumerate(envs)]
    assert (draws[0][0]["rgb"] != draws[1][0]["rgb"]).any((1, 2, 3)).all()
    for _ in range(120):
        left, right = (env.step(np.array([0, 1]))[0] for env in envs)
        for key in left:
            np.testing.assert_array_equal(left[key], right[key])
    rng = np.random.default_rng(0)
    colours, squares = zip(*(draw_square(ColorRecallConfig(**COLOR), rng) for _ in range(600)), strict=True)
    assert np.bincount(colours, minlength=6).min() > 70
    assert np.max(squares, 0).tolist() == [9, 13] and np.min(squares, 0).tolist() == [0, 0]


def test_turns():
    """Every step is a turn by one heading; turns to targets are along the shorter arc, later ones within 36 degrees."""
    headings, places = [], []
    for key in range(300):
        turns = make_turns(key, (150, 150))
        step = (np.diff(turns.heading) + 15) % 30 - 15
        assert (np.abs(step) == 1).all() and turns.heading[0] == 0 and turns.move[0] == 2
        np.testing.assert_array_equal(turns.move[1:], step < 0)
        np.testing.assert_array_equal(turns.place, turns.heading * 12 // 36)
        near = (turns.heading[150:] - turns.heading[149] + 15) % 30 - 15
        assert np.abs(near).max() == 3
        headings.append(turns.heading[:150])
        places.append(turns.place)
    share = np.bincount(np.concatenate(headings), minlength=30) / (300 * 150)
    around = (np.diff(np.stack(headings)) + 15) % 30 - 15
    assert abs((around > 0).mean() - 0.5) < 0.05  # along the shorter arc, either side
    assert share.min() > 0.7 / 30 and share[0] < 1.6 / 30  # all around
    assert np.mean([len(set(row)) for row in headings]) > 29.5  # of 30; a random walk sees 19
    kept = {name: retained(np.stack(places), name, 150, n_places=10) for name in ("fifo", "mvfo")}
    seen = {name: np.mean([len(set(p[k])) for p, k in zip(places, kept[name], strict=True)]) for name in kept}
    assert seen["fifo"] < 4 and seen["mvfo"] > 9.9
    gaps = np.abs((QUERY_HEADINGS[:, None] - OBSERVED_HEADINGS + math.pi) % (2 * math.pi) - math.pi)
    np.testing.assert_allclose(np.degrees(gaps.min(1)), 6)
    np.testing.assert_array_equal(np.floor(np.degrees(QUERY_HEADINGS) / 36), np.arange(10))


def test_turns_of_parts_of_different_lengths():
    """Every gap to a target occurs, also one turn to either side; later targets are other ones at random."""
    single = np.zeros(2, int)
    later = set()
    for key in range(300):
        turns = make_turns(key, (40, 10))
        assert len(turns.heading) == len(turns.move) == 50
        around, near = ((turns.heading[part] - turns.heading[39] + 15) % 30 - 15 for part in (np.s_[:40], np.s_[40:]))
        assert np.abs(around).max() > 3 >= np.abs(near).max()
        later.add(tuple(near.tolist()))
        left, middle, right = turns.move[1:38], turns.move[2:39], turns.move[3:40]
        single += [((left == side) & (middle == 1 - side) & (right == side)).sum() for side in (0, 1)]
        assert len(make_turns(key, (5, 1)).heading) == 6
    assert single.min() > 5 and len(later) > 50


def test_view_recall_by_hand():
    env = TrialEnv(ViewRecall, **VIEW)
    observation, info = env.reset(seed=4, options={"query": 7, "layout": 1})
    start = info["start"]
    assert (info["pose"] == start.astype(np.float32)).all() and observation["rgb"].std() > 5
    for _ in range(39):
        observation, reward, _, _, info = env.step(np.ones(576, np.float32))
        heading = math.atan2(observation["heading"][1], observation["heading"][0])
        assert math.cos(info["pose"][2] - start[2] - heading) > 1 - 1e-6 and 0 <= info["pose"][2] < 6.29
        assert reward == 0 and info["place"] == int(math.degrees(heading) % 360 / 36 + 1e-4) % 10
    query, reward, terminated, _, _ = env.step(np.ones(576, np.float32))
    assert (query["phase"], query["move"], reward, terminated, query["rgb"].max()) == (1, 2, 0.0, False, 0)
    angle = math.radians(36 * 7 + 18)
    np.testing.assert_allclose(query["heading"], [math.cos(angle), math.sin(angle)], atol=1e-6)
    target = (env.oracle_action() + 1) / 2
    _, reward, terminated, truncated, info = env.step(np.zeros(576, np.float32))  # grey
    assert terminated and not truncated
    np.testing.assert_allclose(reward, -((target - 0.5) ** 2).mean(), rtol=1e-5)
    assert info["mse"] == -reward == -info["return"]
    assert (env.reset(seed=5, options={"layout": 1})[1]["start"] != start).all()


def test_episodes_of_a_pool_are_those_of_the_environment():
    rng = np.random.default_rng(0)
    color = ColorPool(ColorRecallConfig(**COLOR), tours=3, seed=2)
    view = ViewPool(ViewRecallConfig(**VIEW, threads=3), positions=3, seed=2)
    colors, views = color.sample_batch(5, rng), view.sample_batch(5, rng)
    assert len(colors) == len(views) == 5
    images = color.images[colors.tour]
    queries = images[:, 0].copy()
    images[:, 0] = color.first_images(colors)
    expected = (
        (images, color.place[colors.tour], color.move[colors.tour]),
        (view.observed(views), views.place, views.move),
    )
    for b in (0, 4):
        tour, position = colors.tour[b], views.position[b]
        square = {"key": color.key[tour], "colour": colors.colour[b], "square": colors.square[b]}
        turns = {"key": views.key[b], "start": view.start[position], "query": views.query[b]}
        for env, pool, options, (rgb, place, move) in (
            (TrialEnv(ColorRecall, **COLOR), color, {"layout": color.layout[tour], **square}, expected[0]),
            (TrialEnv(ViewRecall, **VIEW), view, {"layout": view.layout[position], **turns}, expected[1]),
        ):
            observation, info = env.reset(seed=b, options=options)
            for t in range(rgb.shape[1]):
                np.testing.assert_array_equal(observation["rgb"], rgb[b, t])
                assert (info["place"], observation["move"]) == (place[b, t], move[b, t])
                observation, *_, info = env.step(env.oracle_action())
            if pool is color:
                np.testing.assert_array_equal(observation["rgb"], queries[b])
                assert env.oracle_action() == colors.colour[b]
            else:
                answer = (env.oracle_action().reshape(12, 16, 3) + 1) * 127.5
                np.testing.assert_allclose(answer, view.targets(views)[b], atol=1e-3)


def test_pools_draw_from_all_that_they_have():
    """Homes take turns, seeds give other tours and positions, and all of them are drawn equally often."""
    rng = np.random.default_rng(0)
    color, color_3 = (ColorPool(ColorRecallConfig(**COLOR), tours=n, seed=seed) for n, seed in ((3, 2), (1, 3)))
    view, view_3 = (ViewPool(ViewRecallConfig(**VIEW), positions=n, seed=seed) for n, seed in ((3, 2), (1, 3)))
    assert color.layout.tolist() == view.layout.tolist() == [0, 1, 2]
    assert color.key[0] != color_3.key[0] and (view.start[0] != view_3.start[0]).all()
    colors, views = color.sample_batch(300, rng), view.sample_batch(300, rng)
    for numbers, count in ((colors.tour, 3), (colors.colour, 6), (views.position, 3), (views.query, 10)):
        assert np.bincount(numbers, minlength=count).min() > 0.5 * 300 / count
    assert len(np.unique(colors.square, axis=0)) > 100  # of 140
    assert len(np.unique(views.key)) == 300


def test_stitched_views_by_hand():
    """A picture in the queried direction is the view, one behind shows nothing of it, and the nearest one counts."""
    pictures = np.random.default_rng(0).random((2, 6, 8, 3))
    view, source = stitch(pictures, np.array([2.0, 1.0]), 1.0, 90.0)
    np.testing.assert_allclose(view, pictures[1])
    assert (source == 1).all()
    view, source = stitch(pictures[:1], np.array([1.0 + math.pi]), 1.0, 90.0)
    assert np.isnan(view).all() and (source == -1).all()
    pictures[:] = np.array([0.25, 0.75])[:, None, None, None]
    view, source = stitch(pictures, np.array([1.3, 1.1]), 1.0, 90.0)
    np.testing.assert_allclose(view[..., 0], np.array([0.25, 0.75, np.nan])[source])  # -1 is the last one
    assert source[2, 3:].tolist() == [1, 1, 1, 1, -1]  # at the edge neither reaches


def test_a_stitched_view_is_that_of_the_rays():
    """Pictures of colours that follow from the direction of a ray, of pinhole cameras on the spot."""

    def picture(heading: float, hfov_deg: float) -> np.ndarray:
        focal = 16 / math.tan(math.radians(hfov_deg) / 2)
        row, column = np.indices((20, 32)) + 0.5
        ray = np.stack([np.full(row.shape, focal), 16 - column, 10 - row], -1)  # ahead, to the left, up
        cos, sin = math.cos(heading), math.sin(heading)
        ray = ray @ np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]]) / np.linalg.norm(ray, axis=-1)[..., None]
        return 0.5 + 0.3 * np.sin(2 * ray + np.array([0, 1, 2]))

    for hfov_deg, turns in ((90.0, (0.2, -0.4, 2.8)), (60.0, (-0.3, 0.5, 3.0))):
        for query in (0.0, 2.0, 6.0):
            headings = query + np.array(turns)
            pictures = np.stack([picture(heading, hfov_deg) for heading in headings])
            view, _ = stitch(pictures, headings, query, hfov_deg)
            error = np.abs(view - picture(query, hfov_deg))
            assert np.isnan(view).mean() < 0.02 and np.nanmean(error) < 0.0004  # of linear interpolation


def test_the_centre_of_a_room():
    corner = np.array([[0, 0], [4, 0], [4, 2], [2, 2], [2, 4], [0, 4]], float)  # three squares of 2 m
    room = Room("other", corner, 0, (90, 90, 90))
    house = House("corner", Shapes.empty(), (room,), (), (), ("building",))
    home = RecallHome(0, Home(house, NavigationMap(house)))
    np.testing.assert_allclose(home.centres, [[5 / 3, 5 / 3]])


def test_homes_that_cannot_be_played():
    with pytest.raises(ValueError, match=r"2 of 2 homes cannot be played in ColorRecall: house 'room 0' must have two"):
        TrialEnv(ColorRecall, world=OneRoom())
    with pytest.raises(ValueError, match=r"house 'room 1' must have two places .*, got 1"):
        RecallHome(1, OneRoom().home(1)).check_places()
    env = TrialEnv(ViewRecall, world=OneRoom(), image_size=(12, 16), steps=(5, 5))
    assert env.reset(seed=0)[0]["rgb"].any()


@pytest.mark.slow
@pytest.mark.skipif("MEMENVS_DATA" not in os.environ, reason="MEMENVS_DATA is not set")
def test_procthor():
    for task in (ColorRecall, ViewRecall):
        env = TrialEnv(task, world="procthor", split="all", image_size=(12, 16), steps=(30, 30))
        observation, info = env.reset(seed=0)
        assert observation["rgb"].std() > 5 and info["scene_id"]
        for _ in range(61):
            _, reward, terminated, _, info = env.step(env.oracle_action())
        assert terminated and reward == info.get("return", 1.0)


def test_bad_settings():
    for make, message in (
        (lambda: ColorRecallConfig(steps=(200,)), r"steps must be two integers, .*, got \(200,\)"),
        (lambda: ViewRecallConfig(steps=(0, 5)), r"steps\[0\] must be an integer of at least 1 .*, got 0"),
        (lambda: ViewRecallConfig(image_size=(0, 8)), "image_size: height must be between 1 and 4096 pixels, got 0"),
        (lambda: ColorRecallConfig(**SMALL, square_size=13), r"square_size must fit into image_size \(12, \d+\), got"),
        (lambda: ColorPool(ColorRecallConfig(), tours=0), "tours must be an integer of at least 1, got 0"),
        (lambda: ViewPool(ViewRecallConfig(), positions=1.5), "positions must be an integer of at least 1, got 1.5"),
        (lambda: ViewPool(ViewRecallConfig(), seed=-1), "seed must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (ColorRecall, {"key": -1}, r"option 'key' must be an integer in 0 \.\.\. 9223372036854775807, got -1"),
        (ColorRecall, {"colour": "gray"}, r"option 'colour' must be 0 \.\.\. 5 or one of \['red', .*\], got 'gray'"),
        (ColorRecall, {"colour": 6}, r"option 'colour' must be 0 \.\.\. 5 or one of .*, got 6"),
        (ColorRecall, {"square": (10, 0)}, r"row 0 \.\.\. 9 and column 0 \.\.\. 13, got \(10, 0\)"),
        (ColorRecall, {"square": (1.5, 0)}, r"must be two integers, .*got \(1.5, 0\)"),
        (ViewRecall, {"key": 2.0}, r"option 'key' must be an integer in 0 \.\.\. 9223372036854775807, got 2.0"),
        (ViewRecall, {"query": 10}, "option 'query' must be an integer of at least 0 and at most 9, got 10"),
        (ViewRecall, {"start": (0, 0)}, "option 'start' must be three finite numbers"),
        (ViewRecall, {"start": (-9, 0, 0)}, "option 'start' must lie on the largest navigable island"),
    ],
)
def test_bad_options(task, options, message):
    env = TrialEnv(task, **(COLOR if task is ColorRecall else VIEW))
    with pytest.raises(ValueError, match=message):
        env.reset(options={"layout": 0, **options})
