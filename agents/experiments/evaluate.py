"""Evaluation of runs: a policy in the evaluation trials, beside random and oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.last_steps import LastSteps
from memenvs.agents.experiments.play import OraclePolicy, Policy, RandomPolicy, RulePolicy
from memenvs.agents.experiments.report import image_png
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults, free_settings, itinerary_of
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env
from memenvs.certificates.test_sets import TrialSet, find_test_set
from memenvs.files import write_file
from memenvs.identity import changed_settings
from memenvs.json_records import format_json
from memenvs.progress import progress_bar
from memenvs.registry import find_environment
from memenvs.resets import below_limit
from memenvs.rules import RuleError, make_rule
from memenvs.task import defines, metric_values

EVALUATION_SEED = 1_000_000
"""Offset that keeps environments of evaluation apart from those of training."""
BASELINE_TRIALS = 40
"""Trials that random and oracle play, which do not learn."""
BASELINE_RULES = ("memoryless", "window4")
"""Scripted rules that are played beside an agent; certificates have all of them."""


def algorithm_of(config: RunConfig) -> type[MemoryAlgorithm]:
    """Class of the learner of a run that acts.

    Raises:
        ValueError: The run learns to predict.
    """
    if not config.kind.acts:
        raise ValueError(
            f"run must be of an agent that acts, got one that learns to predict in {config.env}; memenvs evaluate "
            "scores it, and memenvs.agents.experiments.prediction_experiment.trained_model loads its model"
        )
    experiment: Any = config.make_experiment()
    return experiment.algorithm


def trained_policy(run: RunDirectory, seed: int, name: str | None = None) -> ActingPolicy:
    """Load the policy of a run's checkpoint.

    Args:
        run: The folder.
        seed: Seed of the actions drawn.
        name: File of the checkpoint in the folder, such as `checkpoint_STEPS.zip` of a milestone; None: the best one of
            a run with validation, else the latest.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is incomplete, or of other settings.
    """
    return policy_from_checkpoint(run.checkpoint_path(name), run.config, seed)


def policy_from_checkpoint(file: archive.File, config: RunConfig, seed: int) -> ActingPolicy:
    """Load the policy of a checkpoint, and give PyTorch the CPU threads of its run.

    Args:
        file: The checkpoint.
        config: Settings of the run that wrote it.
        seed: Seed of the actions drawn.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is incomplete, or of other settings.
    """
    algorithm = algorithm_of(config)
    config.use_threads()
    algorithm.check_checkpoint(file, config.learner, config.policy, config.n_envs)
    policy = algorithm.load(file, device=config.device).policy
    policy.generator.manual_seed(below_limit(seed))
    return policy


def evaluation_env(config: RunConfig, count: int, seed: int, test_set: str | None = None) -> VecEnv:
    """Make copies of a run's evaluation environment, with other seeds than in training.

    Args:
        config: Settings of the run.
        count: Number of copies.
        seed: Seed of the evaluation.
        test_set: Name of a test set, whose settings it has then, but for those of the run of what is observed.
    """
    settings = {**config.env_kwargs, **config.eval_kwargs}
    if test_set is not None:
        trials = find_test_set(config.env, test_set)
        free = free_settings(trials)
        settings = {**trials.settings, **{name: value for name, value in settings.items() if name in free}}
    return make_vec_env(config.env, count, seed=EVALUATION_SEED + seed, **settings)


def replaced_settings(config: RunConfig, trials: TrialSet) -> dict[str, tuple[Any, Any]]:
    """List the settings of a run that a test set of its task replaces.

    Returns:
        Name -> (value of the run, value of the test set).
    """
    env = evaluation_env(config, 1, 0)
    try:
        return changed_settings(env.env, trials.settings, trials.free_settings) if isinstance(env, TrialVecEnv) else {}
    finally:
        env.close()


def make_evaluator(
    config: RunConfig,
    env: VecEnv,
    *,
    maps: bool = False,
    demonstrations: int = 0,
    seed: int = 1,
    fresh_visits: bool = False,
    test_set: str | None = None,
    keep_actions: bool = False,
) -> TrialEvaluator:
    """Make the evaluator of a run; see `TrialEvaluator`.

    Args:
        config: Settings of the run.
        env: As `evaluation_env` makes it.
        maps: Keep maps of an early and a late episode, where the environment is batch-native.
        demonstrations: Episodes of the oracle at the start of each trial.
        seed: Seed of the evaluation.
        fresh_visits: As `TrialEvaluator`. With an itinerary trials are played whole, whatever `eval_steps` is.
        test_set: Name of a test set, to play in place of the run's evaluation trials.
        keep_actions: Keep all actions of a test set.

    Raises:
        ValueError: A setting is not possible in this environment, or it is not that of the test set.
    """
    played: dict[str, Any] = {"deterministic": config.kind.deterministic, "fresh_visits": fresh_visits}
    if test_set is not None:
        trials = find_test_set(config.env, test_set)
        return TrialEvaluator(env, maps=maps, test_set=trials, keep_actions=keep_actions, **played)
    layouts = None
    if config.eval_all_layouts:
        count = count_layouts(env)
        if count is None:
            raise ValueError(f"eval_all_layouts must be false for {config.env}, which has no layouts, got true")
        layouts = range(count)
    return TrialEvaluator(
        env,
        config.eval_steps if itinerary_of(env) is None else None,
        config.eval_trials,
        layouts=layouts,
        **played,
        maps=maps and isinstance(env, TrialVecEnv),
        demonstrations=demonstrations,
        seed=EVALUATION_SEED + seed,
    )


def count_layouts(env: VecEnv) -> int | None:
    """Number of layouts of an environment's task; None if it has none."""
    try:
        return env.env.task.num_layouts if isinstance(env, TrialVecEnv) else env.get_attr("task")[0].num_layouts
    except AttributeError:
        return None


