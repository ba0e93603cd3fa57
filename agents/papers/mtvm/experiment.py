"""Runs of agents that imitate a teacher on navigation graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.experiments.agent_experiment import AgentExperiment
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env
from memenvs.agents.experiments.play import Policy
from memenvs.agents.experiments.report import Report, figure_png
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from memenvs.agents.papers.mtvm.policy import MTVMPolicy
from memenvs.agents.papers.mtvm.word_attention import record_word_attention, word_attention_figure
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.files import numbered_files, write_file

EPISODES = 3
"""Episodes of the evaluation whose word attention is drawn, evenly spread over the split."""


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

    def draw_evaluation(self, run: RunDirectory, policy: Policy, seed: int, **changes: Any) -> None:
        """Draw word attention, `words_EPISODE.png`; see `AgentExperiment.draw_evaluation`."""
        if not isinstance(policy, MTVMPolicy) or not policy.network.config.language:
            return
        env = evaluation_env(replace(run.config, **changes), 1, seed)
        assert isinstance(env, TrialVecEnv)
        try:
            total = env.env.task.num_layouts
            for episode in sorted({total * k // EPISODES for k in range(EPISODES)}):
                figure = word_attention_figure(record_word_attention(policy, env, episode))
                write_file(run.path / f"words_{episode}.png", figure_png(figure))
        finally:
            env.close()

    def add_figures(self, report: Report, run: RunDirectory) -> None:
        """Add the pictures of `draw_evaluation`; see `AgentExperiment.add_figures`."""
        pictures = numbered_files(run.path, "words_*.png")
        if pictures:
            report.heading("Attention to words")
            report.text(
                "Above, the house with the annotated path (blue) and the agent's path (orange). Below, one row per "
                "decision: the attention of the chosen option to each word, in the last cross layer."
            )
        for episode, file in pictures.items():
            report.picture(file.stem, file.read_bytes(), f"episode {episode}", wide=True)
