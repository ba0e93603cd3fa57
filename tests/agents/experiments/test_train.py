"""Folders of runs: what they hold, how a killed one goes on, and the commands that train, evaluate and report."""

from __future__ import annotations

import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

import memenvs
from memenvs.agents import PartialUpdatePPO, PPOConfig
from memenvs.agents.__main__ import main
from memenvs.agents.experiments.config import CONFIG, RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, METRICS, RunDirectory, find_conflict, has_files
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.report import write_report
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.presets import find_preset
from tests.processes import run_python

SMALL = with_overrides(
    find_preset("ci-smoke"),
    [("total_steps", 3072), ("policy.memory_kwargs.dim", 16), ("policy.memory_kwargs.mlp_dim", 16), ("eval_trials", 4)],
)


def test_folder_holds_one_run_for_one_process(tmp_path):
    with RunDirectory(tmp_path, SMALL), pytest.raises(RuntimeError, match="in use by another process"):
        RunDirectory(tmp_path)
    with pytest.raises(FileExistsError, match="already holds a run"):
        RunDirectory(tmp_path, SMALL)
    with RunDirectory(tmp_path) as run:
        assert run.config == SMALL
    with pytest.raises(FileNotFoundError, match="no run in"):
        RunDirectory(tmp_path / "elsewhere")


def test_a_run_goes_on_with_equal_settings_only(tmp_path):
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert run.config == SMALL and not has_files(run.path, "evaluation.json")
        (tmp_path / "evaluation.json").write_text("{}")
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert has_files(run.path, "evaluation.json", CONFIG) and not has_files(
            run.path, "evaluation.json", "other.json"
        )
    other = replace(SMALL, learner=replace(SMALL.learner, gamma=0.5))
    with pytest.raises(ValueError, match=rf"holds another run: ppo.gamma is {SMALL.learner.gamma} there and not 0.5"):
        RunDirectory.open_or_create(tmp_path, other)
    with RunDirectory.open_or_create(tmp_path, SMALL):  # the refusal has let go of the folder
        pass
    RunDirectory(tmp_path / "second", replace(SMALL, encoder_from="here/first")).close()
    RunDirectory.open_or_create(tmp_path / "second", replace(SMALL, encoder_from="there/first")).close()
    with pytest.raises(ValueError, match="encoder_from is 'first' there and not 'third'"):
        RunDirectory.open_or_create(tmp_path / "second", replace(SMALL, encoder_from="there/third"))


def test_a_refusal_comes_before_the_work(tmp_path):
    there, new = tmp_path / "there", tmp_path / "new"
    RunDirectory(there, SMALL).close()
    assert find_conflict({there: SMALL, new: SMALL}) is None and not new.exists()
    assert "seed is" in (find_conflict({new: SMALL, there: replace(SMALL, seed=7)}) or "")
    with RunDirectory(there):
        assert "in use" in (find_conflict({there: SMALL}) or "")
    (there / CONFIG).write_text("{")
    assert CONFIG in (find_conflict({there: SMALL}) or "")


