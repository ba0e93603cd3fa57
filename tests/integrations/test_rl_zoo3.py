"""RL Baselines3 Zoo with the hyper-parameters of examples/rl_zoo3."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

pytest.importorskip("rl_zoo3", reason="needs rl_zoo3, which holds Pillow below 12: pip install rl_zoo3 requests")

EXAMPLES = Path(__file__).parents[2] / "examples" / "rl_zoo3"


def zoo(folder: Path, program: str, algorithm: str, id: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"rl_zoo3.{program}", "--algo", algorithm, "--env", id, *arguments]
    done = subprocess.run([*command, "--gym-packages", "memenvs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("algorithm", "id", "settings", "length"),
    [
        ("ppo", "memenvs/Darkroom-v0", ("size:4", "max_episode_steps:16", "trial_episodes:4"), 16),
        ("ppo", "memenvs/FourBoxes-v0", ("image_size:[36,36]",), 50),
        ("ppo_lstm", "memenvs/Darkroom-v0", ("size:4", "max_episode_steps:16", "trial_episodes:4"), 16),
    ],
)
def test_training_and_playing(tmp_path: Path, algorithm: str, id: str, settings: tuple[str, ...], length: int) -> None:
    conf = ("--conf-file", str(EXAMPLES / f"{algorithm}.yml"), "--n-timesteps", "1024", "--seed", "1")
    evaluation = ("--eval-freq", "512", "--eval-episodes", "2", "--eval-env-kwargs", *settings)
    zoo(tmp_path, "train", algorithm, id, *conf, *evaluation)
    name = id.replace("/", "-")
    folder = tmp_path / "logs" / algorithm / f"{name}_1"
    assert (folder / f"{name}.zip").is_file() and (folder / "evaluations.npz").is_file()
    rows = list(csv.reader((folder / "0.monitor.csv").read_text().splitlines()[2:]))
    assert {int(row[1]) for row in rows} == {length}
    played = zoo(tmp_path, "enjoy", algorithm, id, "-f", "logs", "--no-render", "--n-timesteps", "200")
    assert "Episode Reward" in played
