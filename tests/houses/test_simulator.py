"""Robots in homes: moves, distances, images and counted pixels by hand."""

import math
import pickle

import numpy as np
import pytest

from memenvs.houses.house import BOX, House, Room, ShapeBuilder
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.renderer import render_frame
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter, Simulator, head_camera_poses


def two_rooms(length: float = 3.0) -> House:
    """Two rooms of `length` x 4 m with an opening of 1 m, a red cube (instance 1) in the second."""
    builder = ShapeBuilder()
    for y in (0.75, 3.25):
        builder.add(BOX, (length, y, 1.0), (0.05, 0.75, 1.0))
    builder.add(BOX, (length + 1.5, 2.0, 0.5), (0.1, 0.1, 0.5), colour=(255, 0, 0), instance=1)
    rooms = tuple(
        Room("other", np.array([[x, 0], [x + length, 0], [x + length, 4], [x, 4]], float), 0, (90, 90, 90))
        for x in (0.0, length)
    )
    return House("two-rooms", builder.build(), rooms, (), (), ("building", "cube|1"))


def make_simulator(count: int = 3) -> Simulator:
    simulator = Simulator(count, Camera(height=32, width=48))
    for i in range(count):
        house = two_rooms(3.0 + i)  # maps of different sizes
        simulator.load(i, NavigationMap(house), Scene.from_house(house))
        simulator.place(i, (1.0 + i, 2.0), 0.0, 0.0)
    return simulator


def test_robots_of_the_mask_move_and_rooms_are_those_they_are_in():
    simulator = make_simulator()
    assert not simulator.forward(np.array([True, False, True]), 0.25).any()
    assert simulator.position[:, 0] == pytest.approx([1.25, 2.0, 3.25])
    assert simulator.rooms.tolist() == [0, 0, 0]
    simulator.place(1, (7.0, 1.0), 7.0, 0.1)
    assert simulator.rooms.tolist() == [0, 1, 0]
    assert simulator.heading[1] == pytest.approx(7.0 - 2 * math.pi)


def test_distances_are_those_of_each_robots_own_map():
    simulator = make_simulator()
    maps = [NavigationMap(two_rooms(3.0 + i)) for i in range(3)]
    for i, navmap in enumerate(maps):
        field = navmap.distance_field(navmap.cells(np.array([[4.0 + i, 3.0]])))
        simulator.set_goals(i, field)
        assert (
            simulator.geodesic_distances()[i]
            == simulator.set_goals(i, field)
            == simulator.set_goals(i, field, navmap.goal_points(field))
            == navmap.distances(field, simulator.position[i : i + 1])[0]
        )


def test_without_goals_nothing_is_reached_and_foreign_fields_are_refused():
    simulator = make_simulator()
    assert np.isinf(simulator.geodesic_distances()).all()
    navmap = NavigationMap(two_rooms(3.0))
    field = navmap.distance_field(navmap.cells(np.array([[4.0, 3.0]])))
    for wrong in (field[:-1], field.astype(np.float64), np.repeat(field, 2)[::2]):
        with pytest.raises(ValueError, match="field must be"):
            simulator.set_goals(0, wrong)
    simulator.set_goals(0, field)
    assert np.isfinite(simulator.geodesic_distances()[0])
    simulator.load(0, navmap, Scene.from_house(two_rooms(3.0)))
    assert np.isinf(simulator.geodesic_distances()).all()
    with pytest.raises(RuntimeError, match="robot 0 is in no home"):
        Simulator(1, Camera()).set_goals(0, field)


def test_a_pickled_simulator_reads_distances_of_its_own():
    simulator, navmap = make_simulator(1), NavigationMap(two_rooms(3.0))
    field = navmap.distance_field(navmap.cells(np.array([[4.0, 3.0]])))
    simulator.set_goals(0, field)
    expected = simulator.geodesic_distances()
    again = pickle.loads(pickle.dumps(simulator))
    field[:] = 0.0
    assert again.geodesic_distances().tolist() == expected.tolist() != simulator.geodesic_distances().tolist()


def test_the_camera_is_ahead_of_the_robot():
    simulator = make_simulator(1)
    simulator.place(0, (1.0, 2.0), math.pi / 2, -0.3)
    expected = render_frame(two_rooms(), Camera(height=32, width=48), (1.0, 2.25, 1.2, math.pi / 2, -0.3))
    images = {"rgb": np.zeros((1, 32, 48, 3), np.uint8), "semantic": np.zeros((1, 32, 48), np.uint8)}
    simulator.render(np.array([True]), images)
    assert np.array_equal(images["rgb"][0], expected.rgb)
    assert np.array_equal(images["semantic"][0], expected.semantic)


def test_pixels_are_counted_in_large_images_of_masked_robots():
    simulator = make_simulator(2)
    counts = simulator.count_pixels(np.array([True, False]), np.array([[1, -1, 7], [1, -1, -1]]))
    frame = render_frame(two_rooms(), COUNTING_CAMERA, (1.25, 2.0, 1.2, 0.0, 0.0))
    assert counts.tolist() == [[(frame.instance == 1).sum(), 0, 0], [0, 0, 0]]
    assert counts[0, 0] > 200
    pose = head_camera_poses(np.array([[3.0, 2.0]]), np.array([0.05]), np.array([-0.4]))
    middle = PixelCounter().count(Scene.from_house(two_rooms()), pose, np.array([1]))  # of the same large image
    frame = render_frame(two_rooms(), COUNTING_CAMERA, tuple(pose[0]))
    assert middle.tolist() == [(frame.instance[96:160, 96:160] == 1).sum()] and middle[0] > 100


def test_objects_beside_the_image_need_not_be_counted():
    builder, rng = ShapeBuilder(), np.random.default_rng(0)
    builder.add(BOX, (2.0, 2.0, 0.3), (0.2, 0.2, 0.3))
    builder.add(BOX, (2.0, 2.0, 0.68), (0.08, 0.08, 0.08), instance=1)
    room = Room("other", np.array([[0, 0], [4, 0], [4, 4], [0, 4]], float), 0, (90, 90, 90))
    house = House("cube", builder.build(), (room,), (), (), ("building", "cube|1"))
    simulator = Simulator(1, Camera(height=8, width=8))
    simulator.load(0, NavigationMap(house), Scene.from_house(house))
    hidden, skipped = 0, 0
    for _ in range(400):
        turn, distance = rng.uniform(0, 6.3), rng.uniform(0.5, 1.6)
        position = (2.0 + distance * math.cos(turn), 2.0 + distance * math.sin(turn))
        simulator.place(0, position, rng.uniform(0, 6.3), rng.uniform(-1.0, 0.2))
        pixels = simulator.count_pixels(np.array([True]), np.array([[1]]))[0, 0]
        places = np.array([[[2.0, 2.0, 0.68], [np.inf] * 3]])
        seen, nothing = simulator.may_be_visible(np.array([0]), places, 2.0)[0]
        assert not nothing
        assert seen or pixels == 0
        hidden, skipped = hidden + (pixels == 0), skipped + (not seen)
    assert 0.6 * hidden < skipped < 400
    assert not simulator.may_be_visible(np.array([0]), places, 0.4).any()
