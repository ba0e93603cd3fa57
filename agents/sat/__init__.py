"""SAT, the Spatially-Aware Transformer: Room Ballet model and adaptive allocation.

Its memory is in `memenvs.agents.memory.sat`, the eviction rules of a full memory are in `memenvs.retention`.
"""
