"""FFHQ-world: paths, places, environments and observers."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from benchmarks._observers import observer_errors
from memenvs.faces.config import FacesConfig, LongStayConfig
from memenvs.faces.episodes import GRID, NO_ACTION
from memenvs.faces.observer import LinearPrediction
from memenvs.faces.places import place_table
from memenvs.retention import retained
from memenvs.wrappers import PlaceWrapper
from tests.faces.test_scripted_patches import patch_of

EPISODES = 300


def make(name: str = "", **kwargs: object) -> gym.Env:
    return gym.make(f"memenvs/FFHQWorld{name}-v0", **kwargs)


def worlds() -> list:
    splits = [(128, 256, 128), (192, 256, 64), (224, 256, 32)]
    return [FacesConfig().make_world(), *(LongStayConfig(steps=steps).make_world() for steps in splits)]


def sample(world, batch: int = EPISODES, seed: int = 0):
    return world.sample_batch(batch, np.random.default_rng(seed))


def neighbours(cell: int) -> list[int]:
    """Cells to the right, to the left, above and below; -1 where there is none."""
    row, column = divmod(cell, GRID)
    moved = [(row, column + 1), (row, column - 1), (row - 1, column), (row + 1, column)]
    return [r * GRID + c if 0 <= r < GRID and 0 <= c < GRID else -1 for r, c in moved]


def test_paths_go_to_the_neighbours_visited_least():
    """Each move of both paths, against visits counted here; choices between equals are uniform."""
    world = LongStayConfig(steps=(30, 20, 40)).make_world()
    episodes = sample(world, 200)
    regions = place_table(16)
    firsts: list[float] = []
    for b in range(len(episodes)):
        for cells, moves in (
            (episodes.cell[b], episodes.action[b, 1:]),
            (episodes.query_cell[b], episodes.query_action[b]),
        ):
            visits = np.zeros(GRID**2, int)
            visits[cells[0]] = 1
            is_query = len(cells) == 33
            for t, (before, move, after) in enumerate(zip(cells, moves, cells[1:], strict=False), 1):
                near = neighbours(int(before))
                assert near[move] == after
                in_stay = not is_query and 30 < t < 50
                allowed = [n for n in near if n >= 0 and (not in_stay or regions[n] == regions[cells[30]])]
                least = allowed if in_stay else [n for n in allowed if visits[n] == min(visits[n] for n in allowed)]
                assert after in least
                if len(least) == 2:
                    firsts.append(float(after == least[0]))
                visits[after] += 1
        assert (regions[episodes.cell[b, 30:50]] == regions[episodes.cell[b, 30]]).all()
    assert abs(np.mean(firsts) - 0.5) < 4 * 0.5 / len(firsts) ** 0.5
    assert (episodes.action[:, 0] == NO_ACTION).all()
    many = sample(FacesConfig(num_images=20).make_world(), 2000, 1)
    starts = many.cell[:, 0], many.query_cell[:, 0]
    assert all(starts_of.min() == 0 and starts_of.max() == 99 for starts_of in starts)
    counts = np.bincount(np.concatenate(starts))
    assert counts.min() > 12 and counts.max() < 80  # 40 expected in each of 100 cells
    assert np.mean(starts[0] == starts[1]) < 0.02  # 0.01 expected where they are independent
    assert np.bincount(many.picture, minlength=20).min() > 60  # 100 expected
    assert abs(np.corrcoef(many.picture, starts[0])[0, 1]) < 0.1


def test_cells_in_memory_at_the_end():
    """Cells that the paths cover, and those of which a memory of 256 steps keeps a patch."""
    for world, fifo, mvfo in zip(worlds(), (99.9, 82.5, 53.5, 32.5), (99.9, 99, 99, 99), strict=True):
        episodes = sample(world)
        for name, expected in (("fifo", fifo), ("mvfo", mvfo)):
            kept = retained(place_table(16)[episodes.cell].astype(int), name, 256)
            seen = [len(set(cell[k].tolist())) for cell, k in zip(episodes.cell, kept, strict=True)]
            assert abs(np.mean(seen) - expected) < 1.0, (world.steps, name, np.mean(seen))
    episodes = sample(FacesConfig().make_world())
    shares = [np.isin(query, cell).mean() for cell, query in zip(episodes.cell, episodes.query_cell, strict=True)]
    assert np.mean(shares) > 0.998


def test_a_batch_is_made_of_batches_of_one():
    for world in (worlds()[0], worlds()[3]):
        batch = sample(world, 5, 3)
        rng = np.random.default_rng(3)
        for b in range(5):
            one = world.sample_batch(1, rng)
            for name, values in vars(one).items():
                np.testing.assert_array_equal(values[0], getattr(batch, name)[b], err_msg=name)
        assert (batch.cell.shape, batch.query_cell.shape) == ((5, world.num_steps), (5, 33))
    episode = worlds()[3].make_episodes(np.array([5]))  # results in tables are of these bits
    assert episode.picture[0] == 23_979 and episode.cell[0, :6].tolist() == [75, 65, 66, 67, 77, 87]
    assert episode.cell[0, -6:].tolist() == [62, 52, 42, 43, 53, 54]
    assert episode.query_cell[0, :6].tolist() == [23, 33, 32, 31, 41, 51]
    for keys, message in (([1.0], "got float64"), ([-1], "keys must be integers"), ([[1]], "got int64")):
        with pytest.raises(ValueError, match=message):
            worlds()[0].make_episodes(np.array(keys))
    with pytest.raises(TypeError, match="rng must be a numpy Generator"):
        worlds()[0].sample_batch(1, 0)


def test_places_are_clusters_of_cells():
    cells = np.arange(GRID**2)
    positions = np.column_stack([cells % GRID, cells // GRID])
    for count in (8, 16, 32):
        table = place_table(count)
        assert sorted(set(table.tolist())) == list(range(count))
        centres = np.stack([positions[table == place].mean(0) for place in range(count)])
        distance = ((positions[:, None] - centres) ** 2).sum(-1)
        assert (distance[cells, table] <= distance.min(1) + 1e-9).all()  # each cell is in the nearest cluster
        assert distance[cells, table].sum() < {8: 410, 16: 190, 32: 90}[count]
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1
    assert place_table(16)[40:50].tolist() == [0, 0, 4, 7, 7, 7, 9, 12, 12, 12]  # results in tables have these places
    assert all(any(n >= 0 and place_table(16)[n] == place_table(16)[c] for n in neighbours(c)) for c in cells.tolist())
    assert place_table("cells").tolist() == cells.tolist()
    world = FacesConfig(places=8).make_world()
    episodes = sample(world, 4)
    np.testing.assert_array_equal(episodes.place, place_table(8)[episodes.cell])
    for places, count in ((32, 32), (100, 100), ("cells", 100)):
        assert PlaceWrapper(make(places=places)).observation_space["place"].n == count


def test_an_episode_by_hand():
    """Observations, rewards and the end, against the batch of one of its generator and the pixels of its picture."""
    for name, config, steps in (("", FacesConfig, 256), ("-LongStay", LongStayConfig, 512)):
        world, env = config().make_world(), make(name, trial_episodes=2)
        patch = Box(0, 255, (16, 16, 3), np.uint8)
        spaces = {"phase": Discrete(2), "move": Discrete(5), "moves": Box(0, 4, (32,), np.int64)}
        assert env.observation_space == Dict({"rgb": patch, "query": patch, **spaces})
        assert env.action_space == Box(-1, 1, (768,), np.float32)
        env.reset(seed=7)
        observation, info = env.reset()
        episode = world.sample_batch(1, np.random.default_rng([7, 0, 2]))
        assert info["key"] == episode.key[0] and info["picture"] == episode.picture[0]
        picture = world.pictures.read(info["picture"])
        views = np.stack([patch_of(picture, cell) for cell in range(GRID**2)])
        np.testing.assert_array_equal(world.patches(episode.picture, episode.cell)[0], views[episode.cell[0]])
        for t in range(steps):
            cell = episode.cell[0, t]
            np.testing.assert_array_equal(observation["rgb"], views[cell])
            assert observation["move"] == episode.action[0, t]
            assert info["place"] == episode.place[0, t]
            assert info["pose"].tolist() == [cell % GRID, 9 - cell // GRID, 0]
            assert (observation["phase"], observation["query"].any(), set(observation["moves"])) == (0, False, {4})
            observation, reward, terminated, _, info = env.step(np.zeros(768))
            assert (reward, terminated) == (0.0, False)
        query, moves, rng = episode.query_cell[0], episode.query_action[0], np.random.default_rng(0)
        np.testing.assert_array_equal(info["query_cell"], query)
        rewards = []
        for k in range(32):
            assert observation["phase"] == 1 and observation["move"] == moves[k] and not terminated
            np.testing.assert_array_equal(observation["moves"], moves)
            np.testing.assert_array_equal(observation["query"], views[query[0]])
            assert not observation["rgb"].any() and info["place"] == episode.place[0, -1]
            true = views[query[k + 1]].ravel() / 255
            np.testing.assert_allclose((env.unwrapped.oracle_action() + 1) / 2, true, atol=1e-6)
            action = rng.uniform(-1, 1, 768)
            observation, reward, terminated, truncated, info = env.step(action)
            assert reward == pytest.approx(-np.mean(((action + 1) / 2 - true) ** 2), abs=1e-6)
            rewards.append(reward)
            assert info["return"] == pytest.approx(sum(rewards)) and info["mse"] == pytest.approx(-np.mean(rewards))
        assert (terminated, truncated, info["num_steps"]) == (True, False, steps + 32)


def test_options():
    env = make(num_images=3, split="test")
    _, info = env.reset(seed=1)
    _, again = env.reset(seed=2, options={"key": info["key"]})
    assert again["picture"] == info["picture"] and (again["query_cell"] == info["query_cell"]).all()
    other = next(number for number in (69_000, 69_001) if number != info["picture"])
    observation, changed = env.reset(seed=1, options={"picture": other})
    assert changed["picture"] == other and (changed["query_cell"] == info["query_cell"]).all()
    column, row = changed["pose"][0], 9 - changed["pose"][1]
    picture = env.unwrapped.task.world.pictures.read(other)
    np.testing.assert_array_equal(observation["rgb"], patch_of(picture, int(GRID * row + column)))
    for options, message in (
        ({"key": -1}, r"option 'key' must be an integer in 0 \.\.\. 9223372036854775807, got -1"),
        ({"key": "x"}, "option 'key' must be an integer"),
        ({"picture": 5}, r"must be one of the 3 numbers of split 'test', 69000 \.\.\. 69002, got 5"),
        ({"picture": 1.0}, "option 'picture' must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)


def test_invalid_settings():
    steps = r"steps must be three integers, before \(at least 1\), during and after the stay"
    for name, settings, error, message in (
        ("", {"images": 3}, TypeError, "images must be text or None, got 3"),
        ("", {"num_images": 0}, ValueError, "num_images must be an integer of at least 1 or None, got 0"),
        ("", {"num_images": 62_001}, ValueError, "num_images must be at most 62000, the pictures of split 'train'"),
        ("", {"places": "rooms"}, ValueError, "places must be 'cells' or a number of clusters, 2 to 100, got 'rooms'"),
        ("", {"places": 1}, ValueError, "places must be 'cells' or a number of clusters, 2 to 100, got 1"),
        ("", {"places": True}, TypeError, "places must be"),
        ("", {"steps": (1, 2, 3)}, TypeError, "got an unexpected keyword argument 'steps'"),
        ("-LongStay", {"steps": (0, 2, 3)}, ValueError, steps),
        ("-LongStay", {"steps": [1, 2]}, ValueError, steps),
        ("-LongStay", {"steps": (1, -1, 3)}, ValueError, steps),
        ("-LongStay", {"steps": (10**6, 1, 0)}, ValueError, steps),
    ):
        with pytest.raises(error, match=message):
            make(name, **settings)
    for steps_given, cells in (([1, 1, 0], 2), ((3, 0, 0), 3), ((1, 0, 1), 2)):  # the shortest ones
        env = make("-LongStay", steps=steps_given)
        env.reset(seed=0)
        assert env.unwrapped.max_episode_steps == cells + 33


def test_pictures_for_people():
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    task, poses = env.unwrapped.task, []
    picture = task.world.pictures.read(int(task.info()["picture"][0]))
    for t in range(288):
        if t in (4, 260):
            image = env.render()
            assert image.shape == (352, 782, 3)
            lit = (image[::4, :352:4] == picture).all(-1).mean()
            assert lit < 0.3 if t == 4 else lit > 0.85
        _, _, _, _, info = env.step(env.unwrapped.oracle_action())
        poses.append(info["pose"])
    image = env.render()[:, 364:]
    rows = [image[90 + 80 * k : 90 + 80 * k + 32] for k in range(3)]
    made = [image[124 + 80 * k : 124 + 80 * k + 32] for k in range(3)]
    np.testing.assert_array_equal(rows, made)  # the oracle's patches are the true ones
    first = task.world.patches(task._episodes.picture, task._episodes.query_cell)[0, 1]
    np.testing.assert_array_equal(rows[0][::2, :32:2], first)
    drawn = task.draw_map(0, np.array(poses[:30]))
    x, y = task.map_pixels(0, np.array(poses[29:30]))[0].astype(int)
    assert drawn.shape == (352, 352, 3) and drawn[y, x].tolist() == [255, 70, 60]


@pytest.mark.slow
def test_patches_cannot_be_guessed():
    """Without memory most of the error stays; with it none does; in the long stay FIFO has lost most cells."""
    pictures = FacesConfig(num_images=30).make_world().pictures
    stack = np.stack([pictures.read(int(number)) for number in pictures.numbers])
    linear = {knows_map: LinearPrediction.fit(stack, knows_map=knows_map) for knows_map in (False, True)}
    errors = {}
    for config in (FacesConfig, LongStayConfig):
        world = config(split="validation", num_images=40).make_world()
        errors[config] = observer_errors(world, sample(world, 40), linear)
    plain, stay = errors[FacesConfig], errors[LongStayConfig]
    assert plain["fifo"] < 1e-4 < 0.035 < plain["no memory, map"] < 1.1 * plain["no memory"]
    assert plain["no memory"] < plain["mean patch"]
    assert plain["fifo, no map"] < 0.1 * plain["no memory"]
    assert stay["mvfo"] < 0.02 * stay["fifo"] and 0.3 * stay["no memory"] < stay["fifo"]


def test_a_linear_prediction_is_exact_where_the_truth_is_linear():
    """In pictures whose colours are linear in row and column, a patch follows from any other."""
    rng = np.random.default_rng(0)
    across, down = np.meshgrid(np.linspace(-1, 1, 88), np.linspace(-1, 1, 88))
    ramps = np.stack([across, down, np.ones((88, 88))], -1)
    factors = rng.uniform((-0.15, -0.22, 0.45), (0.22, 0.15, 0.55), (33, 3, 3))
    pictures = np.rint(255 * np.einsum("yxk,pck->pyxc", ramps, factors)).astype(np.uint8)
    for knows_map in (False, True):
        linear = LinearPrediction.fit(pictures[:30], knows_map=knows_map)
        for picture in pictures[30:]:
            start = rng.integers(100)
            near = [cell for cell in range(100) if max(abs(start // 10 - cell // 10), abs(start % 10 - cell % 10)) < 4]
            cells = np.array([start, *near])
            truth = np.stack([patch_of(picture, cell) for cell in cells.tolist()])
            np.testing.assert_allclose(linear.predict(truth[0], cells), truth[1:] / 255, atol=0.012)
        means = np.stack([patch_of(pictures[:30].mean(0) / 255, cell).ravel() for cell in range(100)])
        np.testing.assert_allclose(linear.means, means if knows_map else [means.mean(0)] * 100, atol=1e-5)
