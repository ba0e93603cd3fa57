"""Minari: `DataCollector` over every id, and the command `memenvs dataset`."""

import json
import sys
import types
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from torch.utils import _pytree

import memenvs
from memenvs import registry
from memenvs.cli import main
from memenvs.core import TrialEnv
from memenvs.dataset import make_spec_env
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec, find_environment
from memenvs.rules import make_rule
from memenvs.wrappers import TrialWrapper
from tests import test_cli
from tests.ids import each_id
from tests.rollouts import any_action, same

minari = pytest.importorskip("minari", reason="needs minari: pip install 'memenvs[minari]'")

# DataCollector leaves its temporary folders to Python's garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")

SHORT = {"max_episode_steps": 3, "trial_episodes": 2}
NO_SEED_OF_MINARI = {"minari_autoseed": False}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the datasets of a test."""
    folder = tmp_path / "datasets"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch):
    """Makes a `DataCollector` that keeps every bit of images.

    Its only use of jax, which takes 350 MB, is `tree_map`; where jax is absent PyTorch's takes its place.
    """
    try:
        import jax.tree_util  # noqa: F401
    except ImportError:
        module = types.ModuleType("jax.tree_util")
        module.tree_map = _pytree.tree_map
        monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
        monkeypatch.setitem(sys.modules, "jax.tree_util", module)
        sys.modules["jax"].tree_util = module
    made = []

    def make(env: gym.Env, **kwargs: object):
        made.append(minari.DataCollector(env, jpeg_encoding=False, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.close()


def create(collected, name: str):
    """Create a dataset, with everything that Minari would warn about."""
    about = ("algorithm_name", "author", "author_email", "code_permalink", "description")
    return collected.create_dataset(name, eval_env=collected.env, **dict.fromkeys(about, "a"))


def play(env: gym.Env, **kwargs: object) -> list[tuple[dict, dict]]:
    """Observations and infos of an episode of random actions."""
    rows = [env.reset(**kwargs)]
    is_over = False
    while not is_over:
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        rows.append((observation, info))
        is_over = terminated or truncated
    return rows


def row(episode: dict, t: int) -> dict:
    """Values of a recorded episode at a step."""
    return {key: row(value, t) if isinstance(value, dict) else value[t] for key, value in episode.items()}


def assert_recorded(recorded: dict, given: dict) -> None:
    for key, value in given.items():
        if isinstance(value, dict):
            assert_recorded(recorded[key], value)
        else:
            # Minari reads texts of infos as bytes
            assert np.array_equal(recorded[key], value) or recorded[key] == str(value).encode(), key


@pytest.mark.parametrize("spec", each_id(others=pytest.mark.nightly, loads=pytest.mark.nightly))
@pytest.mark.slow
def test_collector_over_every_id(spec: EnvironmentSpec, collector) -> None:
    """Every bit of an episode with a seed, and of trials with a seed of Minari's and none."""
    for wrap, name, resets in (
        (lambda env: env, "test/episodes-v0", [{"seed": 5}]),
        (TrialWrapper, "test/trials-v0", [{}, {"options": NO_SEED_OF_MINARI}]),
    ):
        env = wrap(gym.make(spec.id, **SHORT, **any_action(spec)))
        collected = collector(env, record_infos=True)
        collected.action_space.seed(0)
        played = [play(collected, **each) for each in resets]
        create(collected, name)
        dataset = minari.load_dataset(name)
        assert dataset.total_episodes == len(resets)
        seeds = [each.get("seed") for each in dataset.storage.get_episode_metadata(range(len(resets)))]
        again = dataset.recover_environment()
        assert type(again) is type(env)
        for rows, episode, seed, kwargs in zip(played, dataset, seeds, resets, strict=True):
            for t, (observation, info) in enumerate(rows):
                assert_recorded(row(episode.observations, t), observation)
                assert_recorded(row(episode.infos, t), info)
            assert seed == kwargs.get("seed", None if "options" in kwargs else seed)
            if seed is not None:
                observation, info = again.reset(seed=seed)
                assert same(observation, rows[0][0]) and info["trial_id"] == 0
        again.close()


#: Every id; those in homes, whose layouts take long, and variants of a ballet nightly.
SOME = ("Darkroom-v0", "FourBoxes-v0", "VLN-R2R-v0", "RoomBallet-MultiTask-v0", "RoomBallet-ABA-v0")
SOME_OR_NIGHTLY = [
    spec if spec.name in SOME else pytest.param(spec, marks=pytest.mark.nightly) for spec in ENVIRONMENTS
]


def call(capsys, *argv: str) -> dict:
    return test_cli.document(capsys, "dataset", *argv)


def refuse(capsys, *argv: str) -> str:
    return test_cli.refuse(capsys, "dataset", *argv)


