"""MTVM, the Multimodal Transformer with Variable-length Memory."""
