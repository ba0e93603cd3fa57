"""Datasets of whole trials in Minari's format, and the cards that rebuild them."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

import memenvs
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy, play_episode
from memenvs.files import atomic_folder, write_file
from memenvs.json_records import read_record
from memenvs.plugins import package_versions
from memenvs.registry import PLUGINS, find_environment

if TYPE_CHECKING:
    from minari.data_collector import EpisodeBuffer

CARD = "card.json"
"""File in the folder of a dataset, beside Minari's folder `data`."""
PACKAGES = ("gymnasium", "numpy", "minari")
"""Packages whose versions a card has besides those of Python and this one."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Environment, policy and seed, which decide every bit of a dataset.

    Attributes:
        env: The environment, as `make_spec_env` makes it.
        settings: Its settings beside the default ones.
        policy: Description of the policy for the card, as JSON.
        seed: Seed of the environment; trial t of the dataset is its trial t.
        begin_trial: Function of the number of a trial, called once the environment has begun it. It returns the policy
            that plays the trial. What that draws must depend on the trial alone.
        command: Command that makes the dataset, without `--episodes` and `--out`.
        packages: Further packages whose versions the card has.

    Raises:
        ValueError: Trials of the environment never end.
    """

    env: TrialEnv
    settings: Mapping[str, Any]
    policy: Mapping[str, Any]
    seed: int
    begin_trial: Callable[[int], EnvPolicy]
    command: str
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.env.trial_episodes is None and self.env.trial_steps is None:
            raise ValueError("trials would never end; set trial_episodes or trial_steps")

    def describe(self) -> dict[str, Any]:
        """The part of the card that says what is played: environment, policy, seed and version."""
        spec = self.spec
        environment = {
            "id": spec.id,
            "settings": self.settings,
            "spec": {"entry_point": spec.entry_point, **spec.kwargs},
            "observation_space": str(self.env.observation_space),
            "action_space": str(self.env.action_space),
        }
        if self.task_module.partition(".")[0] != memenvs.__name__:  # whose version each card has
            environment["packages"] = package_versions(self.task_module, PLUGINS)
        described = {"environment": environment, "policy": self.policy, "seed": self.seed}
        return json.loads(json.dumps({**described, "memenvs": memenvs.__version__}))  # with tuples as lists

    @property
    def spec(self) -> EnvSpec:
        """Gymnasium's spec of the environment."""
        spec = self.env.spec
        assert spec is not None, "as make_spec_env makes it"
        return spec

    @property
    def task_module(self) -> str:
        """Name of the module of the environment's `BatchTask`."""
        return self.spec.kwargs["task"].partition(":")[0]

    def versions(self) -> dict[str, str]:
        """Versions of Python and of the packages that are not part of `describe`."""
        names = (*PACKAGES, *self.packages)
        return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def make_spec_env(id: str, settings: Mapping[str, Any]) -> TrialEnv:
    """Make one environment with the `spec` from which Minari recovers it.

    Args:
        id: Id of a `BatchTask`, of this package or another.
        settings: Settings beside the default ones.

    Raises:
        ValueError: An unknown id, one whose `BatchTask` cannot be imported, or a setting out of range.
        TypeError: An unknown setting.
    """
    row = find_environment(id)
    if not isinstance(row.task, str):
        raise ValueError(f"a dataset needs an id whose BatchTask can be imported, got {row.id}")
    env = TrialEnv(row.task, **{**row.defaults, **settings})
    env.spec = replace(gym.spec(row.id), kwargs={"task": row.task, **row.defaults, **settings})
    return env


def check_dataset_id(name: str) -> Path:
    """Return the folder of a Minari dataset, below `MINARI_DATASETS_PATH` or ~/.minari/datasets.

    Raises:
        ImportError: Minari is missing.
        ValueError: The id has another form than NAME-vN or NAMESPACE/NAME-vN.
    """
    try:
        import h5py  # noqa: F401  (Minari writes with it)
        from minari.dataset.minari_dataset import parse_dataset_id
        from minari.storage.datasets_root_dir import get_dataset_path
    except ImportError as error:
        raise ImportError(f"datasets need {error.name}; install it with: pip install 'memenvs[minari]'") from error
    try:
        parse_dataset_id(name)
    except (ValueError, TypeError):  # a TypeError where the version is missing
        raise ValueError(f"must be a Minari id NAME-vN or NAMESPACE/NAME-vN, got {name!r}") from None
    return get_dataset_path(name)


