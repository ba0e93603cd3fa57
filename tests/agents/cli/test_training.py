"""`train`, `evaluate` and `report` on the command line, and their mistakes."""

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import gymnasium as gym
import pytest

import memenvs
from memenvs import registry
from memenvs.agents.cli.evaluate import print_curves
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, METRICS, RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.presets import find_preset
from memenvs.agents.study import grid
from memenvs.cli import main
from tests.test_cli import refuse


@pytest.mark.slow
def test_a_run_from_training_to_report(tmp_path, capsys):
    folder = tmp_path / "run"
    command = ["train", "ci-smoke", "--out", str(folder), "--json", "--total_steps", "1024", "--eval_trials", "4"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 1024
    assert set(result["evaluation"]) == {"agent", "random", "memoryless", "window4", "oracle"}
    assert len(result["evaluation"]["agent"]["metrics"]["return"]["mean"]) == 6  # 6 episodes of 16 steps in 96 steps
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 4  # learning curve, in-context curve, first and last episode
    pictures = ("learning.png", "in_context.png", "episode_1.png", "episode_6.png")
    for name in (*pictures, "config.json", METRICS, CHECKPOINT):
        assert (folder / name).stat().st_size > 0, name
    assert any((folder / "tensorboard").iterdir())
    installed = json.loads((folder / "versions.json").read_text())
    assert installed["torch"] == version("torch") and installed["gymnasium"] == gym.__version__
    assert f"memenvs {memenvs.__version__}, gymnasium {gym.__version__}" in page
    weights = (folder / CHECKPOINT).read_bytes()
    check_evaluations(folder, capsys)
    check_resuming(command, folder, capsys)
    assert (folder / CHECKPOINT).read_bytes() == weights
    assert main(["report", str(folder), "--json"]) == 0
    assert "<h2>After demonstrations</h2>" in (folder / "report.html").read_text(encoding="utf-8")
    assert json.loads(capsys.readouterr().out) == {"report": str(folder / "report.html")}


def check_evaluations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's own evaluation has its settings; others have names of their own."""
    evaluate = ["evaluate", str(folder)]
    short = ["--steps", "32", "--trials", "2"]
    before = (folder / "evaluation.json").read_bytes()
    for changed, message in (
        ("--eval_kwargs.max_episode_step 8", "keyword argument 'max_episode_step'"),
        ("--eval_kwargs.split val --steps 32", "memenvs/Darkroom-v0 with these eval_kwargs: unknown split 'val'"),
        ("--checkpoint checkpoint_512.zip", "no checkpoint at"),
    ):
        error = refuse(capsys, *evaluate, *changed.split())
        assert message in error and "--name" not in error  # a name would not help
    for name in ("../other", "", ".hidden", "a/b"):
        assert f"--name: must be a name without folders, got '{name}'" in refuse(capsys, *evaluate, "--name", name)
    (folder / "copy.zip").write_bytes((folder / CHECKPOINT).read_bytes())
    for setting, other in (
        ("steps", "32"),
        ("trials", "2"),
        ("eval_kwargs.max_episode_steps", "8"),
        ("checkpoint", "copy.zip"),
    ):
        error = refuse(capsys, *evaluate, f"--{setting}", other)
        assert setting in error and "choose a --name" in error
    assert main([*evaluate, *short, "--checkpoint", "copy.zip", "--name", "two", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["agent"]["metrics"]["return"]["mean"]) == 2
    assert main([*evaluate, "--steps", "32", "--trials", "1", "--name", "one", "--json"]) == 0
    for text in (capsys.readouterr().out, (folder / "one.json").read_text()):  # one trial has no standard error
        assert "NaN" not in text and json.loads(text)["agent"]["metrics"]["return"]["stderr"] == [None, None]
    own = ["--steps", str(find_preset("ci-smoke").eval_steps), "--checkpoint", CHECKPOINT]
    assert main([*evaluate, *own]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"written: {folder / 'evaluation.json'}; next: memenvs report {folder}"
    )
    error = refuse(capsys, *evaluate, *short, "--demonstrations", "1")
    assert "demonstrations_1.json is for the run's own settings" in error
    error = refuse(capsys, *evaluate, "--demonstrations", "1", "--name", "evaluation")
    assert "evaluation.json is for the run's own trials" in error
    assert main([*evaluate, "--demonstrations", "1", "--seed", str(2**70)]) == 0
    demonstrated, played, _ = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"oracle     return: \S+ in demonstration 1", demonstrated)
    assert re.fullmatch(r"agent      return: \S+ in episode 1, \S+ in episodes 2 to 6, \S+ in episode 6", played)
    assert len(json.loads((folder / "demonstrations_1.json").read_text())["agent"]["demonstrations"]["return"]) == 1
    assert main([*evaluate, *short, "--name", "short", "--env_kwargs.max_episode_steps", "8"]) == 0
    assert len(json.loads((folder / "short.json").read_text())["agent"]["metrics"]["return"]["mean"]) == 4
    assert main([*evaluate, *short, "--demonstrations", "1", "--name", "short"]) == 0
    assert set(json.loads((folder / "short.json").read_text())) == {"agent"}
    capsys.readouterr()
    for changed, message in (
        ("--last_steps 2 --demonstrations 1", "demonstrations must be left out with last_steps=2, got 1"),
        ("--last_steps 2 --itinerary AB", "itinerary must be left out with last_steps=2, got 'AB'"),
        ("--last_steps 2 --name test_set_v0", "test_set_v0.json is the file of another evaluation"),
        ("--last_steps 2 --name one_episode --eval_kwargs.trial_episodes 1", "left out where a trial is one episode"),
    ):
        assert message in refuse(capsys, *evaluate, *changed.split())
    with RunDirectory(folder) as run, pytest.raises(ValueError, match="test_set must be left out with last_step"):
        evaluate_run(run, test_set="v0", last_steps=2)
    assert main([*evaluate, "--last_steps", "0"]) == 0
    written = json.loads((folder / "last_steps_0.json").read_text())
    assert set(written) == {"agent"} and written["agent"]["last_steps"] == 0
    capsys.readouterr()
    assert main([*evaluate, "--steps", "1", "--trials", "2", "--name", "shorter"]) == 0  # than any episode
    assert "agent      return: no episode has ended in all trials within these steps" in capsys.readouterr().out
    error = refuse(capsys, *evaluate, "--ppo.n_epochs", "2")
    assert "evaluate: error: unknown option '--ppo.n_epochs'" in error
    assert (folder / "evaluation.json").read_bytes() == before


def check_resuming(command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the command that began a run resumes it."""
    for changed in (["--seed", "3"], ["--total_steps", "1000"], ["--policy.memory", "gru"]):
        error = refuse(capsys, *command, *changed, "--resume")
        assert f"{changed[0][2:]} is " in error and "the command that began it" in error
    error = refuse(capsys, "train", "fourboxes", "--out", str(folder), "--resume")  # of another preset
    assert "holds another run" in error
    assert main([*command, "--resume", "--no-evaluate"]) == 0  # it is finished
    assert json.loads(capsys.readouterr().out)["steps"] == 1024


@pytest.mark.slow
def test_a_finished_run_is_extended(tmp_path, capsys):
    """It has the bits of a run that was begun as long, where the learning rate is constant."""
    small = ["--n_envs", "2", "--ppo.batch_size", "2", "--no-evaluate", "--json"]
    for name, steps, resume in (("whole", 768, []), ("run", 256, []), ("run", 768, ["--resume"])):
        command = ["train", "ci-smoke", "--out", str(tmp_path / name), "--total_steps", str(steps), *small, *resume]
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == steps
    for name in (CHECKPOINT, "config.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    written = ("evaluation.json", "demonstrations_2.json", "episode_1.png")
    for name in (*written, "mine.json"):
        (tmp_path / "run" / name).write_text("{}")
    assert main(["train", "ci-smoke", "--out", str(tmp_path / "run"), "--total_steps", "768", *small, "--resume"]) == 0
    assert all((tmp_path / "run" / name).exists() for name in written)  # nothing was left to train
    assert main(["train", "ci-smoke", "--out", str(tmp_path / "run"), "--total_steps", "1024", *small, "--resume"]) == 0
    assert not any((tmp_path / "run" / name).exists() for name in written)  # of the agent before
    assert (tmp_path / "run" / "mine.json").exists()
    with RunDirectory(tmp_path / "run") as run:
        run.extend(1280)
    with RunDirectory(tmp_path / "run") as run:  # killed before the next checkpoint
        assert run.config.total_steps == 1024


def test_mistakes_are_one_line_and_leave_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = {  # what settings a config refuses is in tests of the configs
        "--env memenvs/Lightroom-v0": "unknown id 'memenvs/Lightroom-v0'; did you mean 'memenvs/Darkroom-v0'",
        "--env_kwargs.split val": "unknown split 'val'",
        "--env_kwargs.colour 1": "unexpected keyword argument 'colour'",
        "--eval_kwargs.split val": "memenvs/Darkroom-v0 with these eval_kwargs: unknown split 'val'",
        "--env_kwargs.split=val": "unknown split 'val'",
        "--policy.memry lstm": "unknown setting 'memry' of MemoryPolicy; did you mean 'memory'? Choose from ['memory',",
        "--device gpu": "device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on, got 'gpu'",
        "--policy.memory sat-pm": "place=True) adds it, on the command line --env_kwargs.place true); got",
        "--policy.size 50000": "policy.size must be left out with policy.memory_kwargs.dim, which would win, got 50000",
        '--policy {"memory":"memo","memory_kwargs":{"segment_length":129}}': "segment_length must be at most ppo.n_ste",
        "--policy.memory_kwargs.max_episode_steps 15": "must be at least the 16 steps that an episode may take, got 15",
        "--eval_kwargs.max_episode_steps 200 --eval_steps 1200": "these eval_kwargs: memory_kwargs['max_episode_steps",
        '--env memenvs/VisualMatch-v0 --env_kwargs {} --eval_kwargs {"obs":"one_hot"} --eval_steps 100': (
            "with these eval_kwargs: observation 'image' must be of shape (7, 7, 3), as it was learned"
        ),
        "--total_steps 1023": "total_steps must be at least 1024, one rollout (n_envs 8 x ppo.n_steps 128), got 1023",
        "--resume": "no run in runs/ci-smoke-0",
    }
    others = {
        "train nope": "unknown preset 'nope'",
        "report nowhere": "no run in nowhere",
        "evaluate nowhere": "no run in nowhere",
        "presets nope": "unknown preset 'nope'",
        "train room-ballet --policy.memory gruu": "unknown memory 'gruu'; did you mean 'gru'",
        "train room-ballet --policy.memory sat-pm-ph --policy.chunk 577": "chunk must be at most the 576 steps",
    }
    for command, message in {**{f"train ci-smoke {options}": train[options] for options in train}, **others}.items():
        assert message in refuse(capsys, *command.split()), command
        assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_an_id_without_trials_from_training_to_report(tmp_path, capsys):
    command = ["train", "ci-smoke", "--env", "CartPole-v1", "--total_steps", "1024", "--env_kwargs", "{}"]
    command += ["--eval_kwargs", "{}", "--eval_all_layouts", "false", "--eval_steps", "500", "--json"]
    command += ["--policy.memory_kwargs.max_episode_steps", "500"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    evaluation = json.loads(capsys.readouterr().out)["evaluation"]
    assert set(evaluation) == {"agent", "random"}
    assert len(evaluation["random"]["metrics"]["return"]["mean"]) == 1
    assert "Settings" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for changed, message in (
        (["--eval_all_layouts", "true"], "eval_all_layouts must be false for CartPole-v1, which has no layouts"),
        (["--score", "succes"], "score must be a metric of CartPole-v1, got 'succes'; choose from ['length', 'ret"),
        (["--eval_steps", "499"], "eval_steps must be at least the 500 steps that an episode may take, got 499"),
        (["--env_kwargs.size", "4"], "--env_kwargs '{}' and --eval_kwargs '{}' leave out those of the preset"),
    ):
        assert message in refuse(capsys, *command, *changed, "--out", str(tmp_path / "wrong"))
        assert not (tmp_path / "wrong").exists()


def test_another_memory_begins_with_its_own_settings():
    preset = find_preset("ci-smoke")
    before = preset.policy["memory_kwargs"]
    assert preset.policy["memory"] == "relic" and before["heads"] == 2
    for settings, expected in (
        ([("policy.memory", "gru")], {}),
        ([("policy.memory_kwargs.hidden_dim", 8), ("policy.memory", "gru")], {"hidden_dim": 8}),
        ([("policy.memory", "gru"), ("policy.memory_kwargs", {"layers": 2})], {"layers": 2}),
        ([("policy.memory", "relic"), ("policy.memory_kwargs.layers", 2)], before | {"layers": 2}),
        ([("seed", 3)], before),
    ):
        config = with_overrides(preset, settings)
        assert config.policy["memory_kwargs"] == expected, settings
    methods = grid({"task": preset}, {"gru": {"policy.memory": "gru"}})["task"]
    assert methods["gru"].policy["memory_kwargs"] == {}  # in a study too


@pytest.mark.slow
def test_a_task_without_oracle_pictures_and_map(tmp_path, monkeypatch, capsys):
    """All that needs none of them runs; the rest is refused by what is missing, before anything is played."""
    monkeypatch.chdir(tmp_path)
    registers = 'memenvs.register("bare/Bare-v0", "tests.bare_task:Bare", defaults={"trial_episodes": 2})'
    (tmp_path / "bare_tasks_here.py").write_text(f"import memenvs\n{registers}\n")
    command = ["train", "ci-smoke", "--env", "bare_tasks_here:bare/Bare-v0", "--total_steps", "1024", "--out", "run"]
    command += ["--env_kwargs", "{}", "--eval_kwargs", "{}", "--json"]
    try:
        assert main(command) == 0
        evaluation = json.loads(capsys.readouterr().out)["evaluation"]
        assert set(evaluation) == {"agent", "random"} and len(evaluation["random"]["metrics"]["return"]["mean"]) > 1
        assert not list(Path("run").glob("episode_*.png")) and Path("run/report.html").is_file()
        for words, message in (
            (["paths", "run"], "Bare cannot be drawn from above: it lacks 'pose' in info and draw_map"),
            (["record", "run"], "Bare does not define render, its picture"),
            (["evaluate", "run", "--demonstrations", "1"], "Bare does not define oracle_actions"),
        ):
            assert message in refuse(capsys, *words)
    finally:
        registry._ROWS.pop("bare/Bare-v0", None)
        gym.registry.pop("bare/Bare-v0", None)
        sys.modules.pop("bare_tasks_here", None)


def test_a_folder_that_is_in_use(tmp_path, capsys):
    with RunDirectory(tmp_path, find_preset("ci-smoke")):
        before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        error = refuse(capsys, "train", "ci-smoke", "--out", str(tmp_path))
        assert "already holds a run; choose another folder, or resume it with --resume (it has no checkpoint" in error
        for command in (["train", "ci-smoke", "--resume", "--out"], ["evaluate"], ["report"]):
            assert "is in use by another process" in refuse(capsys, *command, str(tmp_path))
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert "no checkpoint at" in refuse(capsys, "evaluate", str(tmp_path))


def test_resuming_before_the_first_checkpoint_says_so(tmp_path, capsys):
    RunDirectory(tmp_path, with_overrides(find_preset("ci-smoke"), [("total_steps", 1024)])).close()
    command = ["train", "ci-smoke", "--total_steps", "1024", "--resume", "--no-evaluate", "--out", str(tmp_path)]
    for messages in ([f"{tmp_path} has no checkpoint yet: training starts from the beginning"], []):
        assert main(command) == 0
        assert [line for line in capsys.readouterr().err.splitlines() if "checkpoint" in line] == messages


def test_the_end_of_a_run_is_ten_numbers(capsys):
    """Five policies over 40 episodes; and 30 metrics of predictions."""
    curve = {"demonstrations": {}, "metrics": {"return": {"mean": [1.0, *([2.0] * 38), 41.0]}}}
    print_curves(dict.fromkeys(("agent", "random", "memoryless", "window4", "oracle"), curve), "return")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "agent      return: 1 in episode 1, 3 in episodes 2 to 40, 41 in episode 40" and len(lines) == 5
    metrics = {f"kind {k}": {"mean": 0.5, "stderr": 0.1} for k in range(29)} | {"right": {"mean": 0.7, "stderr": 0.0}}
    print_curves({"agent": {"episodes": 8, "metrics": metrics}}, "right")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "agent      right: 0.7000 +- 0.0000" and len(lines) == 6
    assert lines[5] == "agent      and 25 more in the file and the report"
