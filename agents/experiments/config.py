"""Settings of a run."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.mtvm.imitation_config import ImitationConfig
from memenvs.checks import check_fields, choices_for


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run.

    Attributes:
        env: Gymnasium id.
        env_kwargs: Settings of the training environment, JSON on the command line.
        n_envs: Copies of it; >= 1.
        total_steps: Environment steps of the whole run, all copies together; >= 1. Whole rollouts are played: training ends
            with the first that reaches them. Of a run that learns to predict, its batches; of one with `imitation`, its updates.
        seed: Of everything random; >= 0.
        device: "auto", "cpu", "cuda" or a GPU of several, such as "cuda:1".
        threads: CPU threads of PyTorch; 0 leaves its own choice.
        ppo: Settings of `PartialUpdatePPO`; the defaults if no learner's are given.
        dqn: Settings of `EpisodeDQN`, which learns instead if they are given.
        imitation: Settings of `ImitationA2C`, which learns from the teacher of an environment instead if they are given.
        supervised: Settings of `SupervisedLearner`, which learns to predict instead if they are given: from batches of a prediction task
            (`RoomBallet`), without acting. The fields in `ACTING` stay as they are then.
        policy: Settings of the policy (`MemoryPolicy`; with `imitation` `MTVMPolicy`), or of the model that predicts (`BalletModel`), JSON on the
            command line.
        encoder_from: Folder of a run, or checkpoint, whose encoder (features extractor and embedding of the previous action) is taken over
            at the start; "{seed}" in it stands for this run's seed. None for none. What is frozen must come from somewhere: needed with
            `policy.freeze_features`. With `imitation` all weights are taken over, or it is the file of PREVALENT's.
        eval_kwargs: Changes to `env_kwargs` for evaluation: what was not trained on. JSON on the command line.
        eval_steps: Steps of an evaluation trial; >= 1.
        eval_trials: Trials of an evaluation, or episodes where an answer is predicted; >= 1.
        eval_all_layouts: Whether evaluation goes through the layouts 0, 1, 2, ... in turn instead of drawing them.
        score: Metric that the in-context curve shows.
        checkpoint_rollouts: Rollouts between two checkpoints; >= 1.
        milestones: Checkpoints that are kept along the way, evenly spread over the run; >= 0.
        validation_kwargs: Changes to `env_kwargs` for validation. JSON on the command line.
        validation_trials: Trials of a validation, of `eval_steps` each, with every checkpoint; the one with the best mean return of an
            episode is kept, and evaluated. 0 for no validation; >= 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range, settings of two learners, or one of `ACTING` for a learner that does not act.
    """

    env: str = "memenvs/Darkroom-v0"
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    n_envs: int = 64
    total_steps: int = 1_000_000
    seed: int = 0
    device: str = "auto"
    threads: int = 0
    ppo: PPOConfig | None = None
    dqn: DQNConfig | None = None
    imitation: ImitationConfig | None = None
    supervised: SupervisedConfig | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    encoder_from: str | None = None
    eval_kwargs: dict[str, Any] = field(default_factory=dict)
    eval_steps: int = 1000
    eval_trials: int = 100
    eval_all_layouts: bool = False
    score: str = "return"
    checkpoint_rollouts: int = 10
    milestones: int = 0
    validation_kwargs: dict[str, Any] = field(default_factory=dict)
    validation_trials: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("n_envs", "total_steps", "eval_steps", "eval_trials", "checkpoint_rollouts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("seed", "threads", "milestones", "validation_trials"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on, got {self.device!r}")
        given = [name for name in LEARNERS if getattr(self, name) is not None]
        if not given:
            object.__setattr__(self, "ppo", PPOConfig())
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given[:-1])} must be None where {given[-1]} is given: one of them learns, got both"
            )
        if self.supervised is not None:
            plain = RunConfig()
            changed = [name for name in ACTING if getattr(self, name) != getattr(plain, name)]
            if changed:
                raise ValueError(
                    f"{changed[0]} must be left out of a run that learns to predict, got {getattr(self, changed[0])}"
                )

    @property
    def settings(self) -> PPOConfig | DQNConfig | ImitationConfig | SupervisedConfig:
        """Settings of the learner."""
        settings = self.ppo or self.dqn or self.imitation or self.supervised
        assert settings is not None
        return settings

    @property
    def deterministic(self) -> bool:
        """Whether the agent takes its best actions where it is evaluated, as imitators do, or draws them."""
        return self.imitation is not None

    def use_threads(self) -> None:
        """Gives PyTorch in this process as many CPU threads as the run has."""
        import torch  # here, since presets are listed without it

        if self.threads > 0:
            torch.set_num_threads(self.threads)

    def to_json(self) -> dict[str, Any]:
        """Plain data; of a run that learns to predict without what it must leave out."""
        data = asdict(self)
        return data if self.supervised is None else {key: data[key] for key in data if key not in ACTING}

    @staticmethod
    def from_json(data: dict[str, Any]) -> RunConfig:
        """The inverse of `to_json`.

        Raises:
            ValueError: A field is unknown.
        """
        known = {each.name for each in fields(RunConfig)}
        for key in data:
            if key not in known:
                raise ValueError(f"unknown field {key!r} of a run; choose from {sorted(known)}")
        learners: dict[str, Any] = dict(
            zip(LEARNERS, (PPOConfig, DQNConfig, ImitationConfig, SupervisedConfig), strict=True)
        )
        # runs of early versions know fewer learners
        given = {"ppo": data["ppo"], **{name: data.get(name) for name in LEARNERS[1:]}}
        parts = {name: None if each is None else learners[name](**each) for name, each in given.items()}
        return RunConfig(**{**data, **parts})


