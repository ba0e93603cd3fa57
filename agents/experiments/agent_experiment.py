"""Training, evaluation and report of runs of a `MemoryAlgorithm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.off_policy import OffPolicyMemoryAlgorithm
from memenvs.agents.experiments.callback import RunCallback
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import (
    CHECKPOINT,
    RunDirectory,
    first_stage_checkpoint,
)
from memenvs.agents.experiments.evaluate import (
    evaluate_and_compare,
    known_metrics,
    make_evaluator,
    trained_policy,
)
from memenvs.agents.experiments.itinerary_report import add_itineraries
from memenvs.agents.experiments.progress import training_bar
from memenvs.agents.experiments.registry import Experiment
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import add_demonstrations, add_maps, add_runs
from memenvs.agents.experiments.test_sets import add_test_sets
from memenvs.agents.experiments.trial_evaluator import itinerary_of
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import episode_horizon, make_vec_env
from memenvs.checks import choices_for, is_int
from memenvs.registry import NAMESPACE, environments, full_id


class AgentExperiment(Experiment):
    """Trains, evaluates and reports a `MemoryAlgorithm`; each subclass is for one algorithm.

    A subclass sets `algorithm`, and may override the hooks for further checks and figures.

    Attributes:
        algorithm: Class of the learner.
        encoder_source: Description, for error messages, of the files that the setting `encoder_from` may name.
        learning_curves: Metric -> name of its figure and label of its axis, in the order of the report. Only logged
            metrics are drawn; if none is, the last one is drawn as an empty figure.
    """

    algorithm: ClassVar[type[MemoryAlgorithm]]
    encoder_source: ClassVar[str] = "run or checkpoint of a first stage"
    learning_curves: ClassVar[Mapping[str, tuple[str, str]]] = {
        "rollout/ep_rew_mean": ("learning", "return of an episode, mean of the last 100")
    }

    def check_settings(self, config: RunConfig, processes: Processes) -> None:
        """Check settings together with those of the learner, before any environment is made; a hook.

        Raises:
            ValueError: A setting is not allowed.
        """

    def make_for_check(self, config: RunConfig, env: VecEnv, processes: Processes) -> MemoryAlgorithm:
        """Make a learner only to check its settings; override it where that can take less memory."""
        return self._make(config, env, config.device, processes=processes)

    def check(self, config: RunConfig, processes: Processes) -> None:
        """Check settings by making the environments and a learner; see `Experiment.check`."""
        processes.split_evenly("n_envs", config.n_envs)
        self.check_settings(config, processes)
        env = _make_single_env(config, "env_kwargs")
        try:
            model = self.make_for_check(config, env, processes)
            _check_evaluation(config, "eval_kwargs", model.policy)
            if config.validation_trials > 0:
                _check_evaluation(config, "validation_kwargs", model.policy)
            self._load_initial_encoder(config, model)
        finally:
            env.close()

    def check_eval_kwargs(self, config: RunConfig) -> None:
        """Make one environment; see `Experiment.check_eval_kwargs`."""
        _make_single_env(config, "eval_kwargs").close()

    def train(self, run: RunDirectory, *, quiet: bool = False) -> MemoryAlgorithm:
        """Train a run to its end; see `Experiment.train`."""
        config = run.config
        processes = run.processes
        n_envs = processes.split_evenly("n_envs", config.n_envs)
        if run.has_checkpoint:  # refuse changed settings before anything is built
            file = run.path / CHECKPOINT
            self.algorithm.check_checkpoint(file, config.learner, config.policy, config.n_envs)
        config.use_threads()
        with processes.fail_together():
            env = make_vec_env(config.env, n_envs, **config.env_kwargs)
        model = self._load_or_make(run, env)
        run.check_space(model.policy)
        model.set_logger(run.open_log(model.num_timesteps))
        remaining = config.total_steps - model.num_timesteps
        unit = config.kind.unit.split()[-1]  # "steps" of "environment steps"
        progress = training_bar(model.policy, unit) if processes.is_first and not quiet else None
        try:
            if remaining > 0:
                if progress is not None:
                    progress.start()
                callback = RunCallback(run, progress)
                try:
                    model.learn(remaining, callback, reset_num_timesteps=model.num_timesteps == 0)
                    callback.write(model, is_last=True)
                except KeyboardInterrupt:
                    callback.write_copy()
                    raise
                finally:
                    callback.close()
            run.write_extension()
        finally:
            if progress is not None:
                progress.stop()
            model.logger.close()
            env.close()
        return model

    def evaluate(
        self,
        run: RunDirectory,
        name: str = "evaluation",
        *,
        seed: int = 1,
        checkpoint: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Play the evaluation trials of a run; see `Experiment.evaluate`.

        Args:
            run: The folder.
            name: Stem of the JSON file that is written into the folder.
            seed: Seed of the evaluation environments and of the sampled actions.
            checkpoint: Name of a checkpoint in the folder. None: the best one, or the latest if the run has no
                validation.
            **options: As `evaluate_and_compare`.

        Returns:
            The content of the file.
        """
        policy = None if checkpoint is None else trained_policy(run, seed, checkpoint)
        return evaluate_and_compare(run, seed, name, policy=policy, **options)

    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        """Add learning curves, in-context curves and maps; see `Experiment.add_to_report`."""
        add_runs(report, runs)
        add_itineraries(report, runs)
        add_test_sets(report, runs)
        add_demonstrations(report, runs)
        add_maps(report, runs)

    def _make(self, config: RunConfig, env: VecEnv, device: Any, **arguments: Any) -> MemoryAlgorithm:
        """Make a new learner with the settings of a run."""
        algorithm: Any = self.algorithm
        settings = {"policy_kwargs": config.policy, "device": device, **arguments}
        return algorithm(algorithm.default_policy, env, config.learner, **settings)

    def _load_or_make(self, run: RunDirectory, env: VecEnv) -> MemoryAlgorithm:
        """Load the learner of the run's checkpoint; if there is none, make one and load its encoder."""
        config = run.config
        device = run.processes.device or config.device
        if not run.has_checkpoint:
            model = self._make(config, env, device, seed=config.seed, processes=run.processes)
            self._load_initial_encoder(config, model)
            return model
        model = self.algorithm.load(run.path / CHECKPOINT, env, device, processes=run.processes)
        # A finished run has no replay any more and needs none; one that is extended collects a new one.
        # A run that was interrupted needs its replay: if the file is missing, loading it raises the error.
        if isinstance(model, OffPolicyMemoryAlgorithm) and model.num_timesteps < config.total_steps:
            replay = run.replay_path(model.num_timesteps)
            if replay.is_file() or model.num_timesteps < run.written_steps:
                model.load_replay_buffer(replay)
        return model

    def _load_initial_encoder(self, config: RunConfig, model: MemoryAlgorithm) -> None:
        """Load the pretrained encoder `encoder_from` into a new learner, if the settings name one.

        Raises:
            FileNotFoundError: There is no run or checkpoint of that name.
            ValueError: Its encoder has another shape or was not trained there, or a frozen encoder has no source.
        """
        if config.encoder_from is None:
            policy = model.policy
            # A frozen encoder with parameters would keep its random weights.
            if policy.freeze_features and any(True for _ in policy.features_extractor.parameters()):
                raise ValueError(
                    "encoder_from must be the run or checkpoint whose encoder is taken over where "
                    "policy.freeze_features is on: it is not trained here; got None"
                )
            return
        model.load_features(first_stage_checkpoint(config, self.encoder_source))


