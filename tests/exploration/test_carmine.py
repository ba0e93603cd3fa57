"""Rays and depth of the camera, and labels."""

import math

import numpy as np
import pytest

from memenvs.exploration.carmine import HFOV_DEG, frame_camera, scan_camera, sense_depth
from memenvs.exploration.nyu40 import LABELS, NYU40, NYU40_OF
from memenvs.houses.classes import CLASSES
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.renderer import render_frame
from memenvs.houses.rendering.scene import Scene
from memenvs.random import draw_keys, fill_table_normals

POSE = (5.0, 5.0, 1.061, 0.4, 0.0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene.from_house(procedural_house(3))


def test_rays_are_those_of_the_specification():
    camera = frame_camera((48, 64))
    assert camera.centre == pytest.approx((31.95, 23.95), abs=1e-12)
    assert camera.focal == pytest.approx(57.405, abs=1e-9)
    edges = [math.degrees(2 * math.atan(half / 574.05)) for half in (320, 240)]
    assert edges == pytest.approx([58.3, 45.4], abs=0.05)
    assert pytest.approx(edges[0]) == HFOV_DEG


def test_images_are_every_tenth_pixel_of_the_sensor(scene):
    whole = render_frame(scene, Camera(height=480, width=640, hfov_deg=HFOV_DEG), POSE)
    for size, k in (((48, 64), 10), ((24, 32), 20)):
        frame = render_frame(scene, frame_camera(size), POSE)
        assert (frame.semantic == whole.semantic[::k, ::k]).mean() > 0.999
        np.testing.assert_allclose(np.median(np.abs(frame.depth - whole.depth[::k, ::k])), 0, atol=1e-4)


def test_scan_is_a_row_below_level(scene):
    across, down = scan_camera().centre
    assert across == frame_camera((48, 64)).centre[0]
    assert math.degrees(math.atan(-down * 10 / 574.05)) == pytest.approx(8.0, abs=0.1)
    for heading in np.linspace(0, 6, 13):
        pose = (*POSE[:3], heading, 0.0)
        frame, scan = render_frame(scene, frame_camera((48, 64)), pose), render_frame(scene, scan_camera(), pose)
        assert (scan.semantic[0] == frame.semantic[32]).all()
        np.testing.assert_allclose(scan.depth[0], frame.depth[32], rtol=1e-3)


def test_depth_is_known_up_to_five_metres_and_noisy():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.3, 8.0, (40, 3072)).astype(np.float32)
    true[:, :100], true[:, 100] = 0.0, 5.0
    true[:, 101] = np.nextafter(np.float32(5.0), np.float32(6.0))
    true[:, 102:302] = 0.01  # where the noise is larger than the depth, which stays above 0
    measured = np.full_like(true, -1.0)
    rows, keys = np.arange(0, 40, 2), draw_keys(rng, 40)
    sense_depth(true, rows, keys, np.arange(40), measured)
    assert (measured[1::2] == -1.0).all()
    true, measured = true[rows], measured[rows]
    is_known = (true > 0) & (true <= 5)
    assert ((measured > 0) == is_known).all()
    assert (measured[~is_known] == 0).all()
    noise = (measured - true)[is_known & (true >= 0.3)]
    assert noise.std() == pytest.approx(0.05, abs=0.001)
    assert abs(noise.mean()) < 0.001


def test_no_two_pixels_or_steps_share_noise():
    """A step uses up to 2**17 numbers of the stream, one for four pixels, in images of every size."""
    key, seen = np.array([5], np.uint64), set()
    for step, pixels in ((0, 480 * 640), (1, 480 * 640), (2, 1301)):
        noise, out = np.zeros(pixels, np.float32), np.zeros((1, pixels), np.float32)
        sense_depth(np.full_like(out, 2.0), np.zeros(1, int), key, np.array([step]), out)
        fill_table_normals(key[0], np.uint64(step * 2**17), noise)
        np.testing.assert_allclose(out[0], 2.0 + 0.05 * noise, rtol=1e-6)
        fours = {four.tobytes() for four in noise[: pixels // 4 * 4].reshape(-1, 4)}
        assert len(fours) == pixels // 4 and not fours & seen
        seen |= fours
    assert out[0, :4] == pytest.approx([1.9970293, 1.9991735, 2.0248268, 2.0402138], abs=1e-6)  # in each version


def test_every_class_has_a_label():
    assert set(NYU40_OF) == set(CLASSES)
    assert len(NYU40) == 41
    assert [NYU40.index(name) for name in ("wall", "bed", "sofa", "table", "bookshelf")] == [1, 4, 6, 7, 10]
    assert [NYU40.index(name) for name in ("refrigerator", "television", "bathtub", "other prop")] == [24, 25, 36, 40]
    assert LABELS[CLASSES.index("outside")] == 0
