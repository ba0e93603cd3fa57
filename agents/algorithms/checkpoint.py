"""Checkpoints: one file for a whole learner. Reading one executes nothing.

The file is an archive (`archive.py`) with these members:

| member | content |
|---|---|
| `config.json` | algorithm, its config, settings of the policy, spaces, number of environments and of processes |
| `state.json` | counters, NumPy generators, recent episodes and the next trials of a process |
| `policy.safetensors` | weights of the policy |
| `optimizer.safetensors` | state of Adam |
| `generators.safetensors` | states of a process's torch generators |
| `learner.safetensors` | tensors that only some learners have, such as a target network |

The first of several processes writes the file. What belongs to process R alone is in `state.R.json` and
`generators.R.safetensors`, without a number for R = 0.

A policy-only file has the first three members: its policy can act, but training cannot resume from it. Files of
learners that predict (`supervised.py`) have `model.safetensors` in place of the third.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from memenvs.agents.algorithms import archive
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.checks import is_int

MEMBERS = ("config.json", "state.json", "policy.safetensors", "optimizer.safetensors", "generators.safetensors")
POLICY_ONLY = MEMBERS[:3]
"""Members of a policy-only file, see `drop_training_state`."""
CONFIG_KEYS = ("algorithm", "config", "policy_kwargs", "observation_space", "action_space", "n_envs")
STATE_KEYS = (
    "num_timesteps",
    "n_updates",
    "seed",
    "resets_with_episode",
    "recent_episodes",
    "recent_successes",
    "trials",
)
LEARNER, MODEL = "learner.safetensors", "model.safetensors"


@dataclass
class Checkpoint:
    """Content of a checkpoint.

    Attributes:
        config: Settings, as JSON: `CONFIG_KEYS`, "processes", "encoder", "vocabulary" and, if True, "policy_only".
        states: State of each process, as JSON: `STATE_KEYS` and what its kind of learner adds.
        generators: States of the torch generators of each process, by name.
        policy: Weights of the policy.
        optimizer: State of the optimizer, as `archive.optimizer_tensors` names it.
        learner: Tensors that only some learners have.
    """

    config: dict[str, Any]
    states: list[dict[str, Any]]
    generators: list[dict[str, Tensor]]
    policy: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    learner: dict[str, Tensor]

    def write(self, path: archive.File) -> None:
        """Write the file, in place of one that is there."""
        content = {
            "config.json": json.dumps({"format": archive.FORMAT, **self.config}, indent=1).encode(),
            "state.json": json.dumps(self.states[0]).encode(),
            "policy.safetensors": save_tensors(self.policy),
            "optimizer.safetensors": save_tensors(self.optimizer),
            "generators.safetensors": save_tensors(self.generators[0]),
        }
        if self.learner:
            content[LEARNER] = save_tensors(self.learner)
        for rank in range(1, len(self.states)):
            content[_state_member(rank)] = json.dumps(self.states[rank]).encode()
            content[_generators_member(rank)] = save_tensors(self.generators[rank])
        archive.write(path, content)

    @classmethod
    def read(cls, path: archive.File) -> Checkpoint:
        """Read a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is cut short or not a checkpoint.
        """
        members = _read_members(path)
        config = archive.parse_json(path, members, "config.json", CONFIG_KEYS)
        config.setdefault("processes", 1)  # files of early versions have no number
        ranks = range(1 if config.get("policy_only") else config["processes"])

        def tensors(name: str) -> dict[str, Tensor]:
            return load_tensors(members[name]) if name in members else {}

        states = [archive.parse_json(path, members, _state_member(rank), STATE_KEYS) for rank in ranks]
        try:
            return cls(
                config=config,
                states=states,
                generators=[tensors(_generators_member(rank)) for rank in ranks],
                policy=tensors("policy.safetensors"),
                optimizer=tensors("optimizer.safetensors"),
                learner=tensors(LEARNER),
            )
        except (SafetensorError, RuntimeError, LookupError) as error:  # an unknown dtype is a KeyError
            raise ValueError(f"{path}: its tensors cannot be read ({error}); was it cut short?") from None


def drop_training_state(source: archive.File, target: archive.File) -> None:
    """Copy a file of any learner as a policy-only file: no optimizer, no generators, compressed.

    Args:
        source: File of a learner that acts or predicts.
        target: The smaller file; replaced if it is there.

    Raises:
        FileNotFoundError: There is no file at `source`.
        ValueError: `source` is cut short or not a checkpoint.
    """
    members = archive.read(source, POLICY_ONLY[:2], {*POLICY_ONLY, MODEL}.__contains__)
    if MODEL not in members:
        archive.require(source, members, POLICY_ONLY)
    config = {**archive.parse_json(source, members, "config.json"), "policy_only": True}
    smaller = {**members, "config.json": json.dumps(config, indent=1).encode()}
    archive.write(target, smaller, zipfile.ZIP_DEFLATED)


def _state_member(rank: int) -> str:
    """Name of the member with the state of a process."""
    return "state.json" if rank == 0 else f"state.{rank}.json"


def _generators_member(rank: int) -> str:
    """Name of the member with the torch generators of a process."""
    return "generators.safetensors" if rank == 0 else f"generators.{rank}.safetensors"


def _is_member(name: str) -> bool:
    """True for the name of a member of a checkpoint."""
    return (
        name in (*MEMBERS, LEARNER)
        or re.fullmatch(r"state\.[1-9]\d*\.json|generators\.[1-9]\d*\.safetensors", name) is not None
    )


def _read_members(path: archive.File) -> dict[str, bytes]:
    """Read all members of a file, those of all its processes among them."""
    members = archive.read(path, POLICY_ONLY, _is_member)
    config = archive.parse_json(path, members, "config.json")
    if config.get("policy_only"):
        return members
    archive.require(path, members, MEMBERS)
    count = config.get("processes", 1)  # files of early versions have no number
    if not is_int(count):
        raise ValueError(f"{path}: processes must be a whole number, got {count!r}")
    for rank in range(count):
        for name in (_state_member(rank), _generators_member(rank)):
            if name not in members:
                raise ValueError(f"{path}: a checkpoint of {count} processes must have {name!r}, which is missing")
    return members


def load_features(policy: MemoryPolicy, path: archive.File) -> None:
    """Load the encoder of a checkpoint into a policy; nothing else changes.

    The encoder is the features extractor and the embedding of the previous action.

    Args:
        policy: A policy of any learner and memory, with the same features extractor.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short or not a checkpoint, its encoder is of other layers, sizes or kinds, or it was
            not learned there but loaded from another file.
    """
    saved = Checkpoint.read(path)
    saved_kwargs = saved.config["policy_kwargs"]
    if saved_kwargs.get("freeze_features"):
        raise ValueError(
            f"{path}: must be of a learner that has learned its encoder, a first stage or one without freeze_features; "
            "this one has loaded it from another file: give that file"
        )
    expected = policy.json_kwargs()["features_extractor_class"]
    prefixes = ["features_extractor."] + ["previous_action."] * (policy.previous_action_dim > 0)

    def of_encoder(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: value for name, value in weights.items() if name.startswith(tuple(prefixes))}

    try:
        if saved_kwargs.get("features_extractor_class") != expected:
            raise ValueError(
                f"features_extractor_class must be {expected!r}, got {saved_kwargs.get('features_extractor_class')!r}"
            )
        if saved.config.get("encoder") != policy.encoder_fingerprint:
            raise ValueError(f"frozen encoder must be {policy.encoder_fingerprint}, got {saved.config.get('encoder')}")
        weights = of_encoder(saved.policy)
        archive.check_tensors("policy.safetensors", weights, of_encoder(policy.state_dict()))
    except ValueError as error:
        raise ValueError(f"{path}: weights of another encoder: {error}") from None
    policy.load_state_dict(weights, strict=False)


def load_policy(policy: ActingPolicy, path: archive.File) -> None:
    """Load all weights of a checkpoint into a policy; nothing else changes.

    Args:
        policy: A policy with weights of the same names and shapes, and the same vocabulary.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short or not a checkpoint, or its weights or vocabulary differ.
    """
    saved = Checkpoint.read(path)
    vocabulary = saved.config.get("vocabulary")
    if vocabulary not in (None, policy.vocabulary_fingerprint):
        raise ValueError(f"{path}: vocabulary must be {policy.vocabulary_fingerprint}, got {vocabulary}")
    try:
        archive.check_tensors("policy.safetensors", saved.policy, policy.state_dict())
    except ValueError as error:
        raise ValueError(f"{path}: weights of another policy: {error}") from None
    policy.load_state_dict(saved.policy)


def check_settings(
    path: archive.File,
    algorithm: str,
    config: Any,
    policy_kwargs: Callable[[dict[str, Any]], dict[str, Any]],
    n_envs: int,
) -> None:
    """Raise a ValueError that names the first setting in which a checkpoint differs.

    Args:
        path: The file.
        algorithm: Name of the learner's class.
        config: Config of the learner.
        policy_kwargs: Function from the settings of the file's policy to those to compare them with; those left out or
            None are not compared.
        n_envs: Number of environments of all processes together.
    """
    saved = archive.parse_json(path, _read_members(path), "config.json", CONFIG_KEYS)
    if saved["algorithm"] != algorithm:
        raise ValueError(f"{path}: is of another run: algorithm must be {algorithm!r}, got {saved['algorithm']!r}")
    if saved["n_envs"] != n_envs:
        raise ValueError(f"{path}: is of another run: n_envs must be {n_envs}, got {saved['n_envs']}")
    # parsed and written again, so that settings newer than the file have their defaults
    saved["config"] = json.loads(json.dumps(asdict(archive.parse_config(path, saved["config"], type(config)))))
    settings = json.loads(
        json.dumps({"config": asdict(config), "policy_kwargs": policy_kwargs(saved["policy_kwargs"])})
    )
    for part in ("config", "policy_kwargs"):
        for key, value in settings[part].items():
            got = saved[part].get(key)
            if value is None or got == value:
                continue
            if isinstance(value, dict) and isinstance(got, dict):  # name the entry that differs
                pairs = ((name, value.get(name, "left out"), got.get(name, "left out")) for name in value | got)
                name, value, got = next(pair for pair in pairs if pair[1] != pair[2])
                key = f"{key}.{name}"
            raise ValueError(f"{path}: is of another run: {key} must be {value}, got {got}")
