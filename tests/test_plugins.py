"""Environments, memories and presets of others: `register`, entry points, `--import`."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import pytest

import memenvs
from memenvs import registry
from memenvs.agents import memory as memories_module
from memenvs.agents import presets as presets_module
from memenvs.agents import register_memory, register_preset
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.memory import make_memory, memories, required_inputs
from memenvs.agents.memory.recurrent import GRUMemory, RecurrentConfig
from memenvs.agents.presets import Preset, find_preset
from memenvs.darkroom.env import Darkroom
from memenvs.registry import check_registered, environments, find_environment
from tests.bare_task import Bare
from tests.test_cli import call, document, refuse

HERE = rf"{__file__}:\d+"


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables that a test may fill."""
    monkeypatch.setattr(registry, "_ROWS", dict(registry._ROWS))
    monkeypatch.setattr(memories_module, "_TABLE", dict(memories_module._TABLE))
    for name in ("_REGISTERED", "_PLACES"):
        monkeypatch.setattr(presets_module, name, {})
    before = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(before)


class Small(Darkroom):
    """A task of a user."""


def test_an_environment_is_registered_once() -> None:
    row = memenvs.register("mine/Small-v0", Small, remembers="the goal", defaults={"size": 3, "trial_episodes": 2})
    assert (row.id, row.family, row.score_key, row.task) == ("mine/Small-v0", "mine", "return", f"{__name__}:Small")
    assert row in environments() and find_environment("Small-v0") is find_environment("mine/Small") is row
    env = gym.make("mine/Small-v0", size=4)
    assert (env.unwrapped.task.config.size, env.unwrapped.trial_episodes) == (4, 2)
    assert gym.make_vec("mine/Small-v0", 3).unwrapped.task.num_envs == 3
    assert gym.envs.registration.EnvSpec.from_json(env.spec.to_json()).kwargs["task"] == f"{__name__}:Small"
    again = {"remembers": "the goal", "defaults": {"size": 3, "trial_episodes": 2}}
    assert memenvs.register("mine/Small-v0", f"{__name__}:Small", **again) == row  # the same, as by a second import
    gym.register("mine/Pole-v1", entry_point=gym.spec("CartPole-v1").entry_point)
    for id, message in (
        ("mine/Small-v0", rf"id 'mine/Small-v0' is registered twice: at {HERE} and at {HERE}"),
        ("memenvs/Darkroom-v0", rf"'memenvs/Darkroom-v0' is registered twice: at memenvs\.registry and at {HERE}"),
        ("mine/Pole-v1", rf"'mine/Pole-v1' is registered twice: with Gymnasium, as '.*CartPoleEnv', and at {HERE}"),
        ("CartPole-v1", "id must have the form 'namespace/Name-v0', got 'CartPole-v1' without a namespace"),
        ("mine/Small", "id must have the form 'namespace/Name-v0', got 'mine/Small' without its version"),
        ("a/b/c-v0", "id must have the form 'namespace/Name-v0', got 'a/b/c-v0'"),
        (3, "id must have the form 'namespace/Name-v0', got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            memenvs.register(id, Small)
    for task, error, message in (
        (dict, TypeError, r"task must be a subclass of memenvs\.core\.BatchTask or 'module:Class', got <class 'dict'>"),
        ("no colon", ValueError, "task must be a class or 'module:Class', got 'no colon'"),
    ):
        with pytest.raises(error, match=message):
            memenvs.register("mine/Other-v0", task)
    memenvs.register("mine/Missing-v0", "memenvs.darkroom.env:Lightroom")
    with pytest.raises(ImportError, match=r"'memenvs\.darkroom\.env:Lightroom': the module has no 'Lightroom'"):
        gym.make("mine/Missing-v0")
    memenvs.register("mine/Wrong-v0", "memenvs.darkroom.config:DarkroomConfig")
    with pytest.raises(TypeError, match="task must be a subclass of BatchTask"):
        gym.make("mine/Wrong-v0")


def test_an_id_is_found_by_its_whole_name_first() -> None:
    for id in ("mine/CartPole-v1", "mine/Darkroom-v0", "mine/Same-v0", "other/Same-v0", "mine/My-vision-v0"):
        memenvs.register(id, Small)
    assert find_environment("CartPole-v1").namespace == "" and find_environment("Darkroom-v0").namespace == "memenvs"
    with pytest.raises(ValueError, match=r"'Same-v0' must have its namespace: mine/Same-v0 or other/Same-v0"):
        find_environment("Same-v0")
    for id in ("mine/My", "..here:mine/Small-v0"):  # "-vision" is no version
        for find in (find_environment, check_registered):
            with pytest.raises(ValueError, match=f"id '{id}'"):
                find(id)


def test_a_row_can_be_pickled_and_registered_again_after_a_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    row = memenvs.register("mine/Small-v0", Small, defaults={"size": 3})
    assert pickle.loads(pickle.dumps(row)) == row
    monkeypatch.setattr(registry, "_ROWS", {})
    registry.register_all()
    assert memenvs.register("mine/Small-v0", Small, defaults={"size": 3}) == row
    assert len(environments()) == len(memenvs.ENVIRONMENTS) + 1


def test_settings_and_versions_that_cannot_be_registered() -> None:
    gym.register("mine/Small", entry_point="memenvs.core:TrialEnv")
    with pytest.raises(ValueError, match=r"'mine/Small-v0' cannot be registered: .*versioned"):
        memenvs.register("mine/Small-v0", Small)
    with pytest.raises(ValueError, match="defaults must not have 'task'"):
        memenvs.register("mine/Other-v0", Small, defaults={"task": Darkroom})
    for wrong in ([1], {1: 2}):
        with pytest.raises(TypeError, match="defaults must be a dict of settings by name, got"):
            memenvs.register("mine/Other-v0", Small, defaults=wrong)  # type: ignore[arg-type]


def test_a_class_that_no_other_process_finds_is_kept_as_it_is() -> None:
    class Local(Darkroom):
        """A task within a function."""

    row = memenvs.register("mine/Local-v0", Local)
    assert row.task is Local
    assert isinstance(gym.make("mine/Local-v0").unwrapped.task, Local)


def test_ids_of_gymnasium_are_described() -> None:
    gym.register("mine/Plain-v0", entry_point="memenvs.core:TrialEnv", kwargs={"task": Small, "size": 3})
    row = find_environment("mine/Plain-v0")
    assert (row.task, dict(row.defaults), row.id) == (Small, {"size": 3}, "mine/Plain-v0")
    with pytest.raises(ValueError, match=r"unknown id 'mine/Plane-v0'; choose from .*; 'MODULE:ID' imports the module"):
        find_environment("mine/Plane-v0")
    with pytest.raises(ValueError, match=r"unknown id '\?'; none of \d+ is similar; `memenvs list` lists the tasks"):
        check_registered("?")
    foreign = find_environment("CartPole-v1")
    assert (foreign.task, foreign.id, foreign.family) == (None, "CartPole-v1", "")
    assert {each.id for each in environments()} == {each.id for each in memenvs.ENVIRONMENTS}


def test_a_memory_is_registered_once() -> None:
    register_memory("mine", GRUMemory, RecurrentConfig, "a GRU of mine")
    register_memory("mine", "memenvs.agents.memory.recurrent:GRUMemory", RecurrentConfig, "a GRU of mine")
    assert memories()["mine"] == "a GRU of mine" and "mine" not in memories_module.MEMORIES
    assert isinstance(make_memory("mine", 4, hidden_dim=3), GRUMemory)
    with pytest.raises(ValueError, match=rf"memory 'mine' is registered twice: at {HERE} and at {HERE}"):
        register_memory("mine", GRUMemory, RecurrentConfig, "another")
    with pytest.raises(ValueError, match=rf"'gru' is registered twice: at memenvs\.agents\.memory and at {HERE}"):
        register_memory("gru", GRUMemory, RecurrentConfig, "another")
    with pytest.raises(ValueError, match=r"unknown memory 'mien'; .*'mine'.* \(register_memory adds one, on the "):
        make_memory("mien", 4)
    for arguments, message in (
        (("x", dict, RecurrentConfig, ""), "memory must be a subclass of Memory or 'module:Class', got <class 'dict'>"),
        (("x", GRUMemory, dict, ""), "config must be a frozen dataclass or 'module:Class', got <class 'dict'>"),
        ((3, GRUMemory, RecurrentConfig, ""), "name must be a text, got 3"),
    ):
        with pytest.raises(TypeError, match=message):
            register_memory(*arguments)
    for argument, paths in (("memory", ("GRUMemory", RecurrentConfig)), ("config", (GRUMemory, "a:b:c"))):
        with pytest.raises(ValueError, match=f"{argument} must be a class or 'module:Class', got '"):
            register_memory("x", *paths, "")
    register_memory("broken", "memenvs.agents.memory.recurrent:Missing", RecurrentConfig, "")
    with pytest.raises(ImportError, match="the module has no 'Missing'"):
        make_memory("broken", 4)


@dataclass(frozen=True)
class Unchecked:
    """Settings of a user, without a check."""

    hidden_dim: int = 4
    layers: int = 1


def test_errors_of_the_code_of_a_memory_name_it_and_its_settings() -> None:
    register_memory("unchecked", GRUMemory, Unchecked, "a GRU of mine")
    for wrong, error in (("x", TypeError), (-3, ValueError)):  # RuntimeError of torch
        with pytest.raises(error, match=rf"^memory 'unchecked' with memory_kwargs \{{'hidden_dim': {wrong!r}\}}: ."):
            make_memory("unchecked", 4, hidden_dim=wrong)
    with pytest.raises(TypeError, match=r"^memory 'gru' with memory_kwargs \{'layers': 'x'\}: layers must be"):
        required_inputs("gru", layers="x")


def test_a_preset_is_registered_once() -> None:
    preset = Preset("a run of mine", RunConfig(env="CartPole-v1"))
    register_preset("mine", preset, "Mine")
    register_preset("mine", preset, "Mine")
    assert find_preset("mine") == preset.config and presets_module.FAMILIES["Mine"] == {"mine": preset}
    assert list(presets_module.PRESETS)[-1] == "mine"
    other = Preset("another run", preset.config)
    for each, family in ((other, "Mine"), (preset, "Other")):
        with pytest.raises(ValueError, match=rf"preset 'mine' is registered twice: at {HERE} and at {HERE}"):
            register_preset("mine", each, family)
    with pytest.raises(ValueError, match=rf"'darkroom' is registered twice: at memenvs\.agents\.presets, 'Re.*{HERE}"):
        register_preset("darkroom", preset, "Mine")
    with pytest.raises(ValueError, match="name of a preset must be a text that is not empty, got ''"):
        register_preset("", preset, "Mine")
    with pytest.raises(TypeError, match="preset must be a Preset, got RunConfig"):
        register_preset("x", preset.config, "Mine")  # type: ignore[arg-type]


PLUGIN = """
import time

import memenvs
from memenvs.agents import presets, memory

def environments():
    memenvs.register("plugged/Small-v0", "memenvs.darkroom.env:Darkroom", remembers="a goal", defaults={"size": 3})

def twice():
    memenvs.register("memenvs/Darkroom-v0", "memenvs.darkroom.env:Darkroom")

def memories():
    classes = [f"memenvs.agents.memory.recurrent:{name}" for name in ("GRUMemory", "RecurrentConfig")]
    memory.register_memory("plugged", *classes, "mine")

def preset():
    from memenvs.agents.experiments.config import RunConfig
    presets.register_preset("plugged", presets.Preset("mine", RunConfig(env="plugged/Small-v0")), "Plugged")

def looks_up():
    print("looks up")
    time.sleep(0.2)  # other threads wait
    assert "gru" in memory.memories()
    memories()

def derives():
    presets.register_preset("derived", presets.PRESETS["darkroom"], "Plugged")
"""
ENTRY_POINTS = """
[memenvs.environments]
absent = no_such_module:environments
good = plugged_package:environments
missing = plugged_package:no_such_function
twice = plugged_package:twice

[memenvs.memories]
absent = no_such_module:memories
good = plugged_package:memories

[memenvs.presets]
absent = no_such_module:preset
good = plugged_package:preset
"""


def plugged(tmp_path: Path, *command: str, entry_points: str = ENTRY_POINTS) -> subprocess.CompletedProcess[str]:
    """Run Python with an installed package that has entry points."""
    (tmp_path / "plugged_package.py").write_text(PLUGIN)
    folder = tmp_path / "plugged-1.5.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.5\n")
    (folder / "entry_points.txt").write_text(entry_points)
    code = f"import sys; sys.path.append({str(tmp_path)!r}); "
    return subprocess.run([sys.executable, "-c", code + command[0], *command[1:]], capture_output=True, text=True)


@pytest.mark.slow
def test_entry_points_that_look_up_names_are_called_once(tmp_path: Path) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom memenvs.agents.memory import memories\n"
        "from memenvs.agents import presets\nwith ThreadPoolExecutor(4) as pool:\n"
        "    print({len(found.result()) for found in [pool.submit(memories) for _ in range(4)]})\n"
        "print(presets.find_preset('derived').env)"
    )
    points = "[memenvs.memories]\na = plugged_package:looks_up\n[memenvs.presets]\na = plugged_package:derives\n"
    done = plugged(tmp_path, code, entry_points=points)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["looks up", f"{{{len(memories_module.MEMORIES) + 1}}}", "memenvs/Darkroom-v0"]


