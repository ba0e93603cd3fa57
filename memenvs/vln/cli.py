"""VLN on the command line: `score`, the policy `r2r-random`, `rollout --exact`.

Every command that names policies imports this module. Each function therefore imports what it needs when it is called.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from memenvs.cli.extensions import Extension, MetricTable, Scorer, ScriptedPolicy
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy
from memenvs.progress import Progress

if TYPE_CHECKING:
    from memenvs.vln.env import GraphNavigation


def run_score(arguments: argparse.Namespace) -> dict[str, float]:
    """Score a file of trajectories and print the means."""
    from memenvs.checks import choices_for
    from memenvs.cli.common import UserError, as_user_error
    from memenvs.vln.results import ALIASES, LENGTHS, SPLITS, load_world, score_paths

    task = ALIASES.get(arguments.task, arguments.task)
    splits = SPLITS[task]
    if arguments.split not in splits:
        raise UserError(f"argument --split: unknown split {arguments.split!r}; {choices_for(arguments.split, splits)}")
    data = arguments.data or "$MEMENVS_DATA/vln"
    with as_user_error(f"--split {arguments.split}, --data {data}", ValueError, OSError):
        world = load_world(task, arguments.split, arguments.data)
    with as_user_error("FILE", ValueError, OSError):
        metrics = score_paths(task, arguments.file, world)
    if not arguments.json:
        print(f"{task} {arguments.split}")
        for name, value in metrics.items():
            print(f"{name:4}  {value:.4f}{' m' * (name in LENGTHS)}")
    return metrics


def make_random_agent(env: TrialEnv, rng: np.random.Generator) -> EnvPolicy:
    """Make the random agent of the R2R baseline."""
    from memenvs.vln.random_agent import RandomAgent

    return RandomAgent(_graph_task(env), rng)


def evaluate_exactly(env: TrialEnv, policy: str, progress: Progress) -> tuple[MetricTable, int]:
    """Evaluate a policy over a whole split, each episode once.

    Args:
        env: The environment.
        policy: "oracle", or "r2r-random": in expectation over its first headings.
        progress: Called after each step of the oracle.

    Returns:
        Mean and standard error of each metric, and the number of episodes.
    """
    from memenvs.cli.policies import OracleEnvPolicy
    from memenvs.cli.rollout import play_episodes
    from memenvs.vln.random_agent import exact_expectation

    task = _graph_task(env)
    if policy == "r2r-random":
        return exact_expectation(task), task.num_layouts
    # Nothing is random in these environments with this policy, so one pass is exact.
    options = [{"episode_number": number} for number in range(task.num_layouts)]
    values = play_episodes(env, OracleEnvPolicy(env), 0, options, progress)
    return {
        name: {"mean": float(np.mean(of_episodes)), "stderr": 0.0} for name, of_episodes in values.items()
    }, task.num_layouts


def _graph_task(env: TrialEnv) -> GraphNavigation:
    from memenvs.vln.env import GraphNavigation

    assert isinstance(env.task, GraphNavigation), "the command line checks the family of the environment"
    return env.task


EXTENSION = Extension(
    family="vln",
    scorers={
        "r2r": Scorer(
            help="JSON list of {instr_id, trajectory: [[viewpoint, heading, elevation], ...]}",
            run=run_score,
            needs_split=True,
        ),
        "ndh": Scorer(help="the same with inst_idx in place of instr_id", run=run_score, needs_split=True),
        "cvdn": Scorer(help="the same as ndh", run=run_score, needs_split=True),
    },
    policies={
        "r2r-random": ScriptedPolicy(
            help="for VLN only, takes a random heading and moves straight on", make=make_random_agent
        )
    },
    exact_policies=("r2r-random", "oracle"),
    evaluate_exactly=evaluate_exactly,
)
