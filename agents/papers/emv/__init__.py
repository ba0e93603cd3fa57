"""Question answering about a robot's days: a memory of key frames, and a head."""

from memenvs.agents.experiments.registry import LearnerSpec, register_learner, register_prediction
from memenvs.registry import environments

EXPERIMENT = f"{__name__}.experiment:QuestionExperiment"
register_learner(
    LearnerSpec(  # `supervised` with the defaults of the study, which runs and rows of results name
        name="questions",
        config=f"{__name__}.config:QuestionConfig",
        experiment=EXPERIMENT,
        unit="batches",
        acts=False,
    )
)
for row in environments():
    if row.family == "verbalization":
        register_prediction(row.id, EXPERIMENT)
