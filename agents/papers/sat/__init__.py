"""SAT, the Spatially-Aware Transformer.

Its models watch, then answer; an allocator chooses what they keep. Its memory is in `memenvs.agents.memory.sat`, the
eviction rules of a full memory are in `memenvs.retention`.
"""

from memenvs.agents.experiments.registry import register_prediction
from memenvs.registry import environments

FAMILIES = ("ballet3d", "faces", "recall", "room_ballet")
"""Folders of the environments that its models predict in."""

for row in environments():
    if row.family in FAMILIES:
        register_prediction(row.id, f"{__name__}.experiment:SATExperiment")