CONFIG = "config.json"
"""File of the settings in the folder of a run."""
LEARNERS = ("ppo", "dqn", "imitation", "supervised")
ACTING = (
    "n_envs", "encoder_from", "eval_steps", "eval_all_layouts", "checkpoint_rollouts", "milestones", "validation_kwargs",
    "validation_trials",
)  # fmt: skip
"""What only runs have whose learner acts."""

_WITH_PARTS = ("dqn", "env_kwargs", "eval_kwargs", "imitation", "policy", "ppo", "supervised", "validation_kwargs")


def read_config(path: Path) -> RunConfig:
    """The settings of the run in a folder.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: They cannot be read.
    """
    file = path / CONFIG
    if not file.is_file():
        raise FileNotFoundError(f"no run in {path}: {CONFIG} is missing")
    try:
        return RunConfig.from_json(json.loads(file.read_text()))
    except (json.JSONDecodeError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{file}: not the settings of a run ({error})") from None


def difference(found: RunConfig, wanted: RunConfig) -> str | None:
    """The first setting that two runs do not share, in words; of the run that an encoder comes from the name only, as folders are moved."""
    return _difference(_comparable(found), _comparable(wanted))


def _comparable(config: RunConfig) -> dict[str, Any]:
    """Settings as they are in a file."""
    data = json.loads(json.dumps(config.to_json()))
    if data.get("encoder_from") is not None:
        data["encoder_from"] = Path(data["encoder_from"]).name
    return data


def _difference(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> str | None:
    for key in sorted({*found, *wanted}):
        has, must = found.get(key), wanted.get(key)
        if isinstance(has, dict) and isinstance(must, dict):
            inner = _difference(has, must, f"{prefix}{key}.")
            if inner is not None:
                return inner
        elif has != must:
            return f"{prefix}{key} is {has!r} there and not {must!r}"
    return None


def with_overrides(config: RunConfig, pairs: list[tuple[str, Any]]) -> RunConfig:
    """A config with some fields changed.

    Args:
        config: Where to start from.
        pairs: (dotted name, value), such as ("ppo.n_epochs", 2) or ("env_kwargs.size", 6).

    Raises:
        ValueError: A name does not exist, or a value is out of range.
        TypeError: A value has a wrong type.
    """
    changes: dict[str, Any] = {}
    learned: dict[str, Any] = {}  # settings of the learner
    learner = next(each for each in LEARNERS if getattr(config, each) is not None)
    for name, value in pairs:
        head, _, rest = name.replace("-", "_").partition(".")
        if head in LEARNERS and rest:
            if head != learner:
                raise ValueError(f"{name!r} cannot be set: this run learns with {learner}")
            learned[_known(config.settings, rest)] = value
        elif rest:
            table = changes.get(head, getattr(config, head, None))
            if not isinstance(table, dict):
                raise ValueError(f"unknown setting {name!r}; only {', '.join(_WITH_PARTS)} have parts")
            changes[head] = _nested(table, rest.split("."), value)
        else:
            changes[_known(config, head)] = value
    if learned:
        changes[learner] = replace(config.settings, **learned)
    return replace(config, **changes)  # at once, since what one setting allows may depend on another


def _known(owner: Any, name: str) -> str:
    """The name, if the dataclass has such a field that can be set as a whole."""
    names = sorted(each.name for each in fields(owner))
    if name not in names or name in LEARNERS:
        raise ValueError(f"unknown setting {name!r}; {choices_for(name, names)}")
    return name


def _nested(table: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """A copy of a nested dict with one entry changed."""
    if len(path) == 1:
        return {**table, path[0]: value}
    inner = table.get(path[0], {})
    if not isinstance(inner, dict):
        raise ValueError(f"{path[0]!r} must be an object to have a part {path[1]!r}, got {inner!r}")
    return {**table, path[0]: _nested(inner, path[1:], value)}