def test_a_report_names_a_score_that_no_evaluation_has(tmp_path):
    curve = {"mean": [1.0, 2.0], "stderr": [0.1, 0.1], "stderr_clustered": [0.1, 0.1], "count": [4, 4]}
    evaluation = {"agent": {"trials": 4, "layouts": 4, "demonstrations": {}, "metrics": {"return": curve}}}
    with RunDirectory(tmp_path, replace(SMALL, score="retrun")) as run:
        (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
        with pytest.raises(
            ValueError, match=r"score must be a metric of the evaluation, got 'retrun'.*Did you mean 'return'\?"
        ):
            write_report([run], tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"ppo": {}, "nope": 1}', '{"ppo": {"nope": 1}}', "{}"])
def test_broken_config_is_named(tmp_path, content):
    (tmp_path / CONFIG).write_text(content)
    with pytest.raises(ValueError, match=r"config\.json: not the settings of a run"):
        RunDirectory(tmp_path)


def test_broken_metrics_name_the_line(tmp_path):
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a\n")
        with pytest.raises(ValueError, match="line 3: must be step,name,value"):
            run.metrics()


KILLED = """
import os, sys
from memenvs.agents.experiments.callback import RunCallback
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
save = RunCallback._on_rollout_start
def die(self):
    save(self)
    if self.model.num_timesteps >= 2048 + 512:  # in the middle of a rollout, after the second checkpoint
        os.kill(os.getpid(), 9)
RunCallback._on_rollout_start = die
with RunDirectory(sys.argv[1]) as run:
    train_run(run, quiet=True)
"""


def test_an_evaluation_has_the_threads_of_its_run(tmp_path):
    before = torch.get_num_threads()
    with RunDirectory(tmp_path / "run", replace(SMALL, threads=1, total_steps=SMALL.n_envs)) as run:
        train_run(run, quiet=True)
        try:
            torch.set_num_threads(2)
            trained_policy(run, 0)
            assert torch.get_num_threads() == 1
        finally:
            torch.set_num_threads(before)


def test_killed_run_goes_on_with_the_same_bits(tmp_path):
    config = replace(SMALL, threads=1)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with RunDirectory(whole, config) as run:
        train_run(run, quiet=True)
    RunDirectory(killed, config).close()
    done = run_python("-c", KILLED, str(killed))
    assert done.returncode == -9, done.stderr
    assert (killed / CHECKPOINT).read_bytes() != (whole / CHECKPOINT).read_bytes()
    with RunDirectory(killed) as run:
        train_run(run, quiet=True)
        resumed = run.metrics()
    assert (killed / CHECKPOINT).read_bytes() == (whole / CHECKPOINT).read_bytes()
    with RunDirectory(whole) as run:
        expected = run.metrics()
    for name in expected:
        if not name.startswith("time/"):  # clocks differ
            assert resumed[name] == expected[name], name


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_runs_of_other_seeds_share_no_episode(seed, tmp_path):
    """Environment i of the eight has the seed 8 * seed + i, which its episodes follow from."""
    config = with_overrides(SMALL, [("seed", seed), ("ppo.n_steps", 16), ("total_steps", 8 * 16)])
    with RunDirectory(tmp_path, config) as run:
        env = train_run(run, quiet=True).env
    assert [info["seed"] for info in env.reset_infos] == [8 * seed + i for i in range(8)]


class Fragile(gym.Env):
    """Episodes of 4 steps; while `breaks_at` is set, the reward of that step of its life is NaN."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    breaks_at: int | None = None

    def __init__(self):
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        reward = float("nan") if self.steps == self.breaks_at else 1.0
        return np.zeros(1, np.float32), reward, self.steps % 4 == 0, False, {}


def test_a_run_that_breaks_goes_on_from_its_last_good_checkpoint(tmp_path, monkeypatch):
    config = RunConfig(
        env="tests/Fragile-v0", n_envs=2, total_steps=80, threads=1, checkpoint_rollouts=1, device="cpu",
        learner=PPOConfig(n_steps=8, n_updates=2, n_epochs=1), policy={"memory": "none"},
    )  # fmt: skip
    gym.register("tests/Fragile-v0", Fragile, disable_env_checker=True)
    try:
        with RunDirectory(tmp_path, config) as run:
            monkeypatch.setattr(Fragile, "breaks_at", 21)  # the third rollout, in its second segment
            with pytest.raises(
                ValueError, match=r"rewards must be finite, got \[nan nan\] after 40 env.* and 5 updates"
            ):
                train_run(run, quiet=True)
            good = PartialUpdatePPO.load(run.path / CHECKPOINT, device="cpu")
            assert good.num_timesteps == 32
            assert all(bool(torch.isfinite(each).all()) for each in good.policy.parameters())
            monkeypatch.setattr(Fragile, "breaks_at", None)
            assert train_run(run, quiet=True).num_timesteps == 80
            assert max(step for points in run.metrics().values() for step, _ in points) == 80
    finally:
        del gym.registry["tests/Fragile-v0"]


def test_command_line_trains_evaluates_and_reports(tmp_path, capsys):
    folder = tmp_path / "run"
    began = ["train", "ci-smoke", "--out", str(folder), "--json", "--total_steps", "1024", "--eval_trials", "4"]
    assert main(began) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 1024
    assert set(result["evaluation"]) == {"agent", "random", "oracle"}
    assert len(result["evaluation"]["agent"]["metrics"]["return"]["mean"]) == 6  # 6 episodes of 16 steps in 96 steps
    page = (folder / "report.html").read_text()
    assert page.count("<img") == 4  # learning curve, in-context curve, first and last episode
    for name in (
        "learning.png",
        "in_context.png",
        "episode_1.png",
        "episode_6.png",
        "config.json",
        METRICS,
        CHECKPOINT,
    ):
        assert (folder / name).stat().st_size > 0, name
    assert any((folder / "tensorboard").iterdir())
    installed = json.loads((folder / "versions.json").read_text())
    assert installed["torch"] == torch.__version__ and installed["gymnasium"] == gym.__version__
    assert f"memenvs {memenvs.__version__}, gymnasium {gym.__version__}" in page

    before = (folder / "evaluation.json").read_bytes()
    for setting, other in (
        ("steps", "32"),
        ("trials", "2"),
        ("eval_kwargs.max_episode_steps", "8"),
        ("checkpoint", "checkpoint_512.zip"),
    ):
        assert main(["evaluate", str(folder), f"--{setting}", other]) == 2
        assert setting in (refused := capsys.readouterr().err) and "choose a --name" in refused
    assert main(["evaluate", str(folder), "--steps", "32", "--trials", "2", "--name", "two", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["agent"]["metrics"]["return"]["mean"]) == 2
    own = ["--steps", str(find_preset("ci-smoke").eval_steps), "--checkpoint", CHECKPOINT]
    assert main(["evaluate", str(folder), *own]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"written: {folder / 'evaluation.json'}"
    assert (folder / "evaluation.json").read_bytes() == before
    assert main(["evaluate", str(folder), "--steps", "32", "--trials", "2", "--demonstrations", "1"]) == 0
    *bars, shown, played, _ = capsys.readouterr().out.splitlines()
    assert "playing the agent" in bars[-1] and "100%" in bars[-1]
    assert shown.startswith("oracle   return by demonstration: ")
    assert played.startswith("agent    return by episode: ")
    assert (folder / "evaluation.json").read_bytes() == before
    assert len(json.loads((folder / "demonstrations_1.json").read_text())["agent"]["demonstrations"]["return"]) == 1
    assert main(["evaluate", str(folder), "--checkpoint", "checkpoint_512.zip", "--name", "early"]) == 2
    assert "checkpoint_512.zip" in capsys.readouterr().err
    short = ["--name", "short", "--eval_kwargs.max_episode_steps", "8"]
    assert main(["evaluate", str(folder), "--steps", "32", "--trials", "2", *short]) == 0
    capsys.readouterr()
    assert len(json.loads((folder / "short.json").read_text())["agent"]["metrics"]["return"]["mean"]) == 4
    assert (folder / "evaluation.json").read_bytes() == before
    assert main(["evaluate", str(folder), "--steps", "32", "--trials", "2", "--demonstrations", "1", *short[:2]]) == 0
    capsys.readouterr()
    assert set(json.loads((folder / "short.json").read_text())) == {"agent"}
    shorter = ["--steps", "1", "--trials", "2", "--name", "shorter"]  # than any episode
    assert main(["evaluate", str(folder), *shorter]) == 0
    assert "agent    return by episode: none that all trials have ended within these steps" in capsys.readouterr().out
    assert main(["evaluate", str(folder), "--ppo.n_epochs", "2"]) == 2
    assert "settings must come as --eval_kwargs.name value" in capsys.readouterr().err
    weights = (folder / CHECKPOINT).read_bytes()
    for changed in (["--seed", "3"], ["--total_steps", "2048"], ["--policy.memory", "gru"]):
        assert main([*began, *changed, "--resume"]) == 2
        assert (
            f"{changed[0][2:]} is " in (refused := capsys.readouterr().err) and "the command that began it" in refused
        )
    assert main(["train", "fourboxes", "--out", str(folder), "--resume"]) == 2  # of another preset
    assert "holds another run" in capsys.readouterr().err
    assert main([*began, "--resume", "--no-evaluate"]) == 0  # it is finished
    assert (folder / CHECKPOINT).read_bytes() == weights and json.loads(capsys.readouterr().out)["steps"] == 1024
    assert main(["report", str(folder), "--json"]) == 0
    assert "<h2>After demonstrations</h2>" in (folder / "report.html").read_text()
    assert json.loads(capsys.readouterr().out) == {"report": str(folder / "report.html")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nope"], "unknown preset 'nope'"),
        (["train", "ci-smoke", "--env", "memenvs/Lightroom-v0"], "`Lightroom` doesn't exist in namespace memenvs"),
        (["train", "ci-smoke", "--env_kwargs.split", "val"], "unknown split 'val'"),
        (["train", "ci-smoke", "--env_kwargs.colour", "1"], "unknown setting 'colour'"),
        (
            ["train", "ci-smoke", "--eval_kwargs.split", "val"],
            "memenvs/Darkroom-v0 with these eval_kwargs: unknown split 'val'",
        ),
        (["train", "ci-smoke", "--policy.memory", "lstmm"], "unknown memory 'lstmm'"),
        (
            ["train", "ci-smoke", "--policy.memry", "lstm"],
            "unknown setting 'memry' of MemoryPolicy; choose from ['memory',",
        ),
        (
            ["train", "ci-smoke", "--device", "gpu"],
            "device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on, got 'gpu'",
        ),
        (["train", "ci-smoke", "--policy.memory_kwargs.layer", "2"], "unknown setting 'layer'"),
        (["train", "ci-smoke", "--ppo.n_updates", "3"], "n_updates must divide n_steps (128), got 3"),
        (
            ["train", "ci-smoke", "--total_steps", "1023"],
            "total_steps must be at least 1024, one rollout (n_envs 8 x ppo.n_steps 128), got 1023",
        ),
        (["train", "ci-smoke", "--resume"], "no run in runs/ci-smoke-0"),
        (["report", "nowhere"], "no run in nowhere"),
        (["train", "ci-smoke", "--n_envs"], "settings must come as --name value"),
        (["train", "ci-smoke", "--n_envs", "x"], "n_envs must be a whole number, got 'x'"),
        (["evaluate", "nowhere"], "no run in nowhere"),
        (["probe", "nowhere"], "no run in nowhere"),
        (["presets", "nope"], "unknown preset 'nope'"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not any(tmp_path.iterdir())  # nothing is left behind


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("ci-smoke", "ballet-smoke"):
        with pytest.raises(ValueError, match="device must be 'auto' or 'cpu' where PyTorch finds no GPU, got 'cuda:1'"):
            check_config(replace(find_preset(name), device="cuda:1"))


def test_a_folder_that_is_taken(tmp_path, capsys):
    with RunDirectory(tmp_path, find_preset("ci-smoke")):
        before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        assert main(["train", "ci-smoke", "--out", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert "already holds a run; choose another folder, or resume it with --resume (it has no checkpoint" in error
        for command in (["train", "ci-smoke", "--resume", "--out"], ["evaluate"], ["report"]):
            assert main([*command, str(tmp_path)]) == 2
            assert "is in use by another process" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ppo.gamma", 0.5, "gamma must be 0.99, got 0.5"),
        ("policy.memory_kwargs.layers", 2, r"memory_kwargs\.layers must be 1, got 2"),
        ("n_envs", 4, "n_envs must be 8, got 4"),
    ],
)
def test_a_checkpoint_of_other_settings(tmp_path, name, value, message):
    with RunDirectory(tmp_path / "other", with_overrides(SMALL, [(name, value), ("total_steps", 128)])) as run:
        train_run(run, quiet=True)
    with RunDirectory(tmp_path / "own", SMALL) as run:
        file = tmp_path / "own" / CHECKPOINT
        file.write_bytes((tmp_path / "other" / CHECKPOINT).read_bytes())
        before = {each: each.read_bytes() for each in run.path.iterdir()}
        for use in (train_run, evaluate_run):
            with pytest.raises(ValueError, match=rf"checkpoint\.zip: is of another run: {message}"):
                use(run)
        file.write_bytes(file.read_bytes()[:1000])
        with pytest.raises(ValueError, match=r"checkpoint\.zip: not a whole checkpoint .*cut short"):
            train_run(run)
        file.write_bytes((tmp_path / "other" / CHECKPOINT).read_bytes())
        assert {each: each.read_bytes() for each in run.path.iterdir()} == before


def test_a_line_of_metrics_cut_by_the_kill_is_forgotten(tmp_path):
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a,3.0\n2,b,1")
        assert run.metrics() == {"a": [(1, 2.0), (2, 3.0)]}
        run.drop_metrics_after(1)
        assert (tmp_path / METRICS).read_text() == "step,name,value\n1,a,2.0\n"


def test_milestones_are_kept_and_can_be_evaluated(tmp_path):
    """Two milestones in four rollouts: after the first that ends at or after a third, and at or after two thirds, of the steps."""
    config = replace(SMALL, total_steps=4096, milestones=2, checkpoint_rollouts=100)
    with RunDirectory(tmp_path / "long", config) as run:
        train_run(run, quiet=True)
        kept = sorted(file.name for file in run.path.glob("checkpoint_*.zip"))
        assert kept == ["checkpoint_2048.zip", "checkpoint_3072.zip"]
        now, then = (trained_policy(run, 0, name).state_dict() for name in (CHECKPOINT, kept[0]))
        assert any((now[name] != then[name]).any() for name in now)
        assert PartialUpdatePPO.load(run.path / kept[0]).num_timesteps == 2048
    arguments = ["evaluate", str(tmp_path / "long"), "--checkpoint", kept[0], "--name", "early", "--trials", "2"]
    assert main([*arguments, "--steps", "32"]) == 0
    assert (tmp_path / "long" / "early.json").is_file()


def test_evaluate_before_the_first_checkpoint(tmp_path, capsys):
    RunDirectory(tmp_path, SMALL).close()
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "no checkpoint at" in capsys.readouterr().err