def card_of(root: Path, name: str) -> dict:
    return json.loads((root / name / "card.json").read_text())


def episodes_of(name: str) -> list:
    """Everything in the episodes of a dataset."""
    dataset = minari.load_dataset(name)
    about = dataset.storage.get_episode_metadata(range(dataset.total_episodes))
    return [{**vars(each), "about": more} for each, more in zip(dataset, about, strict=True)]


def test_rules_play_datasets_as_they_play_a_rollout(capsys, root: Path) -> None:
    """Each trial of `window4` begins with an empty window; a rule of other environments is refused by name."""
    for name, policy, settings in (
        ("Darkroom-v0", "memoryless", {"max_episode_steps": 30, "trial_episodes": 2}),
        ("Roaming-v0", "window4", {"max_episode_steps": 12, "trial_episodes": 2}),
    ):
        out = f"rules/{policy}-v0"
        arguments = ["--policy", policy, "--episodes", "4", "--env_kwargs", json.dumps(settings)]
        assert call(capsys, name, *arguments, "--out", out)["episodes"] == 4
        env = make_spec_env(f"memenvs/{name}", settings)
        rule = make_rule(find_environment(name).policies[policy], env.task)
        for index, episode in enumerate(minari.load_dataset(out)):
            observation, _ = env.reset(seed=0, options={"trial": index // 2, "episode_index": index % 2})
            rule.start(np.array([index % 2 == 0]), np.ones(1, bool))
            for action in episode.actions:
                assert action == rule.actions({key: value[None] for key, value in observation.items()})[0]
                observation, *_ = env.step(action)
        call(capsys, "--rebuild", str(root / out / "card.json"), "--out", f"rules/{policy}-again-v0")
    problem = refuse(capsys, "VisualMatch-v0", "--policy", "window4", "--out", "rules/none-v0")
    assert "--policy window4: is for memenvs/Roaming-v0" in problem


def test_dataset_has_whole_trials_each_episode_of_which_can_be_rebuilt(capsys, root: Path) -> None:
    settings = {"max_episode_steps": 6, "trial_episodes": 3}
    arguments = ["--policy", "oracle", "--episodes", "4", "--seed", "7", "--env_kwargs", json.dumps(settings)]
    result = call(capsys, "Darkroom-v0", *arguments, "--out", "dark/test-v0")
    counts = {"episodes": 6, "trials": 2, "steps": 36}
    card = root / "dark/test-v0/card.json"
    assert result == {"dataset": "dark/test-v0", "id": "memenvs/Darkroom-v0", **counts, "card": str(card)}
    dataset = minari.load_dataset("dark/test-v0")
    assert list(minari.list_local_datasets()) == ["dark/test-v0"]
    env = dataset.recover_environment().unwrapped
    about = dataset.storage.get_episode_metadata(range(6))
    for index, (episode, more) in enumerate(zip(dataset, about, strict=True)):
        assert (more["seed"], more["options"]) == (7, {"trial": index // 3, "episode_index": index % 3})
        observation, info = env.reset(seed=more["seed"], options=more["options"])
        for t, action in enumerate([*episode.actions, None]):
            assert_recorded(row(episode.observations, t), observation)
            assert_recorded(row(episode.infos, t), {**info, "trial_start": t == 0 and index % 3 == 0})
            if action is not None:
                assert action == env.oracle_action()
                observation, reward, terminated, truncated, info = env.step(action)
                assert (reward, terminated, truncated) == (
                    episode.rewards[t], episode.terminations[t], episode.truncations[t])  # fmt: skip
    more = ["Darkroom-v0", "--episodes", "1", "--env_kwargs", json.dumps(SHORT), "--out", "dark/more-v0"]
    assert "wrote dataset dark/more-v0: 2 episodes, 1 trials, 6 steps" in test_cli.call(capsys, "dataset", *more)


@pytest.mark.parametrize("spec", SOME_OR_NIGHTLY, ids=lambda spec: spec.name)
@pytest.mark.slow
def test_dataset_of_every_id_is_rebuilt_and_extended_bit_by_bit(capsys, root: Path, spec: EnvironmentSpec) -> None:
    own = {"gap": 1, "itinerary": "AB"}  # as short, of ids that have them
    settings = {**SHORT, **{name: value for name, value in own.items() if spec.defaults.get(name)}}
    arguments = [spec.id, "--env_kwargs", json.dumps(settings), "--seed", str(2**62)]
    call(capsys, *arguments, "--episodes", "4", "--out", "test/once-v0")
    call(capsys, "--rebuild", str(root / "test/once-v0"), "--out", "test/again-v0")  # the folder of its card
    call(capsys, *arguments, "--episodes", "1", "--out", "test/twice-v0")
    call(capsys, *arguments, "--episodes", "2", "--out", "test/twice-v0", "--append")
    once, *others = (card_of(root, f"test/{name}-v0") for name in ("once", "again", "twice"))
    for name, other in zip(("again", "twice"), others, strict=True):
        assert {**other, "command": other["command"].replace(name, "once")} == once
        for left, right in zip(episodes_of("test/once-v0"), episodes_of(f"test/{name}-v0"), strict=True):
            assert same(left, right)
    assert f"--seed {2**62} " in once["command"]


def test_changed_source_is_refused_by_name(capsys, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["Darkroom-v0", "--episodes", "2", "--out", "dark/room-v0", "--env_kwargs"]
    call(capsys, *arguments, json.dumps(SHORT))
    card = root / "dark/room-v0/card.json"
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    append = [*arguments, json.dumps(SHORT), "--append"]
    assert "argument --out: there is a dataset dark/room-v0 already" in refuse(capsys, *append[:-1])
    for changed, message in (
        ([*arguments, json.dumps({**SHORT, "size": 5}), "--append"], "environment.settings.size was None, is 5"),
        ([*append, "--seed", "1"], "seed was 0, is 1"),
        (["FourBoxes-v0", *append[1:]], "environment.id was 'memenvs/Darkroom-v0', is 'memenvs/FourBoxes-v0'"),
    ):
        assert message in refuse(capsys, *changed), changed
    with monkeypatch.context() as patch:
        patch.setattr(memenvs, "__version__", "0.9")
        message = f"memenvs was {card_of(root, 'dark/room-v0')['memenvs']!r}, is '0.9'"
        assert message in refuse(capsys, *append)
        assert message in refuse(capsys, "--rebuild", str(card), "--out", "dark/again-v0")
    with monkeypatch.context() as patch:  # the same version plays something else
        patch.setattr("memenvs.darkroom.env.Darkroom.begin_trial", lambda self, i, layout, rng: None)
        for refused in (append, ["--rebuild", str(card), "--out", "dark/again-v0"]):
            message = refuse(capsys, *refused)
            assert "trial 0 of memenvs/Darkroom-v0 has other bits than when the dataset was made" in message
            assert "so the code of memenvs.darkroom.env has probably changed" in message
    other = {**card_of(root, "dark/room-v0"), "versions": {"numpy": "1"}, "checksums": ["0"]}
    (root / "other.json").write_text(json.dumps(other))
    message = refuse(capsys, "--rebuild", str(root / "other.json"), "--out", "dark/again-v0")
    assert "trial 0 of memenvs/Darkroom-v0 has other bits" in message and "gymnasium was None" in message
    (root / "other.json").unlink()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_the_package_of_an_id_is_on_the_card(capsys, root: Path, tmp_path: Path, monkeypatch) -> None:
    """A dataset is of one version of the package that registers its id, installed as files or editable."""
    monkeypatch.setattr(registry, "_ROWS", dict(registry._ROWS))
    code = "from memenvs.darkroom.env import Darkroom\nclass Dark(Darkroom):\n    pass\n"
    for kind, file, text in (
        ("files", "top_level.txt", "{}"),
        ("editable", "entry_points.txt", "[memenvs.environments]\nlights = {}:register\n"),
    ):
        module = f"lights_{kind}"
        about = tmp_path / f"{module}_package-1.dist-info"
        about.mkdir()
        (tmp_path / f"{module}.py").write_text(code)
        (about / file).write_text(text.format(module))
        monkeypatch.syspath_prepend(str(tmp_path))
        memenvs.register(f"{module}/Dark-v0", f"{module}:Dark", defaults=SHORT)
        arguments = [f"{module}/Dark-v0", "--episodes", "2", "--out", f"{module}/room-v0"]
        (about / "METADATA").write_text(f"Name: {module}-package\nVersion: 1.0\n")
        call(capsys, *arguments)
        card = card_of(root, f"{module}/room-v0")
        assert card["environment"]["packages"] == {f"{module}-package": "1.0"}
        needs = minari.load_dataset(f"{module}/room-v0").storage.metadata["requirements"]
        assert needs == [f"memenvs=={memenvs.__version__}", f"{module}-package==1.0"]
        call(capsys, *arguments, "--append")
        (about / "METADATA").write_text(f"Name: {module}-package\nVersion: 1.1\n")
        assert f"environment.packages.{module}-package was '1.0', is '1.1'" in refuse(capsys, *arguments, "--append")
        del card["environment"]["packages"]  # as earlier versions wrote it
        (root / module / "room-v0" / "card.json").write_text(json.dumps(card))
        call(capsys, *arguments, "--append")


def test_bad_cards_are_refused(capsys, root: Path, tmp_path: Path) -> None:
    call(capsys, "Darkroom-v0", "--episodes", "1", "--env_kwargs", json.dumps(SHORT), "--out", "dark/room-v0")
    card = card_of(root, "dark/room-v0")
    file = tmp_path / "card.json"
    for text, message in (
        ("{", "card.json"),
        ("[]", "card.json"),
        (json.dumps({**card, "seed": -1}), "seed must be an integer of at least 0, got -1"),
        (json.dumps({**card, "checksums": [3]}), "checksums[0] must be a string, got 3"),
        (json.dumps({**card, "policy": None}), "policy is missing"),
        (json.dumps({**card, "environment": {"id": "Lightroom-v0", "settings": {}}}), "Lightroom-v0"),
        (json.dumps({**card, "policy": {"run": "runs/0"}}), "memenvs dataset RUN --rebuild CARD"),
    ):
        file.write_text(text)
        assert message in refuse(capsys, "--rebuild", str(file), "--out", "dark/again-v0"), message
    assert "no card of a dataset at" in refuse(capsys, "--rebuild", "none.json", "--out", "dark/again-v0")
    rebuild = ("--rebuild", str(file), "--out", "dark/again-v0")
    for name, value in (("--seed", "0"), ("--policy", "random"), ("--episodes", "2"), ("--env_kwargs", "{}")):
        assert f"argument {name}: must not be given with --rebuild" in refuse(capsys, *rebuild, name, value)
    assert "argument TARGET: must not be" in refuse(capsys, "Darkroom-v0", *rebuild)


def test_bad_arguments_of_a_dataset(capsys, root: Path) -> None:
    for argv, message in (
        (["--out", "dark/room-v0"], "argument TARGET: is needed"),
        (["Darkroom-v0", "--out", "room"], "argument --out: must be a Minari id NAME-vN or NAMESPACE/NAME-vN, got"),
        (["Lightroom-v0", "--out", "room-v0"], "argument TARGET"),
        (["CartPole-v1", "--out", "room-v0"], "needs an id whose BatchTask can be imported, got CartPole-v1"),
        (["Darkroom-v0", "--out", "room-v0", "--append"], "argument --append: no card of a dataset at"),
        (["Darkroom-v0", "--out", "room-v0", "--env_kwargs", '{"trial_episodes": null}'], "trials would never end"),
    ):
        assert message in refuse(capsys, *argv), argv
    assert not root.exists() or not list(root.rglob("*-v0"))


@pytest.mark.slow
def test_interrupted_dataset_leaves_everything_as_it_was(capsys, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def step(self, action, play=TrialEnv.step):
        steps.append(action)
        if len(steps) == 250:
            assert list(root.glob(".room-v0.*/data/main_data.hdf5"))
            raise KeyboardInterrupt
        return play(self, action)

    arguments = ["Darkroom-v0", "--out", "dark/room-v0"]
    with monkeypatch.context() as patch:
        patch.setattr(TrialEnv, "step", step)
        assert main(["dataset", *arguments]) == 130
    assert list(root.rglob("*")) == []
    call(capsys, *arguments)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for error, status in ((KeyboardInterrupt, 130), (OSError("disk is full"), 2)):

        def fail(*_args: object, error: BaseException = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("memenvs.dataset.write_file", fail)  # the last file that is written
            assert main(["dataset", *arguments, "--append"]) == status
        assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
        assert list(root.iterdir()) == [root / "dark"]
    assert "error: argument --append: disk is full" in capsys.readouterr().err


@pytest.mark.slow
def test_tasks_of_others_are_written_and_rebuilt(
    capsys, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rooms_of_others.py").write_text(
        "from memenvs.darkroom.env import Darkroom\n"
        "from memenvs.registry import register\n"
        "class Blind(Darkroom):\n"
        "    def oracle_actions(self):\n"
        "        raise NotImplementedError('Blind has no oracle')\n"
        "register('others/Blind-v0', Blind, defaults={'trial_episodes': 2, 'max_episode_steps': 3})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_ROWS", dict(registry._ROWS))
    others = ["others/Blind-v0", "--import", "rooms_of_others"]
    result = call(capsys, *others, "--episodes", "3", "--out", "blind/random-v0")
    assert (result["episodes"], result["trials"]) == (4, 2)
    card = root / "blind/random-v0/card.json"
    assert card_of(root, "blind/random-v0")["environment"]["packages"] == {}  # a file beside a script
    assert " --import rooms_of_others " in json.loads(card.read_text())["command"]
    call(capsys, "--rebuild", str(card), "--import", "rooms_of_others", "--out", "blind/again-v0")
    assert "has no oracle" in refuse(capsys, *others, "--policy", "oracle", "--out", "blind/oracle-v0")
    assert not (root / "blind/oracle-v0").exists()
