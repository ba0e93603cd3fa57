"""Settings of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.registry import (
    Experiment,
    LearnerSpec,
    find_learner,
    find_learner_by_name,
    learners,
)
from memenvs.checks import check_fields, choices_for
from memenvs.files import check_writable
from memenvs.json_records import parse_json


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Settings of a run, which decide every bit of it.

    Attributes:
        env: Gymnasium id.
        env_kwargs: Settings of the training environment, JSON on the command line.
        n_envs: Copies of the environment; >= 1.
        total_steps: Length of the run in the learner's `unit`, >= 1: environment steps of all copies together, updates
            or batches. Only whole rollouts are played: training ends with the first one that reaches this number.
        seed: Seed of everything random; >= 0.
        device: "auto", "cpu", "cuda" or a GPU of several, such as "cuda:1".
        threads: CPU threads of PyTorch; 0 leaves PyTorch's own choice.
        learner: Settings of a registered learner, which choose the learner by their class, such as `PPOConfig`,
            `DQNConfig` or `SupervisedConfig`. In JSON and on the command line they have the learner's name, such as
            "ppo". With one that learns from batches and does not act, fields in `ACTING` must keep their defaults.
        policy: Settings of the policy (`MemoryPolicy`, or the learner's own), or of the model that predicts; JSON on
            the command line.
        encoder_from: Folder of a run, or checkpoint, whose encoder (features extractor and embedding of the previous
            action) this run starts with; "{seed}" in it stands for this run's seed. None starts with new weights. A
            frozen encoder must come from somewhere: needed with `policy.freeze_features`. Learners of papers may take
            other weights; what learns to predict takes nothing, unless its `Experiment` says what.
        eval_kwargs: Changes to `env_kwargs` for evaluation, such as a held-out split. JSON on the command line.
        eval_envs: Copies of the environment in evaluation and validation, which decide their trials and the actions
            drawn, whatever `n_envs` is; >= 1.
        eval_steps: Steps of an evaluation trial, >= 1; not with an itinerary, whose trials are played whole.
        eval_trials: Trials of an evaluation, or episodes where an answer is predicted; >= 1.
        eval_all_layouts: Evaluate in layouts 0, 1, 2, ... in turn instead of drawing them.
        score: Metric of the in-context curve.
        checkpoint_rollouts: Rollouts between two checkpoints; >= 1.
        milestones: Number of extra checkpoints to keep, evenly spread over the run; >= 0.
        validation_kwargs: Changes to `env_kwargs` for validation. JSON on the command line.
        validation_trials: Trials of a validation, each of `eval_steps` steps. Each checkpoint is validated, and the one
            with the best mean episode return is kept for evaluation. 0 turns validation off; >= 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range, or one of `ACTING` for a learner that does not act.
    """

    env: str = "memenvs/Darkroom-v0"
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    n_envs: int = 64
    total_steps: int = 1_000_000
    seed: int = 0
    device: str = "auto"
    threads: int = 0
    learner: Any = field(default_factory=PPOConfig)
    policy: dict[str, Any] = field(default_factory=dict)
    encoder_from: str | None = None
    eval_kwargs: dict[str, Any] = field(default_factory=dict)
    eval_envs: int = 64
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
        for name in ("n_envs", "total_steps", "eval_envs", "eval_steps", "eval_trials", "checkpoint_rollouts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("seed", "threads", "milestones", "validation_trials"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0' and so on, got {self.device!r}")
        if not self.kind.acts:
            defaults = RunConfig()
            changed = [name for name in ACTING if getattr(self, name) != getattr(defaults, name)]
            if changed:
                raise ValueError(
                    f"{changed[0]} must be left out of a run that learns to predict, got {getattr(self, changed[0])}"
                )

    @property
    def kind(self) -> LearnerSpec:
        """The registered kind of learner."""
        return find_learner(self.learner)

    def make_experiment(self) -> Experiment:
        """Make what trains, evaluates and reports the run; imports torch.

        Raises:
            ValueError: The learner predicts, and the environment has no prediction task.
        """
        return self.kind.make_experiment(self.env)

    def use_threads(self) -> None:
        """Give PyTorch in this process the run's number of CPU threads."""
        import torch  # here, since presets are listed without it

        if self.threads > 0:
            torch.set_num_threads(self.threads)

    def without_path(self) -> RunConfig:
        """Copy the settings, with only the last part of the path in `encoder_from`.

        Folders of runs move, and their paths are private. Of a checkpoint it is the name of the file.
        """
        return self if self.encoder_from is None else replace(self, encoder_from=Path(self.encoder_from).name)

    def to_json(self) -> dict[str, Any]:
        """Plain data, with one key per kind of learner.

        The value is None but for the run's own. A run that learns to predict has no `ACTING` fields.
        """
        data: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if name == "learner":
                data |= {learner.name: value if learner == self.kind else None for learner in learners()}
            elif self.kind.acts or name not in ACTING:
                data[name] = value
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> RunConfig:
        """Invert `to_json`.

        Raises:
            ValueError: A field is unknown, or there are not the settings of exactly one learner.
        """
        if not isinstance(data, dict):
            raise ValueError(f"settings of a run must be an object, got {data!r}")
        names = [learner.name for learner in learners()]
        names_of_fields = {field.name for field in fields(RunConfig)} - {"learner"}
        for key in data:
            if key not in names_of_fields.union(names):
                raise ValueError(f"unknown field {key!r} of a run; choose from {sorted(names_of_fields.union(names))}")
        kinds = [name for name in names if data.get(name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"a run must have the settings of one learner of {names}, got {kinds}")
        learner = find_learner_by_name(kinds[0]).config_type(**data[kinds[0]])
        if "n_envs" in data:  # runs without `eval_envs` were evaluated in as many copies as they learned in
            data = {"eval_envs": data["n_envs"], **data}
        return RunConfig(**{key: data[key] for key in data if key in names_of_fields}, learner=learner)


CONFIG = "config.json"
"""Name of the file of settings in the folder of a run."""
CHECKPOINT = "checkpoint.zip"
"""Name of the latest checkpoint there."""
TEST_SET_FILES = "test_set_"
"""Begins the names of files of evaluations on a test set."""
ITINERARY_FILES = "itinerary_"
"""Begins the names of files of evaluations with an itinerary that is not the run's own."""
ACTING = (
    "n_envs",
    "eval_envs",
    "eval_steps",
    "eval_all_layouts",
    "checkpoint_rollouts",
    "milestones",
    "validation_kwargs",
    "validation_trials",
)
"""Fields that only runs of learners that act have."""


def has_checkpoint(path: Path) -> bool:
    """True if the run in a folder has a checkpoint to resume or evaluate."""
    return (path / CHECKPOINT).is_file()


def check_new(path: Path, or_else: str = "") -> None:
    """Check that a new run can begin in a folder.

    Args:
        path: The folder.
        or_else: What can be done but choose another folder, for the message.

    Raises:
        FileExistsError: It holds a run.
        ValueError: It cannot be written.
    """
    check_writable(path, is_folder=True)
    if (path / CONFIG).exists():
        empty = "" if has_checkpoint(path) else " (it has no checkpoint yet: unless it is in use, delete it)"
        raise FileExistsError(f"{path} already holds a run; choose another folder{or_else}{empty}")


def read_config(path: Path) -> RunConfig:
    """Read the settings of the run in a folder.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: The file cannot be read.
    """
    file = path / CONFIG
    if path.is_file():
        raise FileNotFoundError(
            f"{path} is a file, not the folder of a run; memenvs.agents.evaluate(ID, model) scores a model in Python, "
            "loaded by the class that saved it"
        )
    if not file.is_file():
        raise FileNotFoundError(f"no run in {path}: {CONFIG} is missing")
    try:
        return RunConfig.from_json(parse_json(file.read_bytes(), CONFIG))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ValueError(f"{file}: not the settings of a run ({error})") from None


def difference(base: RunConfig, other: RunConfig) -> str | None:
    """Describe the first setting that two runs do not share; None if there is none.

    Of `encoder_from` only the name of the folder is compared, since folders of runs are moved.
    """
    return _difference(_comparable(base), _comparable(other))


def _comparable(config: RunConfig) -> dict[str, Any]:
    """Settings as they are in a file."""
    return json.loads(json.dumps(config.without_path().to_json()))


def _difference(base: dict[str, Any], other: dict[str, Any], prefix: str = "") -> str | None:
    for key in sorted({*base, *other}):
        left = base.get(key)
        right = other.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            inner = _difference(left, right, f"{prefix}{key}.")
            if inner is not None:
                return inner
        elif left != right:
            return f"{prefix}{key} is {left!r} there and not {right!r}"
    return None


def with_overrides(config: RunConfig, pairs: list[tuple[str, Any]]) -> RunConfig:
    """A copy of a config with some fields changed; another memory begins with its defaults.

    Args:
        config: The config to start from.
        pairs: (dotted name, value), such as ("ppo.n_epochs", 2) or ("env_kwargs.size", 6). Settings of the learner
            begin with its registered name.

    Raises:
        ValueError: A name does not exist, or a value is out of range.
        TypeError: A value has a wrong type.
    """
    own = config.kind.name
    learner_names = [learner.name for learner in learners()]
    changes: dict[str, Any] = {}
    learner_changes: dict[str, Any] = {}
    for name, value in [*_own_memory_settings(config, pairs), *pairs]:
        head, _, rest = name.replace("-", "_").partition(".")
        if head in learner_names and rest:
            if head != own:
                raise ValueError(f"{name!r} cannot be set: this run learns with {own}")
            first, *inner = rest.split(".")
            names = [f"{own}.{field.name}" for field in fields(config.learner)]
            _check_known(name, f"{own}.{first}", names)
            if inner:  # a part of a setting that has parts itself
                value = _with_entry(
                    _parts(name, learner_changes.get(first, getattr(config.learner, first))), inner, value
                )
            learner_changes[first] = value
        elif rest:
            table: Any = changes.get(head, getattr(config, head, None))
            if not isinstance(table, dict):
                parts = ("env_kwargs", "eval_kwargs", "policy", own, "validation_kwargs")
                _check_known(name, head, (), _with_part(config, head, rest) or f"only {', '.join(parts)} have parts")
            changes[head] = _with_entry(table, rest.split("."), value)
        else:
            names = [field.name for field in fields(config) if field.name != "learner"]
            _check_known(name, head, names, _with_part(config, head))
            changes[head] = value
    if learner_changes:
        changes["learner"] = replace(config.learner, **learner_changes)
    return replace(config, **changes)  # all at once, since the range of one setting may depend on another


def _own_memory_settings(config: RunConfig, pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Leave out the settings of a memory if another one is chosen, whose settings have other names."""
    changes = {name.replace("-", "_"): value for name, value in pairs}
    is_swapped = changes.get("policy.memory") not in (None, config.policy.get("memory"))
    if not is_swapped or not config.policy.get("memory_kwargs") or "policy.memory_kwargs" in changes:
        return []
    return [("policy.memory_kwargs", {})]


def _check_known(setting: str, name: str, names: Sequence[str], hint: str = "") -> None:
    """Raise a ValueError if a setting is none of these names, with a hint or the nearest of them."""
    if name not in names:
        raise ValueError(f"unknown setting {setting!r}; {hint or choices_for(name, sorted(names))}")


def _with_part(config: RunConfig, head: str, rest: str = "") -> str:
    """Suggest the whole name of a setting that was given without the part it belongs to; "" if there is none."""
    parts = {config.kind.name: {field.name for field in fields(config.learner)}, "policy": {*config.policy, "memory"}}
    parts |= {"env_kwargs": set(config.env_kwargs)}
    if rest and f"{head}_kwargs" in config.policy:
        head = f"{head}_kwargs"
    part = next((part for part, names in parts.items() if head in names), None)
    return "" if part is None else f"did you mean {'.'.join(filter(None, (part, head, rest)))!r}?"


def _parts(name: str, value: Any) -> dict[str, Any]:
    """Return the parts of a setting of a learner; a ValueError names the given setting if it has none."""
    if value is None or isinstance(value, dict):
        return value or {}
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise ValueError(f"unknown setting {name!r}; {name.rpartition('.')[0]} has no parts, it is {value!r}")


def _with_entry(table: dict[str, Any], keys: list[str], value: Any) -> dict[str, Any]:
    """A copy of a nested dict with one entry changed."""
    if len(keys) == 1:
        return {**table, keys[0]: value}
    inner = table.get(keys[0], {})
    if not isinstance(inner, dict):
        raise ValueError(f"{keys[0]!r} must be an object to have a part {keys[1]!r}, got {inner!r}")
    return {**table, keys[0]: _with_entry(inner, keys[1:], value)}