@pytest.mark.slow
def test_entry_points_and_broken_ones(tmp_path: Path) -> None:
    done = plugged(
        tmp_path,
        "from memenvs.cli import main; main(['list', '--json'])\n"
        "from memenvs.agents.memory import memories, make_memory; make_memory('plugged', 3); memories()\n"
        "from memenvs.cli import main; main(['presets', 'plugged', '--json'])",
    )
    rows, preset = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0, done.stderr
    row = {"id": "plugged/Small-v0", "family": "plugged", "remembers": "a goal", "needs": ""}
    assert rows[-1] == row | {"policies": [], "answers_picture": False, "verdict": None}
    assert preset["env"] == "plugged/Small-v0"
    warned = [line.partition("Warning: ")[2] for line in done.stderr.splitlines() if "Warning: " in line]
    absent = "'absent' of plugged 1.5 is left out: no_such_module:{} raised ModuleNotFoundError: No module named 'no_"
    starts = (
        f"memenvs.environments: {absent.format('environments')}",
        "memenvs.environments: 'missing' of plugged 1.5 is left out: plugged_package:no_such_function raised Attr",
        "memenvs.environments: 'twice' of plugged 1.5 is left out: plugged_package:twice raised ValueError: id",
        f"memenvs.memories: {absent.format('memories')}",
        f"memenvs.presets: {absent.format('preset')}",
    )
    assert all(line.startswith(start) for line, start in zip(warned, starts, strict=True)), warned
    assert "is registered twice: at memenvs.registry and at" in done.stderr


