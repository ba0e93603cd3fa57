"""Roaming, Coverage and Search: exploration of homes (Scene Memory Transformer)."""
