import numpy as np
import pytest

from memenvs.houses.classes import FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.house import House, Shapes
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.ycb import object_footprint, object_height, object_shapes, place_objects
from tests.houses.solids import corners, intersections

#: Data sheet of the object set, cm: along the object's x, y and z axes. The mug's 8 cm are its body; the handle adds 3.
SIZES = {
    "002_master_chef_can": (10.2, 10.2, 13.9), "003_cracker_box": (15.8, 6.0, 21.0), "004_sugar_box": (8.9, 3.8, 17.5),
    "005_tomato_soup_can": (6.6, 6.6, 10.1), "007_tuna_fish_can": (8.5, 8.5, 3.3), "008_pudding_box": (11.0, 3.5, 8.9),
    "009_gelatin_box": (8.5, 2.8, 7.3), "010_potted_meat_can": (9.7, 5.0, 8.2), "011_banana": (19.0, 3.6, 3.6),
    "012_strawberry": (4.4, 4.4, 5.5), "013_apple": (7.5, 7.5, 7.5), "014_lemon": (6.8, 5.4, 5.4),
    "015_peach": (5.9, 5.9, 5.9), "016_pear": (6.6, 6.6, 10.0), "017_orange": (7.3, 7.3, 7.3),
    "018_plum": (5.2, 5.2, 5.2), "021_bleach_cleanser": (9.8, 6.5, 25.0), "024_bowl": (15.9, 15.9, 5.3),
    "025_mug": (11.0, 8.0, 8.2), "026_sponge": (11.4, 7.2, 1.4),
}  # fmt: skip


def test_sizes_are_those_of_the_data_sheet():
    for category, name in enumerate(YCB_CLASSES):
        shapes = object_shapes(category, (1.0, 2.0, 0.5))
        low, high = (shapes.centre - shapes.half).min(0), (shapes.centre + shapes.half).max(0)
        size = np.array(SIZES[name]) / 100
        assert np.allclose(high - low, size, atol=1e-5), name
        assert np.allclose(low, [1.0 - size[0] / 2, 2.0 - size[1] / 2, 0.5], atol=1e-5), name
        assert np.allclose(object_footprint(category), size[:2]), name
        assert object_height(category) == pytest.approx(size[2]), name
        assert (shapes.semantic == FIRST_YCB_CLASS + category).all(), name
        assert (shapes.instance == 1).all(), name


def test_turned_object():
    banana, turned = object_shapes(8, (0, 0, 0)), object_shapes(8, (0, 0, 0), np.pi / 2)
    assert np.allclose(turned.centre[:, 1], banana.centre[:, 0], atol=1e-6)
    assert np.allclose(turned.centre[:, 0], -banana.centre[:, 1], atol=1e-6)


@pytest.mark.parametrize("seed", [0, 7, 1004])
def test_objects_stand_on_surfaces_apart_from_everything(seed):
    empty = procedural_house(seed)
    house, placed = place_objects(empty, np.random.default_rng(seed))
    shapes = house.shapes
    assert 30 <= len(placed) <= 40
    assert len(house.instances) == len(empty.instances) + len(placed)
    for item in placed:
        rows = np.flatnonzero(shapes.instance == item.instance)
        assert house.instances[item.instance] == f"{YCB_CLASSES[item.category]}|{item.instance}"
        assert (shapes.semantic[rows] == FIRST_YCB_CLASS + item.category).all()
        low = (shapes.centre[rows, 2] - shapes.half[rows, 2]).min()
        high = (shapes.centre[rows, 2] + shapes.half[rows, 2]).max()
        surface = house.receptacles[item.receptacle]
        assert abs(low - surface.centre[2]) < 1e-3
        assert item.position[2] == pytest.approx((low + high) / 2, abs=1e-5)
        cos, sin = np.cos(surface.yaw), np.sin(surface.yaw)
        for row in rows:
            offset = corners(shapes, row) - surface.centre[:2]
            on_surface = np.stack([offset @ (cos, sin), offset @ (-sin, cos)], 1)
            assert (abs(on_surface) < np.array(surface.half) + 1e-4).all()
    first = np.flatnonzero(shapes.instance >= len(empty.instances))
    assert not intersections(shapes, first)


def test_counts_and_categories_can_be_chosen():
    house = procedural_house(2)
    counts = {len(place_objects(house, np.random.default_rng(k), (3, 5))[1]) for k in range(30)}
    assert counts == {3, 4, 5}
    _, placed = place_objects(house, np.random.default_rng(0), categories=(2, 18))
    assert {item.category for item in placed} == {2, 18}


def test_categories_are_uniform():
    house = procedural_house(29)
    drawn = [o.category for k in range(60) for o in place_objects(house, np.random.default_rng(k))[1]]
    counts = np.bincount(drawn, minlength=20)
    expected = len(drawn) / 20
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-squared with 19 degrees of freedom, p = 0.001


def test_wrong_arguments_are_refused():
    house, rng = procedural_house(0), np.random.default_rng(0)
    bare = House("bare", Shapes.empty(), house.rooms, (), (), ("building",))
    for call, message in (
        (lambda: object_shapes(-1, (0, 0, 0)), "category must be within 0 to 19"),
        (lambda: object_shapes(20, (0, 0, 0)), "category must be within 0 to 19"),
        (lambda: place_objects(house, rng, (5, 4)), "count_range must be"),
        (lambda: place_objects(house, rng, categories=()), "categories must not be empty"),
        (lambda: place_objects(bare, rng), "'bare' has none"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
