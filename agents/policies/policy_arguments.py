"""Arguments of `MemoryPolicy`: names resolved to classes, and checks against the spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    NatureCNN,
)
from torch import nn

from memenvs.agents.encoders import DictEncoder, EpisodicQAEncoder, OptionsEncoder, SceneEncoder
from memenvs.agents.encoders.dict_encoder import NATURE_CNN_SIZE, SmallCNN
from memenvs.agents.memory import EXTRA_INPUTS, memory_spec, required_inputs
from memenvs.agents.vec_env import check_observation_space
from memenvs.checks import choices_for
from memenvs.task import PHASE

#: Features extractors that a checkpoint can name; `register_features_extractor` adds one.
FEATURES_EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    "DictEncoder": DictEncoder,
    "EpisodicQAEncoder": EpisodicQAEncoder,
    "OptionsEncoder": OptionsEncoder,
    "SceneEncoder": SceneEncoder,
    "CombinedExtractor": CombinedExtractor,
    "FlattenExtractor": FlattenExtractor,
    "NatureCNN": NatureCNN,
    "SmallCNN": SmallCNN,
}
ACTION_MASK = "candidate_mask"
"""Observation key of the action mask: one entry for each action, 0 where it is not available."""
INPUT_FORMATS = {
    "pose": "(3,) of x, y and heading",
    "place": "the number of a place",
    "move": "the number of a move",
}
"""Format of each observation key that a memory can read directly, for messages."""
INPUT_SOURCES = {
    "pose": "Roaming, Coverage and Search have it, PoseWrapper adds it",
    "place": "make_vec_env(..., place=True) adds it, on the command line --env_kwargs.place true",
    "move": "Room Ballet has it",
}
"""Where each of them comes from."""
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "silu": nn.SiLU,
}
"""Activations that a checkpoint can name."""


def has_phase(space: spaces.Space) -> bool:
    """Return True if observations of a space say where actions are ignored, by the key `phase`."""
    return isinstance(space, spaces.Dict) and isinstance(space.spaces.get(PHASE), spaces.Discrete)


def register_features_extractor(extractor: type[BaseFeaturesExtractor]) -> type[BaseFeaturesExtractor]:
    """Register a features extractor of one's own, which a checkpoint then names by its class.

    Args:
        extractor: The class, made as `extractor(observation_space, **features_extractor_kwargs)`. A process that loads
            a checkpoint registers it too.

    Returns:
        The class, so that this can be its decorator.

    Raises:
        ValueError: Another class of this name is registered; the message names both modules.
        TypeError: It is no `BaseFeaturesExtractor`.
    """
    if not (isinstance(extractor, type) and issubclass(extractor, BaseFeaturesExtractor)):
        raise TypeError(f"extractor must be a subclass of BaseFeaturesExtractor, got {extractor!r}")
    registered = FEATURES_EXTRACTORS.get(extractor.__name__, extractor)
    # Defined again, as by a cell of a notebook that is run twice, it is the same one.
    if (registered.__module__, registered.__qualname__) != (extractor.__module__, extractor.__qualname__):
        places = f"in {registered.__module__} and in {extractor.__module__}"
        raise ValueError(f"features extractor {extractor.__name__!r} is registered twice: {places}")
    FEATURES_EXTRACTORS[extractor.__name__] = extractor
    return extractor


def activation_name(activation: str | type[nn.Module]) -> str:
    """Return the name in `ACTIVATIONS` of an activation, given by its name or its class.

    Raises:
        ValueError: It is not there; the message lists the names.
    """
    names = {kind: name for name, kind in ACTIVATIONS.items()}
    name = activation if isinstance(activation, str) else names.get(activation)
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}; {choices_for(activation, ACTIVATIONS)}")
    return name


def find_features_extractor(
    extractor: type[BaseFeaturesExtractor] | str | None, space: spaces.Space
) -> type[BaseFeaturesExtractor]:
    """Find the class of a features extractor.

    Args:
        extractor: The class, its name in `FEATURES_EXTRACTORS`, or None for the default.
        space: Space of the observations, which decides the default.

    Raises:
        ValueError: The name is unknown, or the class is not registered; the message lists the names.
    """
    register = "memenvs.agents.register_features_extractor"
    if extractor is None:
        extractor = "DictEncoder" if isinstance(space, spaces.Dict) else "FlattenExtractor"
    if not isinstance(extractor, str):
        if extractor not in FEATURES_EXTRACTORS.values():
            name = getattr(extractor, "__name__", repr(extractor))
            raise ValueError(
                f"features_extractor_class {name} must be registered by {register}, so that a saved model can be loaded"
            )
        return extractor
    if extractor not in FEATURES_EXTRACTORS:
        raise ValueError(
            f"unknown features_extractor_class {extractor!r}; choose from {list(FEATURES_EXTRACTORS)}, or "
            f"register yours by {register}"
        )
    return FEATURES_EXTRACTORS[extractor]


def check_observations(space: spaces.Space, action_space: spaces.Space, freeze_features: bool) -> None:
    """Check that the policy can read the observations, and that it can use their action mask.

    Args:
        space: Space of the observations.
        action_space: Space of the actions.
        freeze_features: Whether the features extractor is frozen.

    Raises:
        ValueError: An observation is not numeric; the mask has no entry for each action, or actions are not `Discrete`;
            or features are frozen and there is a mask.
    """
    check_observation_space(space)
    if isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces:
        mask = space[ACTION_MASK]
        if not isinstance(action_space, spaces.Discrete) or mask.shape != (int(action_space.n),):
            raise ValueError(
                f"{ACTION_MASK!r} in observations must have a number for each of the Discrete actions, got {mask} and "
                f"{action_space}"
            )
        if freeze_features:  # the buffers then store embeddings and no observation, so no mask either
            raise ValueError(f"freeze_features must be False with {ACTION_MASK!r} in observations, got True")


def check_images(space: spaces.Space, extractor: type[BaseFeaturesExtractor]) -> None:
    """Refuse images that are too small for a features extractor of Stable-Baselines3.

    Args:
        space: Space of the observations; images have their channels first.
        extractor: Class of the features extractor.

    Raises:
        ValueError: An image is too small.
    """
    if not issubclass(extractor, (NatureCNN, CombinedExtractor)):
        return
    keys = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
    for key, image in keys.items():
        if is_image_space(image) and min(sides := (image.shape or ())[1:]) < NATURE_CNN_SIZE:
            raise ValueError(
                f"images for {extractor.__name__} must have at least {NATURE_CNN_SIZE} x {NATURE_CNN_SIZE} pixels, got "
                f"{key!r} of {sides[0]} x {sides[1]}; use "
                f"features_extractor_class={'DictEncoder' if isinstance(space, spaces.Dict) else 'SmallCNN'!r}"
            )


def with_default_places(memory: str, settings: Mapping[str, Any], space: spaces.Space) -> dict[str, Any]:
    """Add the setting `n_places` to those of a memory that has it.

    Args:
        memory: Name of the memory.
        settings: Its settings; an own `n_places` stays.
        space: Space of the observations, whose key `place` has the number of places.
    """
    place = space.spaces.get("place") if isinstance(space, spaces.Dict) else None
    if isinstance(place, spaces.Discrete) and memory_spec(memory).memory.uses_place:
        return {"n_places": int(place.n), **settings}
    return dict(settings)


def extractor_space(space: spaces.Space, memory: str, settings: Mapping[str, Any]) -> spaces.Space:
    """Return the observation space without the keys that the memory reads directly.

    Args:
        space: Space of the observations.
        memory: Name of the memory.
        settings: Its settings.

    Raises:
        ValueError: The space lacks a key that the memory needs, or has no other key.
    """
    required = required_inputs(memory, **settings)
    if not required:
        return space
    keys = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
    for key in required:
        space_of_key = keys.pop(key, None)
        has_shape = space_of_key is not None and space_of_key.shape == EXTRA_INPUTS[key][1]
        if not has_shape or (key != "pose" and not isinstance(space_of_key, spaces.Discrete)):
            raise ValueError(
                f"the memory {memory!r} needs the key {key!r}, {INPUT_FORMATS[key]}, in observations "
                f"({INPUT_SOURCES[key]}); got {space}"
            )
    if not keys:
        raise ValueError(
            f"observations must have a key besides {', '.join(map(repr, required))}, which goes to the memory "
            f"{memory!r}; got {space}"
        )
    return spaces.Dict(keys)