def test_modules_of_the_working_folder(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    (tmp_path / "own_tasks_here.py").write_text(
        "import memenvs\nmemenvs.register('here/Small-v0', 'memenvs.darkroom.env:Darkroom', defaults={'size': 3})\n"
    )
    try:
        played = document(capsys, "rollout", "here/Small-v0", "--import", "own_tasks_here", "--policy", "oracle")
        assert played["metrics"]["return"]["mean"] > 90
        call(capsys, "rollout", "own_tasks_here:Small-v0", "--episodes", "1")
        memenvs.register("here/Bare-v0", Bare)
        assert "  size = 3: Cells along each side" in call(capsys, "list", "here/Small-v0")
        text = call(capsys, "list", "here/Bare-v0")  # without documentation, settings or limit of a trial
        assert "\nA trial: endless;" in text and "\n  x = Box(0.0, 1.0, (1,), float32)" in text
        for command in ("list", "presets"):
            error = refuse(capsys, command, "--import", "no_such_module")
            assert "error: argument --import no_such_module: No module named 'no_such_module'" in error
    finally:
        sys.modules.pop("own_tasks_here", None)


SIGNAL = """
import memenvs
from memenvs.rules import Rule
from tests.certificates.cue import Cue

class Plain(Cue):
    pass

class Undescribed(Rule):
    def choose(self, observation):
        return 0 * observation["cue"]

policies = {"ideal": "tests.certificates.cue:CueIdeal", "blind": __name__ + ":Undescribed"}
memenvs.register("here/Cue-v0", Plain, policies=policies, defaults={"trial_episodes": 1})
"""


def test_list_prints_a_command_that_plays_a_rule_of_others(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_signal_here.py").write_text(SIGNAL)
    try:
        for command, expected in (
            (["own_signal_here:Cue-v0"], "own_signal_here:here/Cue-v0"),
            (["here/Cue-v0", "--import", "own_signal_here"], "here/Cue-v0 --import own_signal_here"),
        ):
            text = call(capsys, "list", *command)
            assert f"\nScripted policy `blind`: `memenvs rollout {expected} --policy blind` plays it\n" in text
            registry._ROWS.pop("here/Cue-v0")  # as in another process
            gym.registry.pop("here/Cue-v0")
            sys.modules.pop("own_signal_here")
            call(capsys, "rollout", *expected.split(), "--policy", "blind", "--episodes", "1")
    finally:
        sys.modules.pop("own_signal_here", None)


def test_ids_of_others_on_the_command_line(tmp_path: Path, capsys) -> None:
    first, again = (document(capsys, "rollout", "CartPole-v1", "--episodes", "2") for _ in range(2))
    assert first["id"] == "CartPole-v1" and first["metrics"]["return"]["mean"] >= 8
    assert again == first  # the seed decides the actions
    call(capsys, "rollout", "Pendulum-v1", "--episodes", "1")
    gym.register("mine/Blind-v0", entry_point=Blind)
    memenvs.register("mine/Bare-v0", Bare)
    video = str(tmp_path / "a.gif")
    for command, message in (
        (["rollout", "CartPole-v1", "--policy", "oracle"], "--policy oracle: CartPole-v1 is no task of memenvs, so it"),
        (["rollout", "mine/Bare-v0", "--policy", "oracle"], "--policy oracle: Bare does not define oracle_actions"),
        (["record", "mine/Bare-v0", "--out", video], "argument TARGET: Bare does not define render, its picture"),
        (["record", "mine/Blind-v0", "--out", video], "must have the render mode 'rgb_array', got mine/Blind-v0 with"),
        (["bench", "CartPole-v1"], "CartPole-v1: must be a task of memenvs"),
    ):
        assert message in refuse(capsys, *command)
    assert not Path(video).exists()


class Blind(gym.Env):
    """An environment of Gymnasium without pictures."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 1.0, True, False, {}
