"""Spatially-Aware Transformer: the Room Ballet model and its adaptive allocator."""