def read_card(path: Path) -> dict[str, Any]:
    """Read the card of a dataset.

    Args:
        path: The card, or the folder of the dataset.

    Raises:
        ValueError: There is no such file, or it is no card; the message names what is wrong.
    """
    path = path / CARD if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"no card of a dataset at {path}")
    card = read_record(path, 0)
    for key in ("command", "memenvs"):
        card[key].text()
    for key in ("environment", "policy", "versions"):
        if not isinstance(card[key].value, dict):
            raise card[key].error("a JSON object")
    card["environment"]["id"].text()
    if not isinstance(card["environment"]["settings"].value, dict):
        raise card["environment"]["settings"].error("a JSON object")
    for key, least in (("seed", 0), ("episodes", 1)):
        if not isinstance(card[key].value, int) or card[key].value < least:
            raise card[key].error(f"an integer of at least {least}")
    for checksum in card["checksums"].items(at_least=1):
        checksum.text()
    return card.value


def check_unchanged(card: Mapping[str, Any], source: Source, name: str) -> None:
    """Raise a ValueError that names the first difference between a source and a card.

    Args:
        card: Card of the dataset.
        source: The source.
        name: The dataset, for the message.
    """
    now = source.describe()
    if "packages" not in card["environment"]:  # a card of an earlier version
        now["environment"].pop("packages", None)
    differs = next(_differences({key: card[key] for key in now}, now), None)
    if differs is not None:
        raise ValueError(f"{name} was made with another source: {differs}")


