"""The width of the vectors of the renderer, and the same bits with each."""

import os

import pytest

from memenvs.houses.rendering.kernels.simd import WIDTH_VARIABLE, choose_vector_width
from tests.processes import Python, run_python

SCRIPT = """
import hashlib
import numpy as np
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.rendering.kernels.simd import VECTOR_WIDTH
from memenvs.houses.rendering.renderer import Camera, Scene, render_frame

rng, found, seen = np.random.default_rng(0), hashlib.sha256(), set()
scene = Scene.from_house(procedural_house(0))
for height, width, field in ((48, 64, 90.0), (37, 53, 120.0), (256, 256, 90.0), (30, 7, 30.0)):
    for pitch in (0.0, -0.5, 0.4, -1.3) * 6:
        pose = (*rng.uniform(-1, 12, 2), rng.uniform(0.3, 4.0), rng.uniform(0, 6.3), pitch)
        frame = render_frame(scene, Camera(height=height, width=width, hfov_deg=field), pose)
        for image in (frame.rgb, frame.depth, frame.semantic, frame.instance):
            found.update(image.tobytes())
        seen |= {*frame.semantic.ravel().tolist()}
assert len(seen) > 5
print(VECTOR_WIDTH, found.hexdigest())
"""


def test_the_width_is_that_of_the_processor() -> None:
    assert choose_vector_width(None, "+avx,+avx2,-avx512f") == 8
    assert choose_vector_width(None, "+avx2,+avx512f") == 16
    assert {choose_vector_width(None, features) for features in ("+sse2,-avx2", "+neon", "")} == {4}
    assert [choose_vector_width(setting, "+avx2") for setting in ("4", "8", "16")] == [4, 8, 16]


def test_an_unknown_width_is_refused_by_name() -> None:
    for setting in ("", "12", "08", "wide"):
        with pytest.raises(ValueError, match=f"{WIDTH_VARIABLE} must be one of 16, 8, 4, got '{setting}'"):
            choose_vector_width(setting, "+avx2")
    environ = {**os.environ, WIDTH_VARIABLE: "12"}
    done = run_python("-c", "import memenvs.houses.rendering.kernels.simd", environ=environ)
    assert done.returncode == 1 and f"{WIDTH_VARIABLE} must be one of" in done.stderr.splitlines()[-1]


@pytest.mark.nightly  # each width is compiled anew
def test_images_have_the_same_bits_with_every_width() -> None:
    printed = {}
    for width in ("4", "8", "16"):
        done = Python("-c", SCRIPT, environ={**os.environ, WIDTH_VARIABLE: width}).wait(900.0)
        assert done.returncode == 0, done.stderr
        printed[width] = done.stdout.split()
    assert [chosen for chosen, _ in printed.values()] == list(printed)
    assert len({bits for _, bits in printed.values()}) == 1
