"""Colours of the compiled shader against a plain one."""

import numpy as np

from memenvs.houses.rendering.renderer import Camera, render_frame
from tests.houses.rendering.colours import shade
from tests.houses.rendering.ray_caster import cast, pixel_rays
from tests.houses.rendering.test_renderer import random_house, random_pose


def test_colours_are_texel_times_base_colour_times_light() -> None:
    rng = np.random.default_rng(7)
    camera = Camera(height=40, width=56)
    errors: dict[str, list[float]] = {"floor": [], "box": [], "cylinder": [], "ellipsoid": []}
    for seed in range(4):
        house, pose = random_house(seed), random_pose(rng, pitch=0.6)
        rgb, hits = render_frame(house, camera, pose).rgb, cast(house, camera, pose)
        eye, rays = np.array(pose[:3]), pixel_rays(camera, pose[3], pose[4], (0.0, 0.0)).reshape(*rgb.shape)
        for j, i in np.argwhere(hits[..., 3] != 0):
            depth, solid = hits[j, i, 0], int(hits[j, i, 3])
            colour = shade(house, camera.focal, eye, eye + depth * rays[j, i], depth, solid)
            kind = "floor" if solid < 0 else ("box", "cylinder", "ellipsoid")[house.shapes.kind[solid - 1]]
            errors[kind].append(abs(colour - rgb[j, i]).max())
    for kind, differences in errors.items():
        assert len(differences) >= 40, kind
        # Single precision may round to the next texel or mipmap level, and an edge may belong to either side.
        assert np.mean(np.array(differences) <= 3) > 0.98, kind
        assert np.mean(differences) < 1.5, kind
