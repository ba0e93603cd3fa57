"""`memenvs board add`: a run's agent plays the test set, and its actions are replayed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from memenvs.agents.experiments.config import read_config
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.study import settings_hash
from memenvs.board.entry import check_entry, read_entry
from memenvs.board.replay import check_replay
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli import main
from tests.agents.small_ballet import ARGUMENTS
from tests.certificates.cue import registered

ABOUT = ["--author", "Ada", "--link", "https://example.org/gru"]
TRAIN = ["--env", "toy/Cue-v0", "--env_kwargs", "{}", "--eval_kwargs", "{}", "--eval_all_layouts", "false"]
TRAIN += ["--total_steps", "36", "--n_envs", "4", "--ppo.n_steps", "9", "--ppo.n_updates", "1", "--no-evaluate"]
TRAIN += ["--ppo.batch_size", "4", "--policy.memory", "gru", "--policy.memory_kwargs", "{}", "--json"]
TRAIN += ["--policy.features_extractor_kwargs", "{}"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[Path]:
    """Folder with runs of two seeds, and one of another learning rate."""
    folder = tmp_path_factory.mktemp("runs")
    with registered(defaults={"trial_episodes": 3, "delay": 2}):
        for name, options in {"0": [], "1": ["--seed", "1"], "fast": ["--ppo.learning_rate", "0.01"]}.items():
            assert main(["train", "ci-smoke", *TRAIN, *options, "--out", str(folder / name)]) == 0
        yield folder


def test_an_entry_of_two_runs(runs, tmp_path):
    """Its scores are those of an evaluation that knows nothing of the board."""
    folders = [str(runs / name) for name in "10"]
    assert main(["board", "add", *folders, "--name", "gru", *ABOUT, "--board", str(tmp_path)]) == 0
    folder = tmp_path / "Cue-v0_v0" / "gru"
    entry = read_entry(folder)
    check_entry(entry, folder)
    check_replay(entry)
    assert (entry.memory, entry.author, entry.kind, entry.observed) == ("gru", "Ada", "plain", {})
    assert entry.settings == settings_hash(read_config(runs / "0"))  # of seed 0
    for name, own in zip("10", entry.runs, strict=True):
        with RunDirectory(runs / name) as run:
            played = evaluate_run(run, seed=1, test_set="v0", quiet=True)
        assert own.seed == int(name) and np.array_equal(own.scores, played.metrics["success"])
        assert played.actions == [] and {len(trial) for trial in own.actions or ()} == {9}
    assert 0.2 < entry.mean < 0.8 and entry.runs[0].scores != entry.runs[1].scores


def test_wrong_runs_and_names_are_refused_before_anything_is_played(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("memenvs.agents.experiments.evaluate.evaluate_run", None)
    (tmp_path / "Cue-v0_v0" / "Taken").mkdir(parents=True)
    shutil.copytree(runs / "0", tmp_path / "copy")
    zero = str(runs / "0")
    for arguments, message in (
        ([zero, "--name", "taken"], "there is an entry 'Taken' already; choose another name"),
        ([zero, "--name", "../x"], "name must be of the form"),
        ([zero, "--name", "x", "--id", "Cue-v9"], "Cue-v9"),
        ([zero, str(runs / "fast"), "--name", "x"], "runs must differ in their seed alone, those of"),
        ([zero, str(tmp_path / "copy"), "--name", "x"], "runs must differ in their seeds, got [0, 0]"),
        ([str(tmp_path / "no"), "--name", "x"], "no"),
    ):
        assert main(["board", "add", *arguments, *ABOUT, "--board", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "Cue-v0_v0").iterdir()] == ["Taken"]


def test_a_run_that_learned_in_another_world_is_not_plain(runs, tmp_path, capsys):
    """Longer or shorter trials, and another split of evaluation, are no other world."""
    shutil.copytree(runs / "0", tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    trained = json.loads(config.read_text())
    add = ["board", "add", str(tmp_path / "run"), "--name", "gru", *ABOUT, "--board", str(tmp_path / "board")]
    config.write_text(json.dumps({**trained, "env_kwargs": {"delay": 3}}))
    assert main(add) == 2
    message = "class must be pretrained or privileged where runs learned in delay=3 and not 2, got 'plain'"
    assert message in capsys.readouterr().err and not (tmp_path / "board").exists()
    assert main([*add, "--class", "pretrained"]) == 0
    config.write_text(json.dumps({**trained, "env_kwargs": {"trial_episodes": 4}, "eval_kwargs": {"delay": 3}}))
    assert main([*add, "--name", "plain"]) == 0
    entries = {folder.name: read_entry(folder).kind for folder in (tmp_path / "board" / "Cue-v0_v0").iterdir()}
    assert entries == {"gru": "pretrained", "plain": "plain"}
    assert main([*add, "--name", "other", "--id", "Darkroom-v0"]) == 2
    assert "where runs learned in toy/Cue-v0, got 'plain'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> Path:
    """A run that learns to answer, without places."""
    folder = tmp_path_factory.mktemp("answers") / "0"
    command = ["train", *ARGUMENTS, "--policy.memory", "t-fifo", "--no-evaluate", "--json", "--out", str(folder)]
    assert main(command) == 0
    return folder


@pytest.mark.slow
def test_an_entry_of_answers(answers, tmp_path):
    """The truth of each episode, from a single environment, is the answer where and only where the score is 1."""
    board = ["--board", str(tmp_path)]
    assert main(["board", "add", str(answers), "--name", "fifo", *ABOUT, *board]) == 0
    folder = tmp_path / "RoomBallet-FIFO-v0_v0" / "fifo"
    entry = read_entry(folder)
    assert (entry.memory, entry.kind, entry.observed) == ("t-fifo", "plain", {})
    (run,) = entry.runs
    assert run.actions is not None and set(run.steps) == {577}
    env = gym.make(entry.id)
    for k, seed in enumerate(find_test_set(entry.id).seeds):
        label = env.reset(seed=seed)[1]["label"]
        assert not run.actions[k][:-1].any() and run.scores[k] == (float(run.actions[k][-1] == label),)
    assert 0.04 < entry.mean < 0.3  # one of eight, after twenty batches


def test_wrong_entries_of_answers(answers, tmp_path, capsys, monkeypatch):
    add = ["board", "add", str(answers), "--name", "x", *ABOUT, "--board", str(tmp_path / "board")]
    for id, message in (
        ("FFHQWorld-v0", "answers are no pictures, which are too large for an entry, got memenvs/FFHQWorld-v0"),
        ("Darkroom-Gap-v0", "env must be one that can be learned by prediction, got 'memenvs/Darkroom-Gap-v0'"),
    ):
        assert main([*add, "--id", id, "--class", "pretrained"]) == 2
        assert message in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.delattr("memenvs.room_ballet.queries.BalletQueries.episodes_of")
        assert main(add) == 2
        assert "BalletQueries does not define episodes_of" in capsys.readouterr().err
    monkeypatch.setattr("memenvs.agents.experiments.prediction_experiment.played_actions", lambda *_: [])
    shutil.copytree(answers, tmp_path / "places")
    config = tmp_path / "places" / "config.json"
    config.write_text(config.read_text().replace('"t-fifo"', '"sat-fifo"'))
    add[2] = str(config.parent)
    assert main(add) == 2
    assert "class must be privileged where place is observed, got 'plain'" in capsys.readouterr().err
    assert not (tmp_path / "board").exists()
