"""Run directories: train, evaluate, report."""
