"""Settings of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from agents.dqn_config import DQNConfig
from agents.ppo_config import PPOConfig
from memenvs.checks import check_fields, choices_for


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run.

    Attributes:
        env: Gymnasium id.
        env_kwargs: Settings of the training environment, JSON on the command line.
        n_envs: Copies of it; >= 1.
        total_steps: Environment steps of the whole run, all copies together; >= 1. Whole rollouts are played: training ends
            with the first that reaches them.
        seed: Of everything random; >= 0.
        device: "auto", "cpu" or "cuda".
        threads: CPU threads of PyTorch; 0 leaves its own choice.
        ppo: Settings of `PartialUpdatePPO`; the defaults if neither these nor the next are given.
        dqn: Settings of `EpisodeDQN`, which learns instead if they are given.
        policy: Settings of the policy (`MemoryPolicy`), JSON on the command line.
        encoder_from: Folder of a run, or checkpoint, whose encoder (features extractor and embedding of the previous action) is taken over
            at the start; None for none. What is frozen must come from somewhere: needed with `policy.freeze_features`.
        eval_kwargs: Changes to `env_kwargs` for evaluation: what was not trained on. JSON on the command line.
        eval_steps: Steps of an evaluation trial; >= 1.
        eval_trials: Trials of an evaluation; >= 1.
        eval_all_layouts: Whether evaluation goes through the layouts 0, 1, 2, ... in turn instead of drawing them.
        score: Metric that the in-context curve shows.
        checkpoint_rollouts: Rollouts between two checkpoints; >= 1.
        milestones: Checkpoints that are kept along the way, evenly spread over the run; >= 0.
        validation_kwargs: Changes to `env_kwargs` for validation. JSON on the command line.
        validation_trials: Trials of a validation, of `eval_steps` each, with every checkpoint; the one with the best mean return of an
            episode is kept, and evaluated. 0 for no validation; >= 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range, or settings of two learners.
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
        if self.dqn is None and self.ppo is None:
            object.__setattr__(self, "ppo", PPOConfig())
        if self.dqn is not None and self.ppo is not None:
            raise ValueError("ppo must be None where dqn is given: one of them learns, got both")

    @property
    def settings(self) -> PPOConfig | DQNConfig:
        """Settings of the learner."""
        settings = self.ppo or self.dqn
        assert settings is not None
        return settings

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

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
        ppo, dqn = data["ppo"], data.get("dqn")  # runs of early versions know no other learner than PPO
        return RunConfig(
            **{
                **data,
                "ppo": None if ppo is None else PPOConfig(**ppo),
                "dqn": None if dqn is None else DQNConfig(**dqn),
            }
        )


_WITH_PARTS = ("dqn", "env_kwargs", "eval_kwargs", "policy", "ppo", "validation_kwargs")


def with_overrides(config: RunConfig, pairs: list[tuple[str, Any]]) -> RunConfig:
    """A config with some fields changed.

    Args:
        config: Where to start from.
        pairs: (dotted name, value), such as ("ppo.n_epochs", 2) or ("env_kwargs.size", 6).

    Raises:
        ValueError: A name does not exist, or a value is out of range.
        TypeError: A value has a wrong type.
    """
    for name, value in pairs:
        head, _, rest = name.replace("-", "_").partition(".")
        if head in ("ppo", "dqn") and rest:
            settings: Any = getattr(config, head)
            if settings is None:
                raise ValueError(f"{name!r} cannot be set: this run learns with {'dqn' if head == 'ppo' else 'ppo'}")
            changed: dict[str, Any] = {head: replace(settings, **{_known(settings, rest): value})}
            config = replace(config, **changed)
        elif rest:
            table = getattr(config, head, None)
            if not isinstance(table, dict):
                raise ValueError(f"unknown setting {name!r}; only {', '.join(_WITH_PARTS)} have parts")
            part: dict[str, Any] = {head: _nested(table, rest.split("."), value)}
            config = replace(config, **part)
        else:
            config = replace(config, **{_known(config, head): value})
    return config


def _known(owner: Any, name: str) -> str:
    """The name, if the dataclass has such a field that can be set as a whole."""
    names = sorted(each.name for each in fields(owner))
    if name not in names or name in ("ppo", "dqn"):
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
