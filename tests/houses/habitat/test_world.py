"""World "habitat" with a recorded stand-in for the package."""

import math
import os

import gymnasium as gym
import numpy as np
import pytest

from memenvs.houses.habitat import export, simulation
from memenvs.houses.habitat.dataset import find_dataset
from memenvs.houses.habitat.views import SampledView
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.worlds import make_house_world
from memenvs.testing import TaskUnderTest
from memenvs.testing.determinism import check_episodes, check_pickle, check_seeds
from tests.houses.habitat import fake_habitat_sim
from tests.houses.habitat.scenes import install_fake, make_house
from tests.houses.rendering.test_renderer import blank_images
from tests.side_files import put_side_files

pytest.importorskip("trimesh", reason="needs the extra export")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A data set of four homes, and the package that is not there."""
    install_fake(monkeypatch)
    for name in "abcd":
        export.export_habitat(make_house(name), tmp_path)
    yield tmp_path / export.DATASET_FILE
    simulation.simulation.cache_clear()


def test_side_files_are_no_homes(dataset):
    put_side_files(dataset.parent)
    assert len(make_house_world("habitat", habitat_dataset=dataset, split="all")) == 4
    export.export_habitat(make_house("e"), dataset.parent)
    assert "._" not in dataset.read_text()
    with pytest.raises(ValueError, match=rf"which has \['{dataset.name}'\]"):
        find_dataset(dataset.parent)


@pytest.mark.parametrize(
    ("task", "own", "check"),
    [
        ("ExtObjNav", {"obs_mode": "symbolic"}, check_pickle),
        ("Roaming", {}, check_pickle),
        ("ViewRecall", {"steps": (12, 8)}, check_episodes),
        ("ViewRecall", {"steps": (12, 8)}, check_seeds),
    ],
)
def test_tasks_do_not_know_the_world(task, own, check, dataset):
    """An episode is a function of its numbers, alone and in a batch, and a copy goes on as the original does."""
    check(TaskUnderTest.of(f"memenvs/{task}-v0", world="habitat", habitat_dataset=dataset, split="all", **own))


def test_moves_and_distances_are_those_of_the_mesh(dataset):
    homes = make_house_world("habitat", habitat_dataset=dataset, split="all")
    home = homes.home(0)
    navmap = home.navmap
    assert navmap.island_areas == pytest.approx([7.4 * 3.4], rel=1e-3)
    assert navmap.islands(np.array([(0.31, 0.31), (0.2, 2.0), (7.69, 3.69)])).tolist() == [0, -1, 0]
    assert navmap.snap(np.array([(0.0, 2.0), (-9.0, 2.0)])) == pytest.approx(np.array([(0.3, 2.0)] * 2), abs=0.06)
    start = navmap.random_points(np.random.default_rng(0), 50)
    assert (navmap.islands(start) == 0).all()
    sim = homes.make_simulator(2, Camera())
    for i in range(2):
        sim.load(i, navmap, home.make_scene(home.house))
        sim.place(i, (1.0 + 4 * i, 1.0), 0.0, 0.0)
        goals = navmap.cells(np.array([(7.025, 1.025)]))
        assert sim.set_goals(i, navmap.distance_field(goals)) == pytest.approx(6.025 - 4 * i, abs=2e-3)
    assert sim.forward(np.array([True, False]), 0.25).tolist() == [False, False]
    assert sim.geodesic_distances() == pytest.approx([5.775, 2.025], abs=2e-3)
    sim.place(0, (7.6, 1.0), 0.0, 0.0)
    assert sim.forward(np.array([True, False]), 0.25).tolist() == [True, False]  # the wall's mesh ends at 7.7
    assert sim.position[0] == pytest.approx((7.7, 1.0))
    free = np.array([False, True])
    sim.place(1, (7.7, 2.0), 0.0, 0.0)
    assert sim.drive(np.ones(2, bool), np.array([(0.25, 0.1), (0.01, 0.1)]), free).tolist() == [True, False]
    assert sim.pose[:, 2] == pytest.approx([0.0, 0.1])  # a blocked arc leaves the pose, a blocked turn turns
    assert sim.rooms.tolist() == [1, 1]


def test_images_are_in_our_frame(dataset):
    """Semantic ids become classes and instances; those of small objects too; unknown ids are nothing."""
    homes = make_house_world("habitat", habitat_dataset=dataset)
    home = homes.home(1)
    house, placed = homes.place_objects(home.house, np.random.default_rng(0), (3, 3), (0, 8))
    scene = home.make_scene(house)
    renderer = homes.make_renderer(Camera(height=2, width=4), 1)
    renderer.set_scene(0, scene)
    images = blank_images(Camera(height=2, width=4), 1)
    pose = np.array([[1.0, 2.0, 1.2, math.pi / 2, 0.3]])
    renderer.render(pose, **images)
    instances = [item.instance for item in placed]
    assert images["instance"][0, 0].tolist() == [*instances, instances[0]]
    assert images["depth"][0, 1, :, 0].tolist() == [1, 2, 3, 4] and (images["rgb"] == 99).all()
    state = next(agent.state for agent in simulation.simulation()._simulator.agents if agent.state is not None)
    assert state.position == pytest.approx([1.0, 1.2, -2.0])
    assert state.rotation == pytest.approx([math.sin(0.15), 0, 0, math.cos(0.15)])  # +y of ours is -z: no turn, 0.3 up
    assert scene.relabel(np.arange(256) + 1).classes[1] == scene.classes[1] + 1
    with pytest.raises(RuntimeError, match=r"without a home: \[0\]"):
        homes.make_renderer(Camera(), 1).render(pose, depth=np.zeros((1, 64, 64, 1), np.float32))


def test_views_have_the_rays_of_our_cameras():
    sampled = Camera(height=48, width=64, hfov_deg=58.0, sample_of=(480, 640))
    aside = Camera(height=1, width=64, principal_point=(31.95, -8.05))
    for ours in (Camera(), sampled, Camera(width=3), aside):
        view = SampledView.of(ours)
        focal = view.width / 2 / math.tan(view.hfov / 2)
        for (first, step, count), size, middle, length in (
            (view.columns, view.width, ours.centre[0], ours.width),
            (view.rows, view.height, ours.centre[1], ours.height),
        ):
            pixels = first + step * np.arange(count)
            assert pixels[0] >= 0 and pixels[-1] < size and count == length
            rays = (pixels + 0.5 - size / 2) / focal
            assert rays == pytest.approx((np.arange(length) - middle) / ours.focal, abs=1e-9)
    with pytest.raises(ValueError, match="optical axis"):
        SampledView.of(Camera(principal_point=(1 / 3, math.pi)))


def test_bad_data_sets_are_named(dataset, tmp_path, monkeypatch):
    make = lambda **settings: gym.make("memenvs/Roaming-v0", world="habitat", **settings)  # noqa: E731
    with pytest.raises(ValueError, match=r"habitat_dataset is missing: world 'habitat' needs .*\n.*memenvs house"):
        make()
    with pytest.raises(ValueError, match=r"must be a file, got the folder .*, which has \['homes\.scene_dataset_conf"):
        make(habitat_dataset=dataset.parent)
    for wrong, named in (
        (tmp_path / "nowhere.glb", f"file {tmp_path / 'nowhere.glb'}"),
        (tmp_path / "a" / "b" / "c.glb", f"file {tmp_path / 'a/b/c.glb'}, as there is no folder {tmp_path / 'a'}"),
    ):
        with pytest.raises(FileNotFoundError) as error:
            make(habitat_dataset=wrong)
        first, second = str(error.value).splitlines()  # what is wrong, then a short help
        assert first == f"habitat_dataset: there is no {named}" and len(second) <= 120
    with pytest.raises(ValueError, match="unknown split"):
        make(habitat_dataset=dataset, split="half")
    (dataset.parent / "homes" / "d.json").unlink()
    with pytest.raises(ValueError, match=r"there is no homes/d\.json, which `memenvs house --habitat` writes"):
        make(habitat_dataset=dataset)
    export.export_habitat(make_house("d"), dataset.parent)
    (tmp_path / "x.scene_dataset_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"x\.scene_dataset_config\.json"):
        make(habitat_dataset=tmp_path / "x.scene_dataset_config.json")
    monkeypatch.setattr(fake_habitat_sim.PathFinder, "build", lambda *_: False)
    with pytest.raises(ValueError, match=r"finds no floor in .* for a robot of radius 2\.0 m"):
        make_house_world("habitat", habitat_dataset=dataset, robot_radius=2.0).home(0)
    monkeypatch.setattr(os, "getpid", lambda: -5)
    with pytest.raises(RuntimeError, match=r"forked .*context='spawn'"):
        simulation.simulation().enter(simulation.SceneName(str(dataset), ""))
