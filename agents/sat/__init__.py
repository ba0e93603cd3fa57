"""SAT, the Spatially-Aware Transformer: Room Ballet model and adaptive allocation."""
