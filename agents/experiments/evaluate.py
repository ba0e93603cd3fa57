"""Runs that are evaluated: a run's policy in the trials of its evaluation, beside random and oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.play import OraclePolicy, Policy, RandomPolicy
from memenvs.agents.experiments.progress import share_bar
from memenvs.agents.experiments.report import image_png
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env
from memenvs.checks import check_int
from memenvs.files import write_file

EVALUATION_SEED = 1_000_000
"""What keeps environments of evaluation apart from those of training."""
BASELINE_TRIALS = 40
"""Of random and oracle beside a run."""


def algorithm_of(config: RunConfig) -> type[MemoryAlgorithm]:
    """Class of the learner of a run that acts.

    Raises:
        ValueError: The run learns to predict.
    """
    if not config.kind.acts:
        raise ValueError(f"run must be of an agent that acts, got one that learns to predict in {config.env}")
    experiment: Any = config.kind.make_experiment()
    return experiment.algorithm


def trained_policy(run: RunDirectory, seed: int, name: str | None = None) -> ActingPolicy:
    """The policy of a run's checkpoint, whose actions are drawn from `seed` on.

    Args:
        run: The folder.
        seed: Of the actions.
        name: File of the checkpoint in the folder, `checkpoint_STEPS.zip` where the run has milestones; None: the best one of a run
            with validation, else the latest.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is not whole, or of other settings.
    """
    return policy_from_checkpoint(run.agent(name), run.config, seed)


def policy_from_checkpoint(file: Path, config: RunConfig, seed: int) -> ActingPolicy:
    """The policy of a checkpoint of a run with these settings, whose actions are drawn from `seed` on; PyTorch has the run's threads from then on.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not whole, or of other settings.
    """
    algorithm = algorithm_of(config)
    config.use_threads()
    checkpoint.check_run(file, algorithm, config.learner, config.policy, config.n_envs)
    policy = algorithm.load(file, device=config.device).policy
    policy.generator.manual_seed(seed)
    return policy


def evaluation_env(config: RunConfig, count: int, seed: int) -> VecEnv:
    """Copies of the environment that a run is evaluated in, seeded apart from those of its training."""
    return make_vec_env(config.env, count, seed=EVALUATION_SEED + seed, **{**config.env_kwargs, **config.eval_kwargs})


def make_evaluator(
    config: RunConfig, env: VecEnv, *, pictures: bool = False, demonstrations: int = 0
) -> TrialEvaluator:
    """What plays the evaluation trials of a run, in the environment of `evaluation_env`; see `TrialEvaluator`."""
    layouts = range(env.get_attr("task")[0].num_layouts) if config.eval_all_layouts else None
    return TrialEvaluator(
        env,
        config.eval_steps,
        config.eval_trials,
        layouts=layouts,
        deterministic=config.kind.deterministic,
        pictures=pictures,
        demonstrations=demonstrations,
    )


def evaluate_run(
    run: RunDirectory,
    policy: Policy | None = None,
    *,
    pictures: bool = False,
    seed: int = 1,
    demonstrations: int = 0,
    quiet: bool = False,
    **changes: Any,
) -> TrialResults:
    """Plays the evaluation trials of a run.

    Args:
        run: The folder.
        policy: What plays; None: the run's best checkpoint, or its latest (`trained_policy` gives that of a milestone).
        pictures: Whether to keep maps of an early and a late episode.
        seed: Of the evaluation environments and of the actions drawn.
        demonstrations: Episodes of the oracle at the start of each trial, see `TrialEvaluator`; `eval_steps` come after them.
        quiet: No progress bar.
        **changes: Fields of the config to change, such as `eval_steps` or `eval_kwargs`.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        TypeError: A field of `changes` does not exist.
        ValueError: Its checkpoint is not whole, of other settings, or of a policy that has learned with another frozen encoder; or the
            environment has no oracle to demonstrate, or shows other observations or words than were learned with.
    """
    config = replace(run.config, **changes)
    if policy is None:
        policy = trained_policy(run, seed)
    env = evaluation_env(config, min(config.n_envs, config.eval_trials), seed)
    try:
        if isinstance(policy, ActingPolicy):
            policy.check_env(env)
        evaluator = make_evaluator(config, env, pictures=pictures, demonstrations=demonstrations)
        with share_bar("playing the agent", quiet=quiet) as progress:
            return evaluator.run(policy, progress)
    finally:
        env.close()


def evaluate_and_compare(
    run: RunDirectory,
    seed: int = 1,
    name: str = "evaluation",
    *,
    policy: Policy | None = None,
    quiet: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Evaluates a run's policy, and random and oracle in the first of its trials; writes `NAME.json`, the maps, and where a text is read its words.

    These two do not learn, so 40 trials are enough, or one in each layout where all are played.

    Args:
        run: The folder.
        seed: Of the evaluation.
        name: Of the file; the report shows `evaluation.json`, and the maps are drawn for it only.
        policy: What plays; None: the run's checkpoint.
        quiet: No progress bars.
        **changes: As `evaluate_run`.

    Returns:
        Policy name -> `TrialResults.to_json`.
    """
    policy = trained_policy(run, seed) if policy is None else policy
    agent = evaluate_run(run, policy, pictures=name == "evaluation", seed=seed, quiet=quiet, **changes)
    results = {"agent": agent.to_json()}
    for other in ("random", "oracle"):
        results[other] = _baseline(run, other, seed, quiet, **changes).to_json()
    write_file(run.path / f"{name}.json", json.dumps(results).encode())
    for episode, image in agent.pictures.items():
        write_file(run.path / f"{episode.replace(' ', '_')}.png", image_png(image))
    if name == "evaluation":
        experiment: Any = run.config.kind.make_experiment()
        experiment.draw_evaluation(run, policy, seed, **changes)
    return results


def evaluate_demonstrated(
    run: RunDirectory,
    demonstrations: int,
    name: str,
    seed: int = 1,
    *,
    policy: Policy | None = None,
    quiet: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Evaluates a run's policy after demonstrations of the oracle; writes `NAME.json`.

    Args:
        run: The folder.
        demonstrations: Episodes of the oracle at the start of each trial, N; >= 1.
        name: Of the file; the report shows "demonstrations_N".
        seed: Of the evaluation.
        policy: What plays; None: the run's checkpoint.
        quiet: No progress bar.
        **changes: As `evaluate_run`.

    Returns:
        "agent" -> `TrialResults.to_json`.
    """
    check_int("demonstrations", demonstrations)
    agent = evaluate_run(run, policy, seed=seed, demonstrations=demonstrations, quiet=quiet, **changes)
    results = {"agent": agent.to_json()}
    write_file(run.path / f"{name}.json", json.dumps(results).encode())
    return results


def _baseline(run: RunDirectory, name: str, seed: int, quiet: bool, **changes: Any) -> TrialResults:
    """Random or oracle, see `evaluate_and_compare`."""
    config = replace(run.config, **changes)
    env = evaluation_env(config, min(config.n_envs, config.eval_trials), seed)
    assert isinstance(env, TrialVecEnv)
    policy = RandomPolicy(env.action_space, seed) if name == "random" else OraclePolicy(env)
    enough = max(BASELINE_TRIALS, env.env.task.num_layouts if config.eval_all_layouts else 0)
    evaluator = make_evaluator(replace(config, eval_trials=min(config.eval_trials, enough)), env)
    try:
        with share_bar(f"playing {name}", quiet=quiet) as progress:
            return evaluator.run(policy, progress)
    finally:
        env.close()