def check_segments(config: RunConfig, steps: int, name: str) -> None:
    """Raise a ValueError if the memory is emptied before one of its segments is full.

    Args:
        config: Settings of the run.
        steps: Steps after which the memory is emptied.
        name: Setting that says so.
    """
    settings = config.policy.get("memory_kwargs") or {}
    for segment in ("chunk", "segment_length", "block_length"):
        length: Any = settings.get(segment)
        if is_int(length) and length > steps:
            raise ValueError(
                f"policy.memory_kwargs.{segment} must be at most {name}, {steps}, after which the memory is emptied, "
                f"got {length}"
            )


def _make_single_env(config: RunConfig, field: str) -> VecEnv:
    """Make one environment; `field` of the config overrides `env_kwargs`, and errors name it."""
    settings = {**config.env_kwargs, **getattr(config, field)}
    try:
        return make_vec_env(config.env, 1, **settings)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        hint = ""
        is_ours = full_id(config.env).startswith(f"{NAMESPACE}/")
        if "unexpected keyword" in str(error) and not is_ours:  # settings are often those of the preset's own id
            hint = "; --env_kwargs '{}' and --eval_kwargs '{}' leave out those of the preset"
        raise kind(f"{config.env} with these {field}: {error}{hint}") from error


def _check_evaluation(config: RunConfig, field: str, policy: ActingPolicy) -> None:
    """Raise a ValueError if the settings do not allow an evaluation, or a validation, to be played and scored."""
    env = _make_single_env(config, field)
    try:
        steps = episode_horizon(env)
        if steps is not None and itinerary_of(env) is None and config.eval_steps < steps:
            raise ValueError(
                f"eval_steps must be at least the {steps} steps that an episode may take, got {config.eval_steps}"
            )
        try:
            policy.check_env(env)
        except ValueError as error:
            raise ValueError(f"{config.env} with these {field}: {error}") from error
        make_evaluator(config, env)
        if config.score in ("return", *(row.score_key for row in environments() if row.id == full_id(config.env))):
            return
        metrics = known_metrics(config, env)
        if metrics and config.score not in metrics:
            raise ValueError(
                f"score must be a metric of {config.env}, got {config.score!r}; "
                f"{choices_for(config.score, sorted(metrics))}"
            )
    finally:
        env.close()
