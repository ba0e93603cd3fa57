"""Settings of runs and kinds of learners: changes by name, JSON, wrong settings."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memenvs.agents import DQNConfig, ImitationConfig, PPOConfig, SupervisedConfig
from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments import registry
from memenvs.agents.experiments.config import RunConfig, difference, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.registry import Experiment, LearnerSpec, learners, register_learner, register_prediction
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.presets import find_preset

SMALL = find_preset("ci-smoke")


def test_an_evaluation_sees_the_end_of_an_episode():
    """Longer instructions need longer evaluation trials."""
    changes = [("env_kwargs.legs", 2), ("env_kwargs.max_tokens", 240)]
    with pytest.raises(ValueError, match="eval_steps must be at least the 30 steps that an episode may take, got 15"):
        check_config(with_overrides(find_preset("vln-laptop"), changes))
    check_config(with_overrides(find_preset("vln-laptop"), [*changes, ("eval_steps", 30)]))
    check_config(with_overrides(SMALL, [("env_kwargs.itinerary", "AB"), ("eval_steps", 1)]))  # played whole


def test_overrides_change_only_what_they_name():
    config = with_overrides(SMALL, [("ppo.n-epochs", 2), ("env_kwargs.size", 6), ("policy.memory_kwargs.layers", 3)])
    assert config.learner == replace(SMALL.learner, n_epochs=2)
    assert config.env_kwargs == {**SMALL.env_kwargs, "size": 6}
    assert config.policy["memory_kwargs"] == {**SMALL.policy["memory_kwargs"], "layers": 3}
    assert config.seed == SMALL.seed
    parts = [("ppo.allocator.strategies", ["fifo", "mvfo"]), ("ppo.allocator.epsilon_steps", 7)]
    config = with_overrides(SMALL, parts)
    assert config.learner.allocator == AllocatorConfig(strategies=("fifo", "mvfo"), epsilon_steps=7)
    again = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config and difference(again, config) is None
    assert with_overrides(config, [("ppo.allocator.epsilon_steps", 8)]).learner.allocator.strategies == ("fifo", "mvfo")
    assert with_overrides(config, [("ppo.allocator", None)]) == SMALL


def test_overrides_are_checked_together():
    """The range of one may depend on another, in any order."""
    config = find_preset("coverage-laptop")
    pairs = [("dqn.capacity", 16), ("dqn.batch_size", 4), ("n_envs", 4)]
    for order in (pairs, pairs[::-1]):
        changed = with_overrides(config, order).learner
        assert (changed.capacity, changed.batch_size) == (16, 4)
    with pytest.raises(ValueError, match=r"batch_size must be at most capacity \(8\), got 16"):
        with_overrides(config, [("dqn.capacity", 8)])
    both = with_overrides(SMALL, [("env_kwargs", {"size": 3}), ("env_kwargs.max_episode_steps", 5)])
    assert both.env_kwargs == {"size": 3, "max_episode_steps": 5}


def test_wrong_overrides_are_named():
    for name, value, message in (
        ("ppo.n_epoch", 2, r"unknown setting 'ppo.n_epoch'; did you mean 'ppo.n_epochs'"),
        ("seeds", 2, "unknown setting 'seeds'"),
        ("n_envs", 0, "n_envs must be at least 1, got 0"),
        ("score.mean", 1, "unknown setting 'score.mean'; only env_kwargs, .*, ppo, .* have parts"),
        ("n-epochs", 2, r"unknown setting 'n-epochs'; did you mean 'ppo.n_epochs'\?"),
        ("memory", "lstm", r"unknown setting 'memory'; did you mean 'policy.memory'\?"),
        ("memory.layers", 2, r"unknown setting 'memory.layers'; did you mean 'policy.memory_kwargs.layers'\?"),
        ("size", 2, r"unknown setting 'size'; did you mean 'env_kwargs.size'\?"),
        ("ppo", 1, "unknown setting 'ppo'"),
        ("learner", 1, "unknown setting 'learner'"),
        ("ppo.allocator.epsilon", 0.5, "unknown setting 'epsilon' of allocator; did you mean 'epsilon_start'"),
        ("ppo.gamma.x", 0.5, "unknown setting 'ppo.gamma.x'; ppo.gamma has no parts, it is 0.99"),
        ("dqn.gamma", 0.5, "'dqn.gamma' cannot be set: this run learns with ppo"),
    ):
        with pytest.raises(ValueError, match=message):
            with_overrides(SMALL, [(name, value)])
    for name, value, message in (
        ("n_envs", "many", "n_envs must be a whole number, got 'many'"),
        ("total_steps", 1e6, "total_steps must be a whole number, got 1000000.0"),
        ("env_kwargs", "x", "env_kwargs must be a dict, got 'x'"),
        ("eval_all_layouts", 1, "eval_all_layouts must be true or false, got 1"),
    ):
        with pytest.raises(TypeError, match=message):
            with_overrides(SMALL, [(name, value)])


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
    with pytest.raises(ValueError, match=r"env must be one .* by prediction, got 'memenvs/Darkroom-v0'"):
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
