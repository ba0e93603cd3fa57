"""Wheel in a fresh environment: one import name, all files, no clash with other packages."""

import subprocess
import zipfile
from pathlib import Path

import pytest

import memenvs
from tests.virtual_environment import PIP, Environment

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[1]
LARGEST = 8_100_000  # bytes; weights of two encoders and three agents have 7.5 million before compression
#: A distribution that installs a top-level package called `agents`.
OTHER = "openai-agents"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Wheel of this tree, built from a copy without the files of earlier builds."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("needs a git checkout, which lists the files of the project")
    for name in listed.stdout.rstrip("\0").split("\0"):
        if not name.startswith(("docs/", "tests/")) and (ROOT / name).is_file():
            copy = folder / "memenvs" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "memenvs")]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("memenvs-*.whl")
    return built


RUN_AN_AGENT = """
import memenvs, memenvs.wrappers
from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.presets.pretrained import load_pretrained
env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, trial_episodes=None, size=4, max_episode_steps=8)
model = PartialUpdatePPO("MemoryPolicy", env, n_steps=16, n_updates=2, seed=0, policy_kwargs={"memory": "relic"})
model.learn(64)
load_pretrained("extobjnav-small")
print(memenvs.__file__, memenvs.agents.__file__)
"""


def test_one_top_level_name_and_a_small_file(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"memenvs"}
    assert wheel.stat().st_size < LARGEST


def test_the_wheel_has_every_module_and_data_file(wheel):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    expected = {
        name if name.startswith("memenvs/") else f"memenvs/{name}"
        for name in listed
        if name.startswith(("memenvs/", "agents/", "wrappers/")) and (ROOT / name).is_file()
    }
    assert expected - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_an_agent_runs_beside_a_distribution_called_agents(wheel, tmp_path):
    """Whichever is installed last, both stay whole."""
    environment = Environment(tmp_path / "env", sees_tree=False)
    for requirement in (OTHER, str(wheel), OTHER):
        done = environment.install(requirement)
        if requirement == OTHER and "No matching distribution" in done.stderr + done.stdout:
            pytest.skip(f"{OTHER} cannot be downloaded: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        if requirement != OTHER:
            assert environment.changed_files("memenvs") == environment.changed_files(OTHER) == []
    assert environment.changed_files("memenvs") == environment.changed_files(OTHER) == []
    printed = environment.run(RUN_AN_AGENT)
    assert printed.count(str(environment.packages)) == 2, printed
    assert "agents" in {path.name for path in environment.packages.iterdir()}  # that of the other distribution


@pytest.mark.parametrize("options", [[], ["--editable"]], ids=["wheel", "editable"])
def test_it_is_found_in_and_above_a_checkout(wheel, tmp_path, options):
    """The folder of the checkout is called like the package, and a wheel that was there before left a folder too."""
    tree = wheel.parent / "memenvs"
    environment = Environment(tmp_path / "env", sees_tree=False)
    left = environment.packages / "memenvs" / "__pycache__"
    left.mkdir(parents=True)
    (left / "a.nbi").touch()
    done = environment.install(*options, str(tree if options else wheel))
    assert done.returncode == 0, done.stderr
    code = "import memenvs, memenvs.agents, memenvs.wrappers; print(memenvs.__version__, memenvs.agents.__file__)"
    for folder in (tree, tree.parent, environment.packages):
        version, file = environment.run(code, folder).split()
        assert version == memenvs.__version__
        inside = environment.packages if folder != tree and not options else tree
        assert Path(file).is_relative_to(inside), (folder, file)
