"""Preset of question answering about a robot's days (episodic memory verbalization)."""

from __future__ import annotations

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES, Preset

#: All kinds of questions; as in the environment, which is not imported here.
KINDS = ("clock", "action", "problems", "past_time", "location", "object", "duration", "summary", "how_often")

VERBALIZATION_PRESETS = {
    "episodic-qa": Preset(
        "questions about up to five episodes of a robot, memory ct-lt with 21 vectors; tested with up to ten episodes",
        RunConfig(
            env="memenvs/EpisodicQA-v0",
            env_kwargs={"kinds": list(KINDS), "scale": "study"},
            total_steps=3000,
            threads=1,
            device="cpu",
            learner=QuestionConfig(learning_rate=4e-3, warmup_steps=100, checkpoint_steps=500, validation_episodes=50),
            policy={
                "memory": "ct-lt",
                # small enough that a history of five episodes, of about 10 key frames each, does not fit
                "memory_kwargs": {"dim": 64, "layers": 2, "heads": 4, "mlp_dim": 128, **COMPRESSIVE_QUEUES},
                "curriculum": [300, 600, 1050],
            },
            eval_kwargs={"split": "test", "lengths": [1, 2, 3, 5, 10], "questions": 60},
            eval_trials=200,
            score="accuracy",
        ),
    ),
}