def write_dataset(
    name: str,
    source: Source,
    episodes: int,
    *,
    append: bool = False,
    expected: Mapping[str, Any] | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Play whole trials and write them as a Minari dataset with its card, or write nothing.

    Each episode of the dataset is one episode of the environment, in the order of play. Its `seed` and `options` are
    those of the `reset` that rebuilds it, its `infos` have `trial_id`, `trial_start` and the ground truth.

    Args:
        name: Id of the dataset, such as "darkroom/oracle-v0".
        source: What is played.
        episodes: Number of episodes, >= 1. The trial in which this number is reached is played to its end.
        append: Add the episodes to the dataset, which must be of the same source.
        expected: Card of the dataset that is rebuilt; None for a new one.
        progress: Called with the share that is done, 0 to 1.

    Returns:
        The card.

    Raises:
        ImportError: Minari is missing.
        ValueError: The id is malformed or taken, the source has changed, or a rebuilt trial has other bits.
        NotImplementedError: The environment has no oracle, which was to play.
    """
    path = check_dataset_id(name)
    old_card = _check_target(path, name, source, append=append)
    if expected is not None:
        check_unchanged(expected, source, "the dataset of the card")

    from minari.dataset.minari_storage import MinariStorage
    from minari.namespace import create_namespace, list_local_namespaces

    with atomic_folder(path) as folder:
        if old_card is None:
            folder.mkdir()
            storage = MinariStorage.new(
                folder / "data",
                source.env.observation_space,
                source.env.action_space,
                source.env.spec,
                jpeg_encoding=False,  # JPEG would change the images
            )
            storage.update_metadata(_minari_metadata(name, source))
        else:
            shutil.copytree(path, folder)
            storage = MinariStorage.read(folder / "data")
            _check_bits(0, _play_trial(source, 0), old_card, source)  # same bits as when the dataset was begun
        checksums = [] if old_card is None else list(old_card["checksums"])  # one for each trial
        first = storage.total_episodes

        def store(episode: EpisodeBuffer) -> None:
            storage.update_episodes([episode])
            if progress is not None:
                progress(min(1.0, (storage.total_episodes - first) / episodes))

        while storage.total_episodes < first + episodes:
            trial = len(checksums)
            checksums.append(_play_trial(source, trial, store))
            if expected is not None:
                _check_bits(trial, checksums[trial], expected, source)
        counts = {"episodes": storage.total_episodes, "steps": storage.total_steps, "checksums": checksums}
        command = f"{source.command} --episodes {storage.total_episodes} --out {name}"
        card = {"command": command, **source.describe(), **counts, "versions": source.versions()}
        write_file(folder / CARD, json.dumps(card, indent=1).encode())
        namespace = name.rpartition("/")[0]
        if namespace and namespace not in list_local_namespaces():
            create_namespace(namespace)
    return card


def _check_target(path: Path, name: str, source: Source, *, append: bool) -> dict[str, Any] | None:
    """Check that a dataset may be written, and return the card of the one that is appended to.

    Raises:
        ValueError: There is a dataset and none may be, or none to append to, or one of another source.
    """
    if append:
        card = read_card(path / CARD)
        check_unchanged(card, source, f"dataset {name}")
        return card
    if path.exists():
        raise ValueError(f"there is a dataset {name} already, at {path}")
    return None


def _check_bits(trial: int, checksum: str, card: Mapping[str, Any], source: Source) -> None:
    """Raise a ValueError if a trial has other bits than when the dataset was made."""
    if checksum in card["checksums"][trial : trial + 1]:
        return
    since = "; ".join(_differences(card["versions"], source.versions())) or (
        f"all versions are the same, so the code of {source.task_module} has probably changed: write a new dataset"
    )
    raise ValueError(f"trial {trial} of {source.spec.id} has other bits than when the dataset was made; {since}")


def _differences(was: Any, now: Any, name: str = "") -> Iterator[str]:
    """Differences of two JSON values in words."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*now, *was)):
            yield from _differences(was.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    elif was != now:
        yield f"{name} was {was!r}, is {now!r}"


def _minari_metadata(name: str, source: Source) -> dict[str, Any]:
    """Entries of Minari's `metadata.json` besides spaces and environment."""
    policy = source.policy.get("name", "agent")
    environment = source.describe()["environment"]
    packages = {"memenvs": memenvs.__version__, **environment.get("packages", {})}
    return {
        "dataset_id": name,
        "minari_version": metadata.version("minari"),
        "algorithm_name": policy,
        "description": f"Whole trials of {environment['id']} by the policy {policy}; see {CARD}.",
        "requirements": [f"{package}=={version}" for package, version in packages.items()],
    }


def _play_trial(source: Source, trial: int, store: Callable[[EpisodeBuffer], None] = lambda episode: None) -> str:
    """Play a trial, call `store` with each episode, and return the SHA-256 of all their bits."""
    from minari.data_collector import EpisodeBuffer

    env = source.env
    sha = hashlib.sha256()
    observation, info = env.reset(seed=source.seed, options={"trial": trial})
    policy = source.begin_trial(trial)
    while True:
        steps = list(play_episode(env, policy))
        episode: dict[str, Any] = {
            "seed": info["seed"],
            "options": {"trial": trial, "episode_index": steps[-1].info["episode_index"]},
            "observations": _stack([observation, *(step.observation for step in steps)]),
            "actions": np.array([step.action for step in steps], env.action_space.dtype),
            "rewards": np.array([step.reward for step in steps]),
            "terminations": np.array([step.terminated for step in steps]),
            "truncations": np.array([step.truncated for step in steps]),
            "infos": _stack([info, *(step.info for step in steps)]),
        }
        _hash(sha, episode)
        store(EpisodeBuffer(**episode))
        if env.trial_over:
            return sha.hexdigest()
        observation, info = env.reset()


def _stack(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Key -> values of all steps: an array, (T, ...), or a list of texts."""
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return {key: column if isinstance(column[0], str) else np.stack(column) for key, column in columns.items()}


def _hash(sha: Any, value: Any) -> None:
    """Add a value with its names, types and shapes to a hash."""
    if isinstance(value, dict):
        for key in sorted(value):
            sha.update(f"{key}:".encode())
            _hash(sha, value[key])
        return
    array = np.asarray(value)
    if array.dtype.kind == "U":
        sha.update(json.dumps(value).encode())
        return
    sha.update(f"{array.dtype.str}{array.shape}".encode())
    sha.update(np.ascontiguousarray(array).data)
