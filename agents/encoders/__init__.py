"""From the observations of a step to one embedding."""

from agents.encoders.dictionary import DictEncoder
from agents.encoders.frozen import ENCODERS, FrozenEncoder, make_encoder
from agents.encoders.scene import SceneEncoder
from agents.encoders.visual import VisualEncoder, load_encoder, save_encoder

__all__ = [
    "ENCODERS",
    "DictEncoder",
    "FrozenEncoder",
    "SceneEncoder",
    "VisualEncoder",
    "load_encoder",
    "make_encoder",
    "save_encoder",
]
