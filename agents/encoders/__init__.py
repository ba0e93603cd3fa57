"""Encoders: they map the observations of a step to one embedding."""

from memenvs.agents.encoders.dict_encoder import DictEncoder
from memenvs.agents.encoders.episodic_qa_encoder import EpisodicQAEncoder
from memenvs.agents.encoders.frozen import ENCODERS, FrozenEncoder, make_encoder
from memenvs.agents.encoders.options_encoder import OptionsEncoder
from memenvs.agents.encoders.scene_encoder import SceneEncoder
from memenvs.agents.encoders.symbolic_encoder import SymbolicEncoder, load_symbolic_encoder
from memenvs.agents.encoders.text import HashedEncoder
from memenvs.agents.encoders.visual import VisualEncoder, load_encoder, save_encoder

__all__ = [
    "ENCODERS",
    "DictEncoder",
    "EpisodicQAEncoder",
    "FrozenEncoder",
    "HashedEncoder",
    "OptionsEncoder",
    "SceneEncoder",
    "SymbolicEncoder",
    "VisualEncoder",
    "load_encoder",
    "load_symbolic_encoder",
    "make_encoder",
    "save_encoder",
]
