"""MTVM, the Multimodal Transformer with Variable-length Memory."""

from memenvs.agents.experiments.registry import LearnerSpec, register_learner

register_learner(
    LearnerSpec(
        name="imitation",
        config=f"{__name__}.config:ImitationConfig",
        experiment=f"{__name__}.experiment:ImitationExperiment",
        unit="updates",
        deterministic=True,
    )
)
