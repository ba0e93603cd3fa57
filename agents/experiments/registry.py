"""Registry of learners: name -> config class and `Experiment` class of a kind of learner.

A `LearnerSpec` names its classes as "module:Class". They are imported when a run needs them, so that no run loads the
code of another paper. Papers register their own (`memenvs.agents.papers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memenvs.checks import choices_for
from memenvs.plugins import load_class

if TYPE_CHECKING:
    from memenvs.agents.algorithms.distributed import Processes
    from memenvs.agents.experiments.config import RunConfig
    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.report import Report


@dataclass(frozen=True, kw_only=True)
class LearnerSpec:
    """Entry of the registry: one kind of learner.

    Attributes:
        name: Key of its settings in `config.json` and on the command line, such as "ppo".
        config: "module:Class" of its config, a frozen dataclass; the module that defines it imports no torch.
        experiment: "module:Class" of its `Experiment`; None: that of the environment (`register_prediction`).
        unit: What `RunConfig.total_steps` counts.
        acts: True if it acts in environments; False if it learns to predict from batches.
        deterministic: True if its agent is evaluated by its most likely actions instead of sampled ones.
    """

    name: str
    config: str
    experiment: str | None
    unit: str = "environment steps"
    acts: bool = True
    deterministic: bool = False

    @property
    def config_type(self) -> type[Any]:
        """Config class."""
        return load_class(self.config)

    def make_experiment(self, env: str) -> Experiment:
        """Make the `Experiment` of runs of this kind in an environment; imports torch.

        Raises:
            ValueError: The environment has no prediction task, and this kind learns nothing else.
        """
        return load_class(self.experiment or _find_prediction(env))()


class Experiment(ABC):
    """Code that trains, evaluates and reports the runs of one kind of learner."""

    @abstractmethod
    def check(self, config: RunConfig, processes: Processes) -> None:
        """Validate a run before it begins, by building its environments and learner once.

        Args:
            config: Settings of the run.
            processes: Processes that are to train together.

        Raises:
            ValueError: A setting is not allowed, or cannot be split over the processes.
            TypeError: A setting does not exist.
        """

    def check_eval_kwargs(self, config: RunConfig) -> None:  # noqa: B027  (nothing to check by default)
        """Validate the settings of the environments of an evaluation.

        Args:
            config: Settings of the run, with the `eval_kwargs` of the evaluation.

        Raises:
            ValueError: A setting is not allowed.
            TypeError: A setting does not exist.
        """

    @abstractmethod
    def train(self, run: RunDirectory, *, quiet: bool = False) -> Any:
        """Train a run to its end, from its checkpoint if it has one.

        Args:
            run: The folder.
            quiet: Show no progress bar.

        Returns:
            The trained algorithm, whose `num_timesteps` counts the `unit` of its `LearnerSpec`.
        """

    @abstractmethod
    def evaluate(self, run: RunDirectory, name: str = "evaluation", *, seed: int = 1, **options: Any) -> dict[str, Any]:
        """Evaluate a run and write `NAME.json` into its folder.

        Args:
            run: The folder.
            name: Stem of the file; only one called "evaluation" is shown in the report.
            seed: Seed of the evaluation.
            **options: Options that depend on the kind of learner, such as `trials`, `eval_kwargs` and `quiet`.

        Returns:
            The content of the file.
        """

    @abstractmethod
    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        """Add learning curves and evaluations of runs to a report.

        Args:
            report: The page.
            runs: All runs of the report whose `Experiment` classes share this method; they may be drawn in one figure.
        """


_LEARNERS: dict[str, LearnerSpec] = {}
_PREDICTIONS: dict[str, str] = {}


def register_learner(learner: LearnerSpec) -> None:
    """Add a kind of learner, so that a `RunConfig` can have its config.

    Args:
        learner: The entry. Registering an equal one again has no effect.

    Raises:
        ValueError: There is another learner of this name.
    """
    if _LEARNERS.setdefault(learner.name, learner) != learner:
        raise ValueError(f"name of a learner must be new, got {learner.name!r}, which is {_LEARNERS[learner.name]}")


def register_prediction(env: str, experiment: str) -> None:
    """Say whose model learns to predict in an environment, with the learner `supervised`.

    Args:
        env: Id of the environment.
        experiment: "module:Class" of a `PredictionExperiment`. Registering the same one again has no effect.

    Raises:
        ValueError: The environment has another one.
    """
    if _PREDICTIONS.setdefault(env, experiment) != experiment:
        raise ValueError(f"env must be new, got {env!r}, whose model is that of {_PREDICTIONS[env]}")


def _find_prediction(env: str) -> str:
    """Return the class that is registered for an environment."""
    if env not in _PREDICTIONS:
        choices = choices_for(env, _PREDICTIONS)
        raise ValueError(f"env must be one that can be learned by prediction, got {env!r}; {choices}")
    return _PREDICTIONS[env]


def learners() -> tuple[LearnerSpec, ...]:
    """List all registered kinds, in the order of registration."""
    return tuple(_LEARNERS.values())


def find_learner(config: Any) -> LearnerSpec:
    """Find the kind of learner by its config.

    Args:
        config: An instance of a learner's `config_type`.

    Raises:
        TypeError: No learner has settings of this class.
    """
    path = f"{type(config).__module__}:{type(config).__qualname__}"
    for learner in _LEARNERS.values():
        if learner.config == path:
            return learner
    raise TypeError(f"learner must be the settings of one of {list(_LEARNERS)}, got {config!r}")


def find_learner_by_name(name: str) -> LearnerSpec:
    """Find the kind of learner with this name.

    Raises:
        ValueError: No such learner; the message lists the choices.
    """
    if name not in _LEARNERS:
        raise ValueError(f"unknown learner {name!r}; {choices_for(name, _LEARNERS)}")
    return _LEARNERS[name]


register_learner(
    LearnerSpec(
        name="ppo",
        config="memenvs.agents.algorithms.ppo_config:PPOConfig",
        experiment="memenvs.agents.experiments.ppo_experiment:PPOExperiment",
    )
)
register_learner(
    LearnerSpec(
        name="dqn",
        config="memenvs.agents.algorithms.dqn_config:DQNConfig",
        experiment="memenvs.agents.experiments.dqn_experiment:DQNExperiment",
    )
)
register_learner(
    LearnerSpec(
        name="supervised",
        config="memenvs.agents.algorithms.supervised_config:SupervisedConfig",
        experiment=None,
        unit="batches",
        acts=False,
    )
)
