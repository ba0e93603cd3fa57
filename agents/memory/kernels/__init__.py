"""Kernels for memory operations that are slow in plain PyTorch.

Each is tested against its plain form.
"""
