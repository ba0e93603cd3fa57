"""Registry of learners: kinds from other packages, names in JSON, wrong settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memenvs.agents import DQNConfig, ImitationConfig, PPOConfig, SupervisedConfig
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments import registry
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import algorithm_of
from memenvs.agents.experiments.registry import (
    Experiment,
    LearnerSpec,
    learners,
    register_learner,
    register_prediction,
)
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.papers.emv.config import QuestionConfig


@dataclass(frozen=True, kw_only=True)
class BanditConfig:
    """Settings of a learner that is no part of this package."""

    arms: int = 2


class BanditExperiment(Experiment):
    """Runs that leave a file."""

    def check(self, config: RunConfig, processes: Processes) -> None:
        if config.learner.arms < 2:
            raise ValueError(f"arms must be at least 2, got {config.learner.arms}")

    def train(self, run: RunDirectory, *, quiet: bool = False) -> Any:
        (run.path / "arms").write_text(str(run.config.learner.arms))

    def evaluate(self, run: RunDirectory, name: str = "evaluation", *, seed: int = 1, **options: Any) -> dict[str, Any]:
        return {"agent": seed}

    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        report.text(f"{len(runs)} bandits")


BANDIT = LearnerSpec(name="bandit", config=f"{__name__}:BanditConfig", experiment=f"{__name__}:BanditExperiment")


def test_a_learner_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))
    register_learner(BANDIT)
    config = with_overrides(RunConfig(learner=BanditConfig()), [("bandit.arms", 3)])
    assert config.to_json()["bandit"] == {"arms": 3} and config.to_json()["ppo"] is None
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    with pytest.raises(ValueError, match="arms must be at least 2, got 1"):
        check_config(replace(config, learner=BanditConfig(arms=1)))
    with RunDirectory(tmp_path, config) as run:
        train_run(run)
        assert (tmp_path / "arms").read_text() == "3"
        assert run.config.make_experiment().evaluate(run, seed=4) == {"agent": 4}
        with RunDirectory(tmp_path / "ppo", RunConfig()) as other:
            page = write_report([run, other], tmp_path).read_text(encoding="utf-8")
        assert "1 bandits" in page and 'alt="learning"' in page


def test_what_is_supervised_depends_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PREDICTIONS", dict(registry._PREDICTIONS))
    for _ in range(2):  # again has no effect
        register_prediction("corridor/Corridor-v0", f"{__name__}:BanditExperiment")
    config = RunConfig(env="corridor/Corridor-v0", learner=SupervisedConfig())
    assert isinstance(config.make_experiment(), BanditExperiment)
    for env, name in (("memenvs/RoomBallet-MVFO-v0", "SATExperiment"), ("memenvs/EpisodicQA-v0", "QuestionExperiment")):
        assert type(replace(config, env=env).make_experiment()).__name__ == name
    with pytest.raises(ValueError, match=r"env must be new, got 'memenvs/Ballet3D-v0', whose model is that of .*SAT"):
        register_prediction("memenvs/Ballet3D-v0", f"{__name__}:BanditExperiment")
    with pytest.raises(
        ValueError, match="env must be one that can be learned by prediction, got 'memenvs/Darkroom-v0'"
    ):
        replace(config, env="memenvs/Darkroom-v0").make_experiment()


def test_each_learner_has_its_key_in_json() -> None:
    settings = {
        "ppo": PPOConfig(),
        "dqn": DQNConfig(),
        "imitation": ImitationConfig(),
        "supervised": SupervisedConfig(),
        "questions": QuestionConfig(),
    }
    assert {learner.name for learner in learners()} == set(settings)
    for name, learner in settings.items():
        config = RunConfig(learner=learner)
        data = config.to_json()
        assert {key: data[key] for key in settings} == {**dict.fromkeys(settings), name: asdict(learner)}
        assert RunConfig.from_json(data) == config
        assert isinstance(learner, config.kind.config_type)
        assert ("n_envs" in data) == config.kind.acts == (name not in ("supervised", "questions"))


def test_settings_of_no_or_two_learners_are_refused() -> None:
    with pytest.raises(TypeError, match=r"learner must be the settings of one of \['ppo', .*\], got \{\}"):
        RunConfig(learner={})
    data = RunConfig().to_json()
    for change, names in (({"ppo": None}, []), ({"dqn": asdict(DQNConfig())}, ["ppo", "dqn"])):
        with pytest.raises(ValueError, match="must have the settings of one learner of") as error:
            RunConfig.from_json({**data, **change})
        assert str(error.value).endswith(f"got {names}")


def test_a_name_means_one_learner() -> None:
    register_learner(registry.find_learner_by_name("ppo"))  # again
    with pytest.raises(ValueError, match="name of a learner must be new, got 'ppo'"):
        register_learner(replace(BANDIT, name="ppo"))
    with pytest.raises(ValueError, match="unknown learner 'pp0'; did you mean 'ppo'"):
        registry.find_learner_by_name("pp0")


def test_what_predicts_has_no_algorithm_that_acts() -> None:
    with pytest.raises(ValueError, match="run must be of an agent that acts, got one that learns to predict"):
        algorithm_of(RunConfig(learner=SupervisedConfig()))