def known_metrics(config: RunConfig, env: VecEnv, seed: int = 1) -> set[str]:
    """Find the names of the metrics of an evaluation by a reset or, if needed, an episode.

    Args:
        config: Settings of the run.
        env: As `evaluation_env` makes it.
        seed: Seed of the random episode.

    Returns:
        The names; none if no episode has ended within the `eval_steps`.
    """
    if isinstance(env, TrialVecEnv):
        _, infos = env.env.reset()
        first = {key: value[0] for key, value in infos.items() if not key.startswith("_")}
        return {"return", "length", *metric_values(first, env.env.task.option_names)}
    one = replace(config, eval_trials=1)
    return set(make_evaluator(one, env, seed=seed).run(RandomPolicy(env.action_space, seed)).metrics)


def evaluate_run(
    run: RunDirectory,
    policy: Policy | None = None,
    *,
    maps: bool = False,
    seed: int = 1,
    demonstrations: int = 0,
    last_steps: int | None = None,
    test_set: str | None = None,
    keep_actions: bool = False,
    quiet: bool = False,
    **changes: Any,
) -> TrialResults:
    """Play the evaluation trials of a run.

    Args:
        run: The folder.
        policy: Policy to evaluate; None: that of the run's best checkpoint, or of its latest without validation.
        maps: Keep maps of an early and a late episode.
        seed: Seed of the evaluation environments and of the actions drawn.
        demonstrations: Episodes of the oracle at the start of each trial, before the `eval_steps`; see
            `TrialEvaluator`.
        last_steps: Steps of the trial that the policy remembers at the start of an episode, >= 0; see `LastSteps`. None
            for all. Without demonstrations, test set and itinerary.
        test_set: Name of a test set of the id, to play in place of the evaluation trials; without demonstrations.
        keep_actions: Keep all actions of a test set.
        quiet: Show no progress bar.
        **changes: Fields of the config to change, such as `eval_steps` or `eval_kwargs`.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        TypeError: A field of `changes` does not exist.
        ValueError: Its checkpoint is incomplete, of other settings, or of a policy that has learned with another frozen
            encoder. The environment has no oracle to demonstrate. It has other observations or another vocabulary than
            in training. `last_steps` has something that does not go with it.
    """
    config = replace(run.config, **changes)
    player = trained_policy(run, seed) if policy is None else policy
    itinerary = {**config.env_kwargs, **config.eval_kwargs}.get("itinerary")
    others = {"demonstrations": demonstrations or None, "test_set": test_set, "itinerary": itinerary}
    for name, value in others.items() if last_steps is not None else ():
        if value is not None:  # its scores would be taken for those of the agent
            raise ValueError(f"{name} must be left out with last_steps={last_steps}, got {value!r}")

    def make_policy(env: VecEnv) -> Policy:
        if last_steps is None:
            return player
        if isinstance(env, TrialVecEnv) and env.env.trial_episodes == 1:
            raise ValueError(f"last_steps must be left out where a trial is one episode, got {last_steps}")
        assert isinstance(player, ActingPolicy)
        player.check_env(env)
        return LastSteps(player, last_steps)

    options: dict[str, Any] = {"maps": maps, "demonstrations": demonstrations, "test_set": test_set}
    options["keep_actions"] = keep_actions
    return _play(config, make_policy, "the agent", seed=seed, quiet=quiet, **options)


