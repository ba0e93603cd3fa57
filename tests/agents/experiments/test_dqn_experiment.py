"""Runs that learn from a replay: two stages, validation, and the same bits after a kill."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from memenvs.agents import DQNConfig, EpisodeDQN
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import BEST, CHECKPOINT, VALIDATION, RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.cli import main
from tests.test_cli import refuse

SMALL = RunConfig(
    env="memenvs/Darkroom-v0",
    env_kwargs={"size": 4, "max_episode_steps": 8, "trial_episodes": 1},
    n_envs=8,
    total_steps=8 * 8 * 14,
    threads=1,
    device="cpu",
    learner=DQNConfig(
        capacity=32, episode_steps=8, updates_per_collect=5, batch_size=8, decisions=4, learning_rate=0.01
    ),
    policy={"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}},
    eval_steps=8,
    eval_trials=8,
    checkpoint_rollouts=3,
    validation_kwargs={"split": "test"},
    validation_trials=8,
)

#: Command that trains a stage of Coverage in seconds.
COVERAGE = """
train coverage-laptop --n_envs 4 --eval_envs 4 --eval_steps 50 --eval_trials 8 --validation_trials 4
--env_kwargs.max_episode_steps 50 --policy.memory_kwargs.dim 32
--dqn.episode_steps 50 --dqn.capacity 16 --dqn.batch_size 8 --dqn.decisions 4 --dqn.updates_per_collect 10
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Folder of a run that was not killed."""
    folder = tmp_path_factory.mktemp("whole")
    with RunDirectory(folder, SMALL) as run:
        model = train_run(run, quiet=True)
    assert (model.num_timesteps, model._n_updates) == (896, 55)
    return folder


def test_a_replay_that_is_missing_or_cut_short(whole, tmp_path, monkeypatch):
    """With the whole replay the run ends with the bits of one that went on."""
    folder, file = tmp_path, tmp_path / "replay_192.safetensors"
    with RunDirectory(folder, SMALL) as run, monkeypatch.context() as patched, pytest.raises(TypeError):
        patched.setattr(EpisodeDQN, "train", None)  # the first update, after 256 steps, fails
        train_run(run, quiet=True)
    assert list(folder.glob("replay_*")) == [file]
    content = file.read_bytes()
    for damage, error, message in (
        (lambda: file.write_bytes(content[:-100]), ValueError, r"replay_192.safetensors: not a whole replay .*cut sho"),
        (file.unlink, FileNotFoundError, r"no file '.*replay_192.safetensors' with a replay"),
    ):
        damage()
        with RunDirectory(folder) as run, pytest.raises(error, match=message):
            train_run(run, quiet=True)
    file.write_bytes(content)
    with RunDirectory(folder) as run:
        train_run(run, quiet=True)
    for name in (CHECKPOINT, BEST):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


def test_the_best_checkpoint_in_validation_is_kept(tmp_path, monkeypatch):
    scores = iter([1.0, 3.0, 2.0, 2.5])
    play = TrialEvaluator.run

    def scored(self: Any, policy: Any) -> Any:
        results = play(self, policy)
        results.metrics["return"][:] = next(scores)
        return results

    with RunDirectory(tmp_path, SMALL) as run:
        with monkeypatch.context() as patched:
            patched.setattr(TrialEvaluator, "run", scored)
            last = train_run(run, quiet=True)
        assert run.metrics()[VALIDATION] == [(384, 1.0), (576, 3.0), (768, 2.0), (896, 2.5)]
        best = EpisodeDQN.load(tmp_path / BEST, device="cpu")
        assert best.num_timesteps == 576
        for policy in (trained_policy(run, 0), trained_policy(run, 0, BEST)):
            assert torch.equal(policy.actor.linear.weight, best.policy.actor.linear.weight)
        latest = trained_policy(run, 0, CHECKPOINT)
        assert torch.equal(latest.actor.linear.weight, last.policy.actor.linear.weight)
        assert not torch.equal(latest.actor.linear.weight, best.policy.actor.linear.weight)


def test_validation_changes_nothing_of_learning(whole, tmp_path):
    """With and without it, the same bits."""
    with RunDirectory(tmp_path, replace(SMALL, validation_trials=0)) as run:
        train_run(run, quiet=True)
    assert (whole / CHECKPOINT).read_bytes() == (tmp_path / CHECKPOINT).read_bytes()
    assert not (tmp_path / BEST).exists()


def test_validation_and_evaluation_have_splits_of_their_own(tmp_path, monkeypatch):
    played: list[str] = []
    play = TrialEvaluator.run

    def watched(self: TrialEvaluator, policy: Any, *progress: Any) -> Any:
        played.append(self.env.get_attr("task")[0].config.split)
        return play(self, policy, *progress)

    monkeypatch.setattr(TrialEvaluator, "run", watched)
    config = replace(SMALL, eval_kwargs={"split": "all"}, total_steps=8 * 8 * 6)
    with RunDirectory(tmp_path, config) as run:
        model = train_run(run, quiet=True)
        evaluate_run(run)
    assert model.env.get_attr("task")[0].config.split == "train"
    assert len(played) > 1 and played == ["test"] * (len(played) - 1) + ["all"]


def test_evaluation_draws_its_actions(tmp_path, monkeypatch):
    """Actions follow softmax(Q / temperature), which is here the same in all states."""
    config = replace(SMALL, policy={"memory": "none", "net_arch": []}, validation_trials=0, total_steps=8 * 8 * 5)
    config = with_overrides(config, [("dqn.temperature", 0.5)])
    outputs = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5])
    actions_taken: list[int] = []
    begin_step = TrialVecEnv.step_async

    def watched(self: TrialVecEnv, actions: np.ndarray) -> None:
        actions_taken.extend(actions.tolist())
        begin_step(self, actions)

    with RunDirectory(tmp_path, config) as run:
        model = train_run(run, quiet=True)
        with torch.no_grad():
            model.policy.actor.linear.weight.zero_()
            model.policy.actor.linear.bias.copy_(outputs)
        model.save(tmp_path / CHECKPOINT)
        at = torch.zeros(1, 1, dtype=torch.int64)
        outputs = model.q_values(model.policy, at[0], at)[0, 0].detach() / 0.5
        monkeypatch.setattr(TrialVecEnv, "step_async", watched)
        evaluate_run(run, eval_trials=64)
    shares = np.bincount(actions_taken, minlength=5) / len(actions_taken)
    assert len(actions_taken) == 64 * 8
    np.testing.assert_allclose(shares, outputs.softmax(-1), atol=0.08)  # 3.6 standard deviations


@pytest.mark.slow
def test_two_stages_on_the_command_line(tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    few = ["--eval_trials", "2", "--dqn.capacity", "8", "--dqn.updates_per_collect", "2", "--json"]
    short = ["--total_steps", "600", "--validation_trials", "0", "--no-evaluate", "--encoder_from", "null"]
    for name, value in {"single_steps": "true", "freeze_features": "false", "freeze_previous_action": "false"}.items():
        short += [f"--policy.{name}", value]
    assert main([*COVERAGE.split(), "--out", str(first), *few, *short]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 600
    short = ["--total_steps", "1000", "--checkpoint_rollouts", "2"]
    command = [*COVERAGE.split(), "--out", str(second), "--encoder_from", str(first), *few, *short]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)["evaluation"]
    assert {"cells", "collisions", "return"} <= set(result["agent"]["metrics"])
    assert (second / "validation.png").is_file()
    assert "validation" in (second / "report.html").read_text()
    with RunDirectory(first) as one, RunDirectory(second) as two:
        learned, taken = (trained_policy(run, 0).state_dict() for run in (one, two))
        latest = trained_policy(two, 0, CHECKPOINT).state_dict()
        assert evaluate_run(two, eval_trials=2).metrics["cells"].shape == (2, 1)
    encoder = [name for name in learned if name.startswith(("features_extractor.", "previous_action."))]
    assert len(encoder) == 7  # three layers with their biases, and the embedding of the previous action
    for name in encoder:
        assert torch.equal(learned[name], taken[name]), name
        assert torch.equal(learned[name], latest[name]), name
    assert main([*command, "--resume"]) == 0  # it is finished


def test_mistakes_are_one_line_and_leave_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "encoder_from must be the run or checkpoint"
    for changes, message in {
        "--encoder_from null": f"{source} whose encoder is taken over where policy.freeze_features",
        "": f"{source} of a first stage, there is none at runs/coverage-laptop-encoder-0; train it",
        "--total_steps 800": "total_steps must be above 800, which filling the replay can take (16 episodes of dqn.epi",
        "--n_envs 17": "dqn.capacity must be at least n_envs, 17, got 16",
        "--env_kwargs.max_episode_steps 60 --eval_steps 60": "episode_steps must be at least the 60 steps of the env",
        "--validation_kwargs.split validate": "unknown split 'validate'",
    }.items():
        assert message in refuse(capsys, *COVERAGE.split(), *changes.split()), changes
        assert not any(tmp_path.iterdir())
