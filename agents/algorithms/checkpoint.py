"""One file for a whole learner: weights, optimiser, generators, settings. Nothing in it is ever executed.

The file is an archive (`agents/algorithms/archive.py`).
Of several processes the first writes it; what the others have of their own (generators, environments) is in members with their numbers.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from memenvs.agents.algorithms.archive import (
    FORMAT,
    check_tensors,
    cpu_copies,
    load_optimizer,
    optimizer_tensors,
    parse_config,
    read,
    read_json_member,
    write,
)
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.spaces import space_from_json, space_to_json
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.vec_env import check_encoder, check_vocabulary

if TYPE_CHECKING:
    from stable_baselines3.common.type_aliases import GymEnv

    from memenvs.agents.algorithms.base import MemoryAlgorithm
    from memenvs.agents.policies.memory_policy import MemoryPolicy

MEMBERS = ("config.json", "state.json", "policy.safetensors", "optimizer.safetensors", "generators.safetensors")
POLICY_ONLY = MEMBERS[:3]  # enough to act; what `drop_training_state` leaves
LEARNER = "learner.safetensors"  # what a kind of learner has besides a policy
OWN = ("state.json", "generators.safetensors")  # what differs between processes; those of the first are called so
CONFIG_KEYS = ("algorithm", "config", "policy_kwargs", "observation_space", "action_space", "n_envs")
STATE_KEYS = (
    "num_timesteps", "n_updates", "seed", "resets_with_episode", "recent_episodes", "recent_successes", "trials"
)  # fmt: skip
Model = TypeVar("Model", bound="MemoryAlgorithm")


def save(model: MemoryAlgorithm, path: str | PathLike[str]) -> None:
    """Writes a learner to `path`; every one of its processes must call this.

    Args:
        model: The learner. It resumes exactly if it is between two rollouts (`at_rollout_boundary`).
        path: The file; replaced if it is there.

    Raises:
        ValueError: A weight is NaN or infinite; what the file held stays.
        OSError: The file cannot be written. In other processes than the first a RuntimeError.
    """
    for name, parameter in model.policy.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(
                f"{path}: not written, weights must be finite, got NaN or infinity in {name!r} after {model.num_timesteps} "
                f"environment steps and {model._n_updates} updates"
            )
    config = {
        "format": FORMAT,
        "algorithm": type(model).__name__,
        "config": asdict(model.config),
        "policy_kwargs": model.policy.json_kwargs(),
        "observation_space": space_to_json(model.observation_space),
        "action_space": space_to_json(model.action_space),
        "n_envs": model.processes.count * model.n_envs,
        "processes": model.processes.count,
        "encoder": model.policy.encoder_fingerprint,
        "vocabulary": model.policy.vocabulary_fingerprint,
    }
    state = {
        "num_timesteps": model.num_timesteps,
        "n_updates": model._n_updates,
        "seed": None if model.seed is None else int(model.seed),
        "resets_with_episode": model.policy.resets_with_episode,
        **{f"{name}_rng": rng.bit_generator.state for name, rng in model.rngs.items()},
        "recent_episodes": [{"r": float(each["r"]), "l": int(each["l"])} for each in model.ep_info_buffer or []],
        "recent_successes": [bool(value) for value in model.ep_success_buffer or []],
        "trials": _next_trials(model),
        **{name: getattr(model, name) for name in model.saved_attributes},
    }
    generators = {name: generator.get_state() for name, generator in model.policy.generators.items()}
    owned = model.processes.gather((json.dumps(state).encode(), save_tensors(generators)))
    with model.processes.fail_together():
        if model.processes.is_first:
            parts = (
                json.dumps(config, indent=1).encode(),
                owned[0][0],
                save_tensors(cpu_copies(model.policy.state_dict())),
                save_tensors(cpu_copies(optimizer_tensors(model.policy.optimizer))),
                owned[0][1],
            )
            content = dict(zip(MEMBERS, parts, strict=True))
            if model.saved_tensors():
                content[LEARNER] = save_tensors(cpu_copies(model.saved_tensors()))
            for rank, own in enumerate(owned[1:], 1):
                content |= zip(_own_members(rank), own, strict=True)
            write(path, content)


def drop_training_state(source: str | PathLike[str], target: str | PathLike[str]) -> None:
    """Copy a file without optimizer and generators: its policy can act, but training cannot resume from it.

    Args:
        source: File of a learner.
        target: The smaller file; replaced if it is there.

    Raises:
        FileNotFoundError: There is no file at `source`.
        ValueError: `source` is cut short or not ours.
    """
    members = _read(source)
    config = {**json.loads(members["config.json"]), "policy_only": True}
    kept = {name: members[name] for name in POLICY_ONLY}
    write(target, {**kept, "config.json": json.dumps(config, indent=1).encode()})


def _own_members(rank: int) -> tuple[str, ...]:
    """Names of the members that belong to one process."""
    return OWN if rank == 0 else tuple(name.replace(".", f".{rank}.") for name in OWN)


def load(
    cls: type[Model],
    path: str | PathLike[str],
    env: GymEnv | None = None,
    device: torch.device | str = "auto",
    *,
    policy_kwargs: dict[str, Any] | None = None,
    processes: Processes | None = None,
    **overrides: Any,
) -> Model:
    """The learner of a file, ready to act, and to go on learning if an environment is given.

    Args:
        cls: A subclass of `MemoryAlgorithm`.
        path: The file.
        env: Environment to go on in; its spaces must be those of the file.
        device: Where to put it; on another kind of device than it was saved on, actions are drawn anew from the seed.
        policy_kwargs: Changes to the saved ones; needed where the file names a features extractor class that is not ours.
        processes: Those that go on learning together; as many as wrote the file. None: this one alone.
        **overrides: Fields of the config to change, and `tensorboard_log`, `verbose`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short, not ours, of another algorithm or another number of processes, or does not fit the environment or
            the settings.
    """
    members, processes = _read(path), processes or Processes()
    config = read_json_member(path, members, "config.json", CONFIG_KEYS)
    if env is not None and config.get("policy_only"):
        raise ValueError(
            f"{path}: holds a policy without the state of its optimizer and generators: it can act, but training cannot "
            "resume from it"
        )
    written_by = config.get("processes", 1)  # files of early versions do not say so
    if env is not None and written_by != processes.count:
        raise ValueError(
            f"{path}: number of processes must be that of the file, {written_by}, to go on learning, got {processes.count}"
        )
    state_member, generators_member = _own_members(processes.rank if env is not None else 0)
    if config["algorithm"] != cls.__name__:
        raise ValueError(f"{path}: algorithm must be {cls.__name__!r}, got {config['algorithm']!r}")
    kept = (*(f"{name}_rng" for name in cls.rng_names), *cls.saved_attributes)
    state = read_json_member(path, members, state_member, (*STATE_KEYS, *kept))
    settings = parse_config(path, config["config"], cls.config_type)
    arguments = {key: overrides.pop(key) for key in ("tensorboard_log", "verbose") if key in overrides}
    observation_space, action_space = (
        space_from_json(config["observation_space"]),
        space_from_json(config["action_space"]),
    )
    if env is not None:
        env = cls._wrap_env(env, arguments.get("verbose", 0))  # as the learner saw it: images with their channels first
        for name, own in (("observation_space", observation_space), ("action_space", action_space)):
            given = getattr(env, name)
            if own != given:
                raise ValueError(f"{path}: {name} must be that of the file, {own}, got {given}")
    model: Model = cast(Any, cls)(  # the constructor is that of the subclass
        cls.default_policy,
        env,
        settings,
        policy_kwargs={**config["policy_kwargs"], **(policy_kwargs or {})},
        seed=state["seed"],
        device=device,
        processes=processes,
        _init_setup_model=False,
        **arguments,
        **overrides,
    )
    model.observation_space, model.action_space = observation_space, action_space
    if env is None:
        model.n_envs = 1
    try:
        if env is not None:
            check_encoder(config.get("encoder"), env)
            check_vocabulary(config.get("vocabulary"), env)
        model._setup_model()
        model.policy.encoder_fingerprint = config.get("encoder")
        model.policy.vocabulary_fingerprint = config.get("vocabulary")
        _restore(model, state, members, generators_member)
    except (TypeError, ValueError) as error:
        given = [name for name, value in (policy_kwargs or {}).items() if config["policy_kwargs"].get(name) != value]
        other = f"; of policy_kwargs, {', '.join(given)} was given otherwise than it is saved" if given else ""
        raise ValueError(f"{path}: {error}{other}") from None
    return model


def load_features(policy: MemoryPolicy, path: str | PathLike[str]) -> None:
    """Puts the encoder of a file, features extractor and embedding of the previous action, into a policy; nothing else changes.

    Args:
        policy: Of any learner and memory, with the same features extractor.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short or not ours, its encoder is another one (of other layers, sizes or kinds), or it was not learned there
            but taken over.
    """
    members = _read(path)
    saved = read_json_member(path, members, "config.json", CONFIG_KEYS)
    if saved["policy_kwargs"].get("freeze_features"):
        raise ValueError(
            f"{path}: must be of a learner that has learned its encoder, a first stage or one without freeze_features; "
            "this one has taken it over from another: name that"
        )
    own = policy.json_kwargs()["features_extractor_class"]
    try:
        if saved["policy_kwargs"].get("features_extractor_class") != own:
            raise ValueError(
                f"features_extractor_class must be {own!r}, got {saved['policy_kwargs'].get('features_extractor_class')!r}"
            )
        if saved.get("encoder") != policy.encoder_fingerprint:
            raise ValueError(f"frozen encoder must be {policy.encoder_fingerprint}, got {saved.get('encoder')}")
        parts = ["features_extractor."] + ["previous_action."] * (policy.previous_action_dim > 0)

        def of_encoder(weights: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: value for name, value in weights.items() if name.startswith(tuple(parts))}

        found = of_encoder(load_tensors(members["policy.safetensors"]))
        check_tensors("policy.safetensors", found, of_encoder(policy.state_dict()))
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path}: weights of another encoder: {error}") from None
    policy.load_state_dict(found, strict=False)


def load_policy(policy: ActingPolicy, path: str | PathLike[str]) -> None:
    """Puts all weights of a file's policy into another one that has the same; settings, optimiser and counts stay.

    Args:
        policy: With the same weights by name and shape, and the same words.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is cut short or not ours, or its weights or words are others.
    """
    members = _read(path)
    words = read_json_member(path, members, "config.json", CONFIG_KEYS).get("vocabulary")
    if words not in (None, policy.vocabulary_fingerprint):
        raise ValueError(f"{path}: vocabulary must be {policy.vocabulary_fingerprint}, got {words}")
    try:
        found = load_tensors(members["policy.safetensors"])
        check_tensors("policy.safetensors", found, policy.state_dict())
    except SafetensorError as error:
        raise ValueError(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: weights of another policy: {error}") from None
    policy.load_state_dict(found)


def check_run(
    path: str | PathLike[str], cls: type[MemoryAlgorithm], settings: Any, policy: dict[str, Any], n_envs: int
) -> None:
    """Raises a ValueError that names what differs if a file was not written by a learner with these settings.

    Args:
        path: The file.
        cls: The learner's class.
        settings: Of the learner, a `config_type` of its class.
        policy: Settings of the policy; those left out are not compared.
        n_envs: Number of environments, of all processes together.
    """
    saved = read_json_member(path, _read(path), MEMBERS[0], CONFIG_KEYS)
    if saved["algorithm"] != cls.__name__:
        raise ValueError(f"{path}: is of another run: algorithm must be {cls.__name__!r}, got {saved['algorithm']!r}")
    # settings newer than the file have their defaults
    saved["config"] = asdict(parse_config(path, saved["config"], cls.config_type))
    of_policy = cls.policy_aliases[cls.default_policy]
    assert issubclass(of_policy, ActingPolicy)
    wanted = json.loads(
        json.dumps({"n_envs": n_envs, "config": asdict(settings), "policy_kwargs": of_policy.resolve_kwargs(policy)})
    )
    if saved["n_envs"] != wanted["n_envs"]:
        raise ValueError(f"{path}: is of another run: n_envs must be {n_envs}, got {saved['n_envs']}")
    for part in ("config", "policy_kwargs"):
        for key, value in wanted[part].items():
            got = saved[part].get(key)
            if value is None or got == value:
                continue
            if isinstance(value, dict) and isinstance(got, dict):
                both = ((value.get(name, "left out"), got.get(name, "left out"), name) for name in value | got)
                value, got, name = next(each for each in both if each[0] != each[1])
                key = f"{key}.{name}"
            raise ValueError(f"{path}: is of another run: {key} must be {value}, got {got}")


def _read(path: str | PathLike[str]) -> dict[str, bytes]:
    """The members of a file, those of all its processes among them."""
    members = read(path, POLICY_ONLY)
    if json.loads(members["config.json"]).get("policy_only"):
        return members
    members = read(path, MEMBERS)
    count = json.loads(members["config.json"]).get("processes", 1)  # files of early versions do not say so
    if not isinstance(count, int):
        raise ValueError(f"{path}: processes must be a whole number, got {count!r}")
    for rank in range(count):
        for name in _own_members(rank):
            if name not in members:
                raise ValueError(f"{path}: a checkpoint of {count} processes must have {name!r}, which is missing")
    return members


def _restore(model: MemoryAlgorithm, state: dict[str, Any], members: dict[str, bytes], generators_member: str) -> None:
    """Puts weights, counters and, where the file has them, optimizer and generators into a new learner."""
    weights = _tensors(members["policy.safetensors"])
    check_tensors("policy.safetensors", weights, model.policy.state_dict())
    model.policy.load_state_dict(weights)
    if "optimizer.safetensors" in members:
        _restore_training_state(model, members, generators_member)
    for name, rng in model.rngs.items():
        rng.bit_generator.state = state[f"{name}_rng"]
    for name in model.saved_attributes:
        setattr(model, name, state[name])
    model.num_timesteps = state["num_timesteps"]
    model._n_updates = state["n_updates"]
    model.policy.resets_with_episode = state["resets_with_episode"]
    model.ep_info_buffer = deque(state["recent_episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["recent_successes"], maxlen=model._stats_window_size)
    trials = state["trials"]
    if model.env is not None and trials is not None and model.env.num_envs == len(trials["trial"]):
        model.env.seed(trials["seed"][0])
        model._resume_options = [{"trial": trial} for trial in trials["trial"]]
        model._has_trials = True


def _restore_training_state(model: MemoryAlgorithm, members: dict[str, bytes], generators_member: str) -> None:
    """Puts optimizer, generators and the learner's own tensors of a file into a new learner."""
    trained = [parameter for parameter in model.policy.parameters() if parameter.requires_grad]
    load_optimizer(model.policy.optimizer, trained, _tensors(members["optimizer.safetensors"]))
    kept = _tensors(members[LEARNER]) if LEARNER in members else {}
    check_tensors(LEARNER, kept, model.saved_tensors())
    for name, tensor in model.saved_tensors().items():
        tensor.copy_(kept[name])
    own = model.policy.generators
    generators = _tensors(members[generators_member])
    states = {name: generator.get_state() for name, generator in own.items()}
    if "sampling" in generators and generators["sampling"].shape != states["sampling"].shape:
        # of another kind of device, whose generators differ: actions are drawn anew from the seed
        generators["sampling"] = states["sampling"]
    check_tensors(generators_member, generators, states)
    for name, generator in own.items():
        try:
            generator.set_state(generators[name])
        except RuntimeError as error:
            raise ValueError(f"{generators_member}: {name!r} is no state of a generator ({error})") from None


def _tensors(member: bytes) -> dict[str, Tensor]:
    """Tensors of a member by name."""
    try:
        return load_tensors(member)
    except SafetensorError as error:
        raise ValueError(f"its tensors cannot be read ({error}); was it cut short?") from None


def _next_trials(model: MemoryAlgorithm) -> dict[str, list[int]] | None:
    """Seed and number of the trial that each environment starts next, if it has trials that were seeded one after the other."""
    infos = model.env.unwrapped.reset_infos if model.env is not None else []
    if not infos or not all("trial_id" in info and "seed" in info for info in infos):
        return None
    seeds = [int(info["seed"]) for info in infos]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        return None
    fresh = model._trials_are_fresh()
    return {"seed": seeds, "trial": [int(info["trial_id"]) + (0 if fresh else 1) for info in infos]}
