"""From the observations of a step to one embedding."""

from agents.encoders.dictionary import DictEncoder

__all__ = ["DictEncoder"]
