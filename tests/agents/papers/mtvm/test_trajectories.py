"""Result files of agents have the scores that the environment computed, in the toy house."""

import json
from pathlib import Path
from typing import Any

import pytest

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, evaluation_env
from memenvs.agents.experiments.play import RandomPolicy
from memenvs.agents.experiments.train import train_run
from memenvs.agents.papers.mtvm.trajectories import check_trajectories, write_trajectories
from memenvs.cli import main
from memenvs.vln.results import TASKS, score_file
from tests.agents.papers.mtvm.learners import config, kwargs

IDS = {"r2r": ["7_0", "7_1", "8_0"], "ndh": [3, 4]}


def task_config(folder: Path, task: str, **changes: Any) -> RunConfig:
    """A run of one update, and of episodes of two steps."""
    own: dict[str, Any] = {
        "env": {"r2r": "memenvs/VLN-R2R-v0", "ndh": "memenvs/VLN-CVDN-v0"}[task],
        "env_kwargs": kwargs(folder, max_episode_steps=2),
        "total_steps": 1,
        "eval_kwargs": {"split": "val_seen", "trial_episodes": 1},
        "eval_trials": len(IDS[task]),
    }
    return config(folder, **(own | changes))


@pytest.mark.parametrize("task", IDS)
@pytest.mark.parametrize("who", ["agent", "random"])
def test_scores_are_those_of_the_evaluation(toy_data: Path, tmp_path: Path, task: str, who: str) -> None:
    """Some episodes end by STOP at the first node, some by the time limit."""
    key, metrics = TASKS[task]
    lengths = set()
    with RunDirectory(tmp_path / "run", task_config(toy_data, task)) as run:
        train_run(run, quiet=True)
        actions = evaluation_env(run.config, 1, 1).action_space
        for seed in range(1, 6 if who == "random" else 2):
            results: dict[str, Any] = {}
            for use in (evaluate_run, write_trajectories):
                policy = RandomPolicy(actions, seed) if who == "random" else None  # its draws begin anew
                results[use.__name__] = use(run, seed=seed, policy=policy, quiet=True)
            path = results["write_trajectories"]
            assert path == tmp_path / "run" / "trajectories_val_seen.json"
            entries = json.loads(path.read_text())
            assert [entry[key] for entry in entries] == IDS[task]
            lengths |= {len(entry["trajectory"]) for entry in entries}
            for name, score in score_file(task, path, "val_seen", toy_data).items():
                assert name in metrics and score == pytest.approx(results["evaluate_run"].metrics[name][:, 0].mean())
    assert who == "agent" or {1, 3} <= lengths


def test_on_the_command_line(toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "run", tmp_path / "new" / "trajectories.json"
    with RunDirectory(folder, task_config(toy_data, "r2r", env_kwargs=kwargs(toy_data))) as run:
        train_run(run, quiet=True)
        write_trajectories(run, split="train", quiet=True)
    assert main(["trajectories", str(folder), "--split", "train", "--out", str(out)]) == 0
    assert f"written: {out}" in capsys.readouterr().out and "trajectory" in json.loads(out.read_text())[0]
    assert out.read_bytes() == (folder / "trajectories_train.json").read_bytes()
    assert main(["score", "r2r", str(out), "--split", "train", "--data", str(toy_data)]) == 0
    assert main(["trajectories", str(folder), "--split", "val_unsen"]) == 2
    assert "unknown split 'val_unsen'" in capsys.readouterr().err


def test_runs_without_result_files(toy_data: Path) -> None:
    for changes, message in (
        ({"env_kwargs": {"world": "procedural"}}, "world must be 'mp3d', .* result files .*, got 'procedural'"),
        ({"env_kwargs": {}}, "got 'procedural'"),
        ({"eval_kwargs": {"world": "procedural"}}, "got 'procedural'"),
        ({"eval_kwargs": {"world": "mp3d", "legs": 2}}, "legs must be 1 or None, as in .* result files, got 2"),
        ({"env": "memenvs/Darkroom-v0"}, r"env must be one of \['memenvs/VLN-R2R-v0', .*\], got 'memenvs/Darkroom-v0'"),
    ):
        with pytest.raises(ValueError, match=message):
            check_trajectories(task_config(toy_data, "r2r", **changes))
