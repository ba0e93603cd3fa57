"""Scores of MTVM in paths that repeat actions, where only memory decides what follows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env
from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from memenvs.vln.worlds.procedural.world import Routes, load_routes

LEGS = 3
"""Legs of the routes, whose last leg repeats actions of those before it."""
FEW = 3
"""Largest number of repeated actions that counts as "few"; more are "many"."""
KINDS = ("few", "many")
METRICS = ("turn", "sr", "sdtw", "ndtw")


def score_by_repeats(run: RunDirectory, results: TrialResults) -> dict[str, dict[str, float]]:
    """Mean scores in routes with few and with many repeated actions.

    Args:
        run: Run of routes of three legs.
        results: Its evaluation, one trial an episode.

    Returns:
        Kind -> metric -> mean. "turn" is the share of episodes in which the decision after the repeated actions is the
        teacher's, when the agent is led there by the teacher, so that no other mistake counts.
    """
    world = load_routes(run.config.eval_kwargs["split"], LEGS)
    episodes = results.layouts.tolist()
    is_few = np.array([world.repeated_moves(episode)[0] <= FEW for episode in episodes])
    scores = {metric: results.metrics[metric][:, 0] for metric in METRICS if metric != "turn"}
    scores["turn"] = agrees_after_repeats(run, world, episodes)
    chosen = dict(zip(KINDS, (is_few, ~is_few), strict=True))
    return {kind: {metric: float(scores[metric][rows].mean()) for metric in METRICS} for kind, rows in chosen.items()}


def agrees_after_repeats(run: RunDirectory, world: Routes, episodes: Sequence[int]) -> np.ndarray:
    """Compare the decision after the repeated actions with that of the teacher, who leads to it.

    Args:
        run: Run of routes.
        world: Routes of its evaluation.
        episodes: Numbers of E episodes.

    Returns:
        bool, (E,); True where the most likely action is the teacher's.
    """
    count = world.num_episodes // len(world.houses)  # episodes of a house; one environment plays each of them
    env = evaluation_env(run.config, count, seed=1)
    model = ImitationA2C.load(run.checkpoint_path(), env, run.config.device)
    model.policy.set_training_mode(False)
    right = np.zeros(world.num_episodes, bool)
    for house in sorted({episode // count for episode in episodes}):
        of_house = range(house * count, (house + 1) * count)
        with torch.no_grad():
            steps = model.play(env, 0, teacher_forcing=True, episodes=of_house).steps
        # decision -> row of the batch -> 1.0 where the agent agrees with the teacher
        agreement = [dict(zip(step.rows.tolist(), step.teacher_agreement.tolist(), strict=True)) for step in steps]
        decisions = [world.repeated_moves(episode)[1] for episode in of_house]
        right[of_house] = [agreement[decision][row] > 0 for row, decision in enumerate(decisions)]
    env.close()
    return right[list(episodes)]
