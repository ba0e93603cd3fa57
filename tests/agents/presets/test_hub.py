"""Agents in folders and on a pretended Hub; broken and foreign folders are refused."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
import yaml

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.config import RunConfig, difference, read_config, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import trained_policy
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.hub import push_to_hub, save_to_folder
from memenvs.agents.presets.pretrained import load_pretrained, pretrained_config
from memenvs.agents.presets.training_command import training_command
from memenvs.cli import main, make_parser
from memenvs.cli.common import json_or_text
from tests.agents.small_ballet import ARGUMENTS

NAME = "hf:someone/dark-agent"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run with an evaluation and a setting that its preset does not have."""
    folder = tmp_path_factory.mktemp("hub") / "dark-agent"
    settings = ["--total_steps", "1024", "--eval_trials", "4", "--ppo.gamma", "0.9", "--threads", "1"]
    assert main(["train", "ci-smoke", "--out", str(folder), "--json", *settings]) == 0
    return folder


@pytest.fixture
def agent(run: Path, tmp_path: Path) -> Path:
    return save_to_folder(run, tmp_path / "agent")


class FakeApi:
    """A Hub in a folder: `root/ORGANISATION/NAME/REVISION`."""

    root: Path
    downloads: list[str]
    created: list[tuple[str, bool]]

    def __init__(self, token: str | None = None) -> None:
        pass

    def create_repo(self, repository: str, *, private: bool, exist_ok: bool) -> str:
        assert exist_ok
        self.created.append((repository, private))
        return f"https://huggingface.co/{repository}"

    def upload_folder(
        self, *, repo_id: str, folder_path: Path, commit_message: str, delete_patterns: list[str]
    ) -> None:
        assert commit_message.startswith("Agent of memenvs") and delete_patterns == ["versions.json", "evaluation.json"]
        shutil.copytree(folder_path, self.root / repo_id / "main")

    def model_info(self, repository: str, *, revision: str | None) -> Any:
        folder = self.root / repository / (revision or "main")
        if not folder.is_dir():
            response = SimpleNamespace(status_code=404, headers={}, request=None)
            raise huggingface_hub.errors.RepositoryNotFoundError("404: there is none", response=response)  # type: ignore[arg-type]
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        return SimpleNamespace(sha=revision or "main", siblings=[SimpleNamespace(rfilename=name) for name in names])

    def hf_hub_download(self, repository: str, name: str, *, revision: str) -> str:
        self.downloads.append(name)
        return str(self.root / repository / revision / name)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeApi]:
    FakeApi.root, FakeApi.downloads, FakeApi.created = tmp_path / "hub", [], []
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeApi)
    return FakeApi


def assert_same_policy(run: Path, name: str | Path) -> None:
    """The agent has the weights of the run's checkpoint, and draws the same actions."""
    with RunDirectory(run) as opened:
        expected = trained_policy(opened, seed=3)
    loaded = load_pretrained(name, seed=3, device="cpu")
    weights = loaded.state_dict()
    assert all(torch.equal(weights[key], value) for key, value in expected.state_dict().items())
    observation = expected.observation_space.sample()
    assert loaded.predict(observation)[0] == expected.predict(observation)[0]


@pytest.mark.slow
def test_a_folder_holds_the_agent_its_settings_and_scores(run: Path, agent: Path) -> None:
    names = "README.md checkpoint.zip config.json evaluation.json versions.json"
    assert sorted(path.name for path in agent.iterdir()) == names.split()
    assert_same_policy(run, agent)
    assert_same_policy(run, run)  # the folder of a run is accepted too
    assert pretrained_config(agent) == read_config(run)
    assert pretrained_config("extobjnav-small") == find_preset("extobjnav-small")


