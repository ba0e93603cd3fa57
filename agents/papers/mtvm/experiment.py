"""Runs of agents that imitate a teacher on navigation graphs."""

from __future__ import annotations

from memenvs.agents.experiments.agent_experiment import AgentExperiment
from memenvs.agents.papers.mtvm.learner import ImitationA2C


class ImitationExperiment(AgentExperiment):
    """Runs of `ImitationA2C`.

    `encoder_from` gives them all weights, or PREVALENT's if it is a file of these.
    """

    algorithm = ImitationA2C
    encoder_source = f"{AgentExperiment.encoder_source}, or file of PREVALENT's weights"
    learning_curves = {  # noqa: RUF012  (a class variable of the base)
        "train/imitation_agreement": ("agreement", "decisions equal to the teacher's (share)"),
        **AgentExperiment.learning_curves,
    }
