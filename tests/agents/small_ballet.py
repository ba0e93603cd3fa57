"""A run of the preset `room-ballet` that takes seconds."""

import json

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.presets import find_preset

CHANGES = {
    "total_steps": 20,
    "eval_trials": 100,
    "policy.dim": 32,
    "policy.layers": 1,
    "policy.mlp_dim": 32,
    "supervised.batch_size": 8,
    "supervised.learning_rate": 2e-4,
    "supervised.final_learning_rate": None,
    "supervised.warmup_steps": 0,
    "supervised.validation_episodes": 50,
    "supervised.checkpoint_steps": 10,
}
SMALL_BALLET = with_overrides(find_preset("room-ballet"), list(CHANGES.items()))
#: The same on the command line.
ARGUMENTS = ["room-ballet", *(text for name, value in CHANGES.items() for text in (f"--{name}", json.dumps(value)))]
