"""The template of an own package, installed and run outside of this tree."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_docs import blocks, commands, script
from tests.virtual_environment import Environment

pytestmark = pytest.mark.programs

TEMPLATE = Path(__file__).parents[1] / "examples" / "own_task_and_memory"


def test_the_template_is_installed_and_runs(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(TEMPLATE, package, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    environment = Environment(tmp_path / "env", sees_tree=True)
    done = environment.install(str(package))
    assert done.returncode == 0, done.stderr

    def run(*arguments: str) -> str:
        command = [environment.python, *arguments]
        found = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr
        assert "Warning" not in found.stderr
        return found.stdout

    assert "4 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(package / "tests"))
    rows = json.loads(run("-m", "memenvs", "list", "--json"))
    assert rows[-1]["id"] == "corridor/Corridor-v0" and rows[-1]["remembers"]
    code = (  # in one process, as starting takes longest; whichever is imported first
        "import memenvs_corridor.registration, memenvs, gymnasium\n"
        "from memenvs.cli import main\n"
        "print(gymnasium.make('memenvs:corridor/Corridor-v0', length=3).unwrapped.task.config)\n"
        "assert main(['rollout', 'Corridor-v0', '--policy', 'oracle', '--json']) == 0\n"
        "assert main(['record', 'Corridor-v0', '--policy', 'oracle', '--out', 'a.gif']) == 0\n"
    )
    config, played = run("-c", code).splitlines()[:2]
    assert config == "CorridorConfig(length=3, max_episode_steps=20)"
    assert json.loads(played)["metrics"]["success"]["mean"] == 1.0
    assert (tmp_path / "a.gif").stat().st_size > 0
    page = (TEMPLATE.parents[1] / "docs" / "certificates.md").read_text().partition("## Certify your own id")[2]
    (rows,) = (block.text for block in blocks(page) if block.language == "json")
    (tmp_path / "trained.json").write_text(rows)
    lines = [f"assert main({words[1:]}) == 0" for words in commands(page)]
    # an id that is registered again must have an equal row
    certified = run("-c", "\n".join([script(page), "from memenvs.cli import main", *lines]))
    assert len(lines) == 3 and certified.count("corridor/Corridor-v0: short") == 3
    assert "trained, window 4" in (tmp_path / "new.json").read_text()
    code = (  # in one process, as importing torch takes longest
        "from memenvs.agents import make_vec_env, presets\n"
        "from memenvs.cli import main\n"
        "assert main(['train', 'corridor', '--total_steps', '2048', '--json']) == 0\n"
        "print(type(make_vec_env('corridor/Corridor-v0', 2)).__name__, 'corridor' in presets.PRESETS)"
    )
    trained, rest = run("-c", code).splitlines()
    result = json.loads(trained)
    assert result["steps"] == 2048 and "success" in result["evaluation"]["agent"]["metrics"]
    assert set(result["evaluation"]) == {"agent", "random", "memoryless", "oracle"}
    assert rest == "TrialVecEnv True"