def test_the_model_card_has_scores_and_command(run: Path, agent: Path) -> None:
    _, metadata, text = (agent / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    data = yaml.safe_load(metadata)
    assert data["library_name"] == "memenvs" and "reinforcement-learning" in data["tags"]
    means = json.loads((run / "evaluation.json").read_text())["agent"]["metrics"]["return"]["mean"]
    (result,) = data["model-index"][0]["results"]
    assert [metric["value"] for metric in result["metrics"]] == [means[0], means[-1]]
    assert f"| agent | 4 | {means[0]:.3g} +- " in text and "| oracle | 4 |" in text
    (line,) = [line for line in text.splitlines() if line.startswith("memenvs train")]
    assert line == "memenvs train ci-smoke --total_steps 1024 --ppo.gamma 0.9 --eval_trials 4"
    assert f"memenvs pull PATH_OF_THIS_FOLDER --out runs/{run.name}" in text


@pytest.mark.slow
def test_the_command_trains_a_run_of_these_settings() -> None:
    for config in (
        with_overrides(find_preset("darkroom"), [("ppo.n_updates", 1)]),
        with_overrides(find_preset("darkroom"), [("seed", 3), ("policy", {"memory": "gru"}), ("env_kwargs", {})]),
        with_overrides(find_preset("ci-smoke"), [("env", "own/Maze-v0"), ("env_kwargs.text", "it's")]),
        RunConfig(learner=ImitationConfig(), env="memenvs/R2R-v0"),
    ):
        command = training_command(config)
        assert command is not None
        words = shlex.split(command)
        assert words[:2] == ["memenvs", "train"]
        settings = [(name, json_or_text(text)) for name, text in make_parser().parse_args(words[1:]).settings]
        assert difference(with_overrides(find_preset(words[2]), settings), config) is None
    assert training_command(find_preset("demo-gap")) == "memenvs train demo-gap"


def test_a_pulled_agent_is_a_run_that_can_be_evaluated_and_not_resumed(
    run: Path, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pulled"
    assert main(["pull", str(agent), "--out", str(folder)]) == 0
    assert f"run: {folder}" in capsys.readouterr().out
    before = (folder / "evaluation.json").read_bytes()
    assert before == (run / "evaluation.json").read_bytes()
    assert main(["evaluate", str(folder), "--json"]) == 0
    assert (folder / "evaluation.json").read_bytes() == before
    capsys.readouterr()
    settings = ["--eval_trials", "4", "--ppo.gamma", "0.9", "--threads", "1", "--total_steps", "2048"]
    assert main(["train", "ci-smoke", "--out", str(folder), "--resume", *settings]) == 2
    assert "training cannot resume from it" in capsys.readouterr().err
    assert main(["pull", str(agent), "--out", str(folder)]) == 2
    assert capsys.readouterr().err == f"memenvs pull: error: {folder} already holds a run; choose another folder\n"


def test_the_hub(run: Path, hub: type[FakeApi], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", str(run), NAME, "--private"]) == 0
    assert "written: https://huggingface.co/someone/dark-agent" in capsys.readouterr().out
    assert hub.created == [("someone/dark-agent", True)]
    assert f"memenvs pull {NAME} --out" in (hub.root / "someone/dark-agent/main/README.md").read_text()
    for name in ("LICENSE", "modeling.py", "pytorch_model.bin"):
        (hub.root / "someone/dark-agent/main" / name).touch()
    assert_same_policy(run, NAME)
    assert set(hub.downloads) == {"checkpoint.zip", "config.json", "versions.json", "evaluation.json"}
    assert main(["pull", NAME, "--out", str(tmp_path / "pulled")]) == 0
    assert_same_policy(run, tmp_path / "pulled")
    assert main(["pull", f"{NAME}@v2", "--out", str(tmp_path / "other")]) == 2
    assert "no agent 'hf:someone/dark-agent@v2' on the Hugging Face Hub" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_without_a_connection_the_error_is_one_line(
    run: Path, hub: type[FakeApi], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise huggingface_hub.errors.HTTPError("Name or service not known")

    for call in ("create_repo", "model_info"):
        monkeypatch.setattr(hub, call, fail)
    for command in (["push", str(run), NAME], ["pull", NAME, "--out", str(tmp_path / "out")]):
        assert main(command) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1 and "the Hugging Face Hub refuses or cannot be reached: Name or" in lines[0]
    assert not (tmp_path / "out").exists()


def test_wrong_names_are_refused(run: Path, hub: type[FakeApi], tmp_path: Path) -> None:
    for name in ("hf:", "hf:agent", "hf:a/b/c", "hf:a/b@", "hf:../b", "hf:a/b c"):
        for call in (load_pretrained, lambda name: push_to_hub(run, name)):
            with pytest.raises(ValueError, match=r"name must be 'hf:ORGANISATION/NAME' or 'hf:...@REVISION', got "):
                call(name)
    with pytest.raises(ValueError, match="must have no revision to push to, got 'hf:a/b@v1'"):
        push_to_hub(run, "hf:a/b@v1")
    with pytest.raises(ValueError, match=r"unknown pretrained agent 'extobjnav-smal'.* mean 'extobjnav-small'.*hf:"):
        load_pretrained("extobjnav-smal")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / ".DS_Store").touch()
    save_to_folder(run, tmp_path / "notes")  # empty but for what macOS writes
    load_pretrained(tmp_path / "notes")
    for file in (tmp_path / "notes").iterdir():
        file.unlink()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(FileExistsError, match="must be a new or empty folder, or one with an agent to replace"):
        save_to_folder(run, tmp_path / "notes")
    with pytest.raises(FileNotFoundError, match=r"notes: must hold an agent of memenvs, 'checkpoint.zip' is missing"):
        load_pretrained(tmp_path / "notes")
    assert main(["push", str(run), str(tmp_path / "new"), "--private"]) == 2 and not (tmp_path / "new").exists()


def _flip_a_weight(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1  # most of the file is weights
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("checkpoint.zip", _flip_a_weight, "not a whole checkpoint .*; was it cut short"),
        ("config.json", Path.unlink, "'config.json' is missing"),
        ("config.json", lambda file: file.write_text("{}"), "config.json: not the settings of a run"),
    ],
)
def test_damaged_folders_are_refused(agent: Path, name: str, damage: Callable[[Path], Any], message: str) -> None:
    damage(agent / name)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        load_pretrained(agent)
    assert str(agent) in str(error.value)


@pytest.mark.slow
def test_a_model_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is shared as an agent is."""
    monkeypatch.chdir(tmp_path)
    assert main(["train", *ARGUMENTS, "--out", "trained/ballet", "--json"]) == 0
    assert main(["push", "trained/ballet", "agent"]) == 0
    assert main(["pull", "agent", "--out", "runs/ballet"]) == 0
    evaluation = Path("trained/ballet/evaluation.json").read_bytes()
    assert main(["evaluate", "runs/ballet", "--json"]) == 0
    assert Path("runs/ballet/evaluation.json").read_bytes() == Path("agent/evaluation.json").read_bytes() == evaluation
    _, metadata, text = Path("agent/README.md").read_text(encoding="utf-8").split("---\n", 2)
    accuracy = json.loads(evaluation)["agent"]["metrics"]["accuracy"]["mean"]
    (metric,) = yaml.safe_load(metadata)["model-index"][0]["results"][0]["metrics"]
    assert (metric["name"], metric["value"]) == ("accuracy", accuracy)
    assert (
        "A model that answers for `memenvs/RoomBallet-FIFO-v0`" in text and f"| agent | 100 | {accuracy:.3g} +-" in text
    )
    with RunDirectory("runs/ballet") as opened:
        scores = evaluate_model(trained_model(opened), 100)
    assert scores["accuracy"].shape == (100,)
    with pytest.raises(
        ValueError, match=r"must be of an agent that acts.* memenvs evaluate scores it, and .*\.trained_model"
    ):
        load_pretrained("agent")
    capsys.readouterr()
    assert main(["train", *ARGUMENTS, "--out", "runs/ballet", "--resume", "--total_steps", "30"]) == 2
    assert "it can answer, but training cannot resume from it" in capsys.readouterr().err


def test_a_replaced_agent_loses_what_it_no_longer_has(run: Path, agent: Path) -> None:
    shutil.copyfile(run / "checkpoint.zip", run / "copy.zip")
    save_to_folder(run, agent, checkpoint="copy.zip")  # whose scores are not known
    assert not (agent / "evaluation.json").exists() and "It was not evaluated." in (agent / "README.md").read_text()
    load_pretrained(agent)


def test_nan_of_earlier_versions_is_null(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "evaluation.json"
    evaluation = json.loads(file.read_text())
    evaluation["agent"]["metrics"]["return"]["stderr_clustered"][0] = float("nan")
    file.write_text(json.dumps(evaluation))
    save_to_folder(tmp_path / "run", tmp_path / "agent")
    text = (tmp_path / "agent" / "evaluation.json").read_text()
    assert text == json.dumps(evaluation).replace("NaN", "null") != file.read_text()
