"""Maps of homes from above."""

import numpy as np
import pytest

from memenvs.houses.classes import CLASS_INDEX
from memenvs.houses.house import BOX, House, Room, ShapeBuilder
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.rendering.topdown import HOUSE_LEGEND, Marker, draw_legend, draw_topdown, object_colour
from memenvs.houses.ycb import object_shapes

SCALE, MARGIN = 40.0, 0.4


def l_shaped_home() -> House:
    """An L of 4 m x 3 m with a wall along y = 0 and a red table at (1, 1)."""
    polygon = np.array([(0, 0), (4, 0), (4, 1.5), (2, 1.5), (2, 3), (0, 3)], float)
    builder = ShapeBuilder()
    builder.add(BOX, (2, 0.05, 1.35), (2, 0.05, 1.35), semantic=CLASS_INDEX["wall"])
    table = {"colour": (255, 0, 0), "semantic": CLASS_INDEX["dining_table"], "instance": 1}
    builder.add(BOX, (1, 1, 0.4), (0.4, 0.2, 0.4), yaw=0.5, **table)
    room = Room("study", polygon, 3, (100, 150, 100))
    return House("l", builder.build(), (room,), (), (), ("building", "dining_table|1"))


def pixel(image: np.ndarray, house: House, x: float, y: float) -> np.ndarray:
    (x0, _), (_, y1) = house.bounds
    return image[int((y1 + MARGIN - y) * SCALE), int((x - x0 + MARGIN) * SCALE)].astype(int)


def draw(house: House, **options) -> np.ndarray:
    return draw_topdown(house, pixels_per_metre=SCALE, margin=MARGIN, has_labels=False, **options)


def test_what_is_where():
    house = l_shaped_home()
    image = draw(house)
    assert image.shape == (round(3.8 * SCALE), round(4.8 * SCALE), 3)
    assert image.dtype == np.uint8
    assert pixel(image, house, 3.0, 0.05).max() < 90  # wall
    red, green, blue = pixel(image, house, 1.0, 1.0)  # table
    assert red > 200 and max(green, blue) < 60
    red, green, blue = pixel(image, house, 1.3, 1.17)  # table, in the direction of its turn
    assert red > 200 and max(green, blue) < 60
    red, green, blue = pixel(image, house, 1.3, 0.85)  # floor: the table is turned away
    assert green > red and green > blue
    assert pixel(image, house, 3.0, 2.5).min() > 240  # paper in the missing corner
    assert pixel(image, house, -0.2, -0.2).min() > 240


def test_objects_are_dots():
    house = l_shaped_home().with_objects(object_shapes(10, (1.0, 1.0, 0.8)), ["013_apple|2"])
    assert np.abs(pixel(draw(house), house, 1.0, 1.0) - object_colour(10)).max() < 12
    assert len({object_colour(category) for category in range(20)}) == 20


def test_path_runs_from_green_to_red_through_time():
    house = l_shaped_home()
    path = np.stack([np.linspace(0.5, 3.5, 31), np.full(31, 0.6)], 1)
    image = draw(house, paths=[path], markers=[Marker((0.5, 2.5), (0, 0, 255))])
    assert np.argmax(pixel(image, house, 0.5, 0.6)) == 1
    assert np.argmax(pixel(image, house, 3.5, 0.6)) == 0
    assert np.argmax(pixel(image, house, 0.8, 0.6)) == 2  # early: blue
    assert tuple(pixel(image, house, 0.5, 2.5)) == (0, 0, 255)
    single = draw(house, paths=[np.array([[3.0, 1.0, 0.2]])])  # a path of one pose
    assert np.argmax(pixel(single, house, 3.0, 1.0)) == 0


def test_wrong_arguments_are_refused():
    for options, message in (
        ({"pixels_per_metre": 0}, "pixels_per_metre must be > 0, got 0"),
        ({"margin": -1}, "margin must be at least 0 m, got -1"),
        ({"paths": [np.zeros((0, 2))]}, "path must have the shape"),
        ({"paths": [np.zeros(4)]}, "path must have the shape"),
        ({"squares": np.zeros((2, 4))}, r"squares must have the shape \(K, 3\)"),
        ({"crosses": np.zeros(2)}, r"crosses must have the shape \(K, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            draw_topdown(l_shaped_home(), **options)


def test_navigable_cells_are_tinted():
    house = procedural_house(0)
    navigation = NavigationMap(house)
    plain, tinted = draw(house), draw(house, navigation=navigation)
    free = navigation.points(np.flatnonzero(navigation.free))
    blocked = navigation.points(np.flatnonzero(~navigation.free & (navigation.room >= 0)))
    changed = [pixel(plain, house, *p)[0] > pixel(tinted, house, *p)[0] for p in free[::211]]  # less red
    assert np.mean(changed) > 0.95
    kept = [(pixel(plain, house, *p) == pixel(tinted, house, *p)).all() for p in blocked[::211]]
    assert np.mean(kept) > 0.8  # cells at an edge share pixels with their neighbours


def test_labels_and_scale_are_drawn():
    house = l_shaped_home()
    with_labels, without = draw_topdown(house, pixels_per_metre=SCALE, margin=MARGIN), draw(house)
    assert with_labels.shape == without.shape
    assert (with_labels != without).any(-1).sum() > 200


def test_a_label_stays_in_the_image():
    house = l_shaped_home()
    inside = draw(house, markers=[Marker((2.0, 1.0), label="bookshelf")])
    outside = draw(house, markers=[Marker((3.95, 1.0), label="bookshelf")])  # the text is wider than what is left
    ink = [(image.max(-1) < 110) & (draw(house).max(-1) > 150) for image in (inside, outside)]
    assert ink[0].sum() == pytest.approx(ink[1].sum(), rel=0.15)
    assert not ink[1][:, -1].any()


def test_a_legend_takes_the_lines_that_it_needs():
    goal = Marker((9.0, 9.0), (0, 0, 255))
    entries = [("path", "the path"), ("cross", "collision"), ("square", "cell"), (goal, "goal")]
    wide, narrow = draw_legend(entries, 600), draw_legend(entries, 200)
    assert wide.shape[1:] == (600, 3) and narrow.shape[1:] == (200, 3)
    assert narrow.shape[0] > wide.shape[0]
    for image in (wide, narrow):
        assert (np.abs(image.astype(int) - (0, 0, 255)).max(-1) < 10).any()
        assert (np.abs(image.astype(int) - (196, 0, 120)).max(-1) < 10).any()
        assert image[:, -1].min() > 240  # nothing is cut off
    with pytest.raises(ValueError, match=r"a symbol must be a Marker or one of .* got 'circle'"):
        draw_legend([("circle", "x")], 100)


def test_the_legend_of_a_home_has_the_colours_of_its_map():
    house = procedural_house(1000)
    plan, legend = draw_topdown(house), draw_legend(HOUSE_LEGEND, 800)
    for k, name in enumerate(("wall", "window", "door")):  # what the map shows of these it shows in one colour each
        patch = draw_legend([HOUSE_LEGEND[k]], 800)[12, 22].astype(int)  # the middle of the first sign
        for image in (plan, legend):
            assert (np.abs(image - patch).max(-1) < 16).sum() > 50, name
    red, green, blue = draw_legend([HOUSE_LEGEND[-1]], 800)[12, 22].astype(int)  # where a robot can be
    assert green > max(red, blue) + 20