def _play(
    config: RunConfig,
    make_policy: Callable[[VecEnv], Policy],
    player: str,
    *,
    seed: int,
    quiet: bool,
    most_trials: int | None = None,
    test_set: str | None = None,
    **options: Any,
) -> TrialResults:
    """Play the evaluation trials of a run.

    Args:
        config: Settings of the run.
        make_policy: Makes the policy for the environment.
        player: Name of the policy, for the progress bar.
        seed: Seed of the evaluation.
        quiet: Show no progress bar.
        most_trials: Most trials that are played, but for one in each layout where all layouts are; None for all.
        test_set: As `make_evaluator`.
        **options: As `make_evaluator`.
    """
    env = evaluation_env(config, min(config.eval_envs, config.eval_trials), seed, test_set)
    try:
        policy = make_policy(env)
        if isinstance(policy, ActingPolicy):
            policy.check_env(env)
        if most_trials is not None:
            enough = max(most_trials, (count_layouts(env) or 0) if config.eval_all_layouts else 0)
            config = replace(config, eval_trials=min(config.eval_trials, enough))
        evaluator = make_evaluator(config, env, seed=seed, fresh_visits=True, test_set=test_set, **options)
        with progress_bar(f"playing {player}", quiet=quiet) as progress:
            return evaluator.run(policy, progress)
    finally:
        env.close()


def evaluate_and_compare(
    run: RunDirectory,
    seed: int = 1,
    name: str = "evaluation",
    *,
    policy: Policy | None = None,
    demonstrations: int = 0,
    last_steps: int | None = None,
    test_set: str | None = None,
    quiet: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Evaluate a run's policy, random, scripted rules and oracle; write `NAME.json`, figures.

    All but the agent play the first `BASELINE_TRIALS` of the policy's trials, or one in each layout where all layouts
    are played. The oracle is left out where the environment has none, a rule where the settings of the run leave out
    what it has to observe, and maps where it is not batch-native. After demonstrations, and with `last_steps`, the
    agent alone plays.

    Args:
        run: The folder.
        seed: Seed of the evaluation.
        name: Stem of the file. The report shows "evaluation", and only that one has figures.
        policy: Policy to evaluate; None: that of the run's checkpoint.
        demonstrations: As `evaluate_run`.
        last_steps: As `evaluate_run`.
        test_set: Name of a test set of the id, whose trials all of them play, in place of the evaluation trials.
        quiet: Show no progress bars.
        **changes: As `evaluate_run`.

    Returns:
        Policy name -> `TrialResults.to_json`; with `last_steps`, this number too.
    """
    played: dict[str, Any] = {"test_set": test_set, "seed": seed, "quiet": quiet}
    maps = name == "evaluation"
    own: dict[str, Any] = {"maps": maps, "demonstrations": demonstrations, "last_steps": last_steps}
    agent = evaluate_run(run, policy, **own, **played, **changes)
    results = {"agent": agent.to_json()}
    if last_steps is not None:
        results["agent"]["last_steps"] = last_steps
    config = replace(run.config, **changes)
    for baseline in () if demonstrations or last_steps is not None else baselines(config.env):
        make_policy = partial(untrained_policy, baseline, config.env, seed)
        try:
            results[baseline] = _play(config, make_policy, baseline, most_trials=BASELINE_TRIALS, **played).to_json()
        except (NotImplementedError, RuleError):  # a task of a user may have no oracle
            if baseline == "random":
                raise
    write_file(run.path / f"{name}.json", format_json(results).encode())
    for episode, image in agent.maps.items():
        write_file(run.path / f"{episode.replace(' ', '_')}.png", image_png(image))
    return results


def baselines(id: str) -> tuple[str, ...]:
    """List the policies that are played beside an agent: random, `BASELINE_RULES`, oracle."""
    return ("random", *(name for name in find_environment(id).policies if name in BASELINE_RULES), "oracle")


def untrained_policy(name: str, id: str, seed: int, env: VecEnv) -> Policy:
    """Make a policy that does not learn: "random", "oracle" or a scripted rule of the id.

    Args:
        name: Its name.
        id: Id of the environment.
        seed: Seed of the random actions.
        env: The environment that it plays.

    Raises:
        NotImplementedError: There is no oracle.
        RuleError: The settings of the environment leave out what the rule has to observe.
    """
    if name == "random":
        return RandomPolicy(env.action_space, seed)
    if not isinstance(env, TrialVecEnv) or (name == "oracle" and not defines(type(env.env.task), "oracle_actions")):
        raise NotImplementedError(f"{id} has no policy {name!r}")
    if name == "oracle":
        return OraclePolicy(env)
    return RulePolicy(make_rule(find_environment(id).policies[name], env.env.task))


def evaluate_rule(config: RunConfig, name: str, seed: int = 1, quiet: bool = False) -> TrialResults:
    """Play all evaluation trials of a run with a scripted rule.

    Args:
        config: Settings of the run.
        name: Name of the rule, of those that the registry has for the environment.
        seed: Seed of the evaluation.
        quiet: Show no progress bar.
    """
    return _play(config, partial(untrained_policy, name, config.env, seed), name, seed=seed, quiet=quiet)
