"""Agents that follow instructions on graphs of viewpoints: MTVM."""
