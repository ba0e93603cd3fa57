"""Named test sets: the same trials of an id for everyone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memenvs.checks import choices_for
from memenvs.core import TrialVectorEnv
from memenvs.identity import changed_settings, is_task_of
from memenvs.itineraries import trial_limits
from memenvs.json_records import format_json
from memenvs.registry import EnvironmentSpec, environments, find_environment
from memenvs.task import load_task, setting_names

#: Names of the test sets of every id.
TEST_SETS = ("v0",)
#: Trials of a test set.
NUM_TRIALS = 200
#: Environments of `TrialSet.make_env`, which play side by side.
NUM_ENVS = 20
#: Seed of the first trial. `memenvs.resets.stream_seed`, which seeds training, never returns one from here on.
FIRST_SEED = 2**31 - 2**20 + 2**10
#: Splits to test in, the first that a task has.
SPLITS = ("test", "val_unseen", "validation")


@dataclass(frozen=True, kw_only=True)
class TrialSet:
    """A named test set.

    Trial k is trial 0 of the seed `first_seed` + k, from its first episode to its end.

    Attributes:
        id: Full id.
        name: Name of the set, such as "v0".
        settings: Settings of the environment, the split among them.
        split: Split; None if the task has none.
        first_seed: Seed of the first trial.
        trials: Number of trials.
        episodes: Episodes of a trial; None where `trial_steps` end it.
        trial_steps: Steps of a trial; None where `episodes` end it.
        episode_hash: Hash of episodes of the id by its certificate; None without one.
    """

    id: str
    name: str
    settings: Mapping[str, Any]
    split: str | None
    first_seed: int
    trials: int
    episodes: int | None
    trial_steps: int | None
    episode_hash: str | None

    @property
    def seeds(self) -> range:
        """Seed of each trial."""
        return range(self.first_seed, self.first_seed + self.trials)

    @property
    def hash(self) -> str:
        """Hash of all attributes but `episode_hash`: equal ones stand for the same trials.

        A certificate that is made later leaves it as it is.
        """
        return f"sha256:{hashlib.sha256(format_json(self._parts()).encode()).hexdigest()}"

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON data."""
        return {**self._parts(), "episode_hash": self.episode_hash, "hash": self.hash}

    @property
    def free_settings(self) -> tuple[str, ...]:
        """Settings that an environment may change: speed, and what is observed alone."""
        task = find_environment(self.id).task
        return ("threads",) if task is None else ("threads", *load_task(task).observation_settings)

    def make_env(self, observed: Mapping[str, Any]) -> TrialVectorEnv:
        """Make environments that play these trials, with `autoreset_mode` "Disabled".

        Args:
            observed: Settings of what is observed that replace those of the test set.

        Raises:
            ValueError: One of them changes more than that.
        """
        task = find_environment(self.id).task
        assert task is not None
        env = TrialVectorEnv(
            task, min(NUM_ENVS, self.trials), autoreset_mode="Disabled", **{**self.settings, **observed}
        )
        try:
            self.check_env(env)
        except ValueError:
            env.close()
            raise
        return env

    def check_env(self, env: TrialVectorEnv) -> None:
        """Check that an environment plays these trials.

        Raises:
            ValueError: It is of another task, or a setting differs that is not one of `free_settings`.
        """
        row = find_environment(self.id)
        if not is_task_of(row, type(env.task)):
            raise ValueError(f"test_set {self.name!r} is of {self.id}, got an environment of {type(env.task).__name__}")
        for name, (value, expected) in changed_settings(env, self.settings, self.free_settings).items():
            raise ValueError(
                f"test_set {self.name!r} of {self.id} has {name}={expected!r}, got an environment with {value!r}"
            )

    def _parts(self) -> dict[str, Any]:
        names = ("id", "name", "split", "first_seed", "trials", "episodes", "trial_steps")
        return {name: getattr(self, name) for name in names} | {"settings": dict(sorted(self.settings.items()))}


def find_test_set(id: str, name: str = "v0", *, trials: int = NUM_TRIALS) -> TrialSet:
    """Return a test set of an id.

    Args:
        id: The id; the namespace may be left out.
        name: One of `TEST_SETS`.
        trials: Trials; fewer than `NUM_TRIALS` are the first ones, for a first estimate.

    Raises:
        ValueError: There is no such id or test set, the id has no `BatchTask`, or its trials never end.
    """
    row = find_environment(id)
    if name not in TEST_SETS:
        raise ValueError(f"unknown test_set {name!r} of {row.id}; {choices_for(name, TEST_SETS)}")
    if row.task is None:
        raise ValueError(f"test_set needs trials, which {row.id} has not: it is no task of memenvs")
    limits = trial_limits(row.defaults)
    if not any(limits.values()):
        raise ValueError(f"test_set needs trials that end, but {row.id} has neither trial_episodes nor trial_steps")
    split = find_split(row)
    certificate = row.load_certificate()
    return TrialSet(
        id=row.id,
        name=name,
        settings=dict(row.defaults) if split is None else {**row.defaults, "split": split},
        split=split,
        first_seed=FIRST_SEED,
        trials=trials,
        episodes=limits["trial_episodes"],
        trial_steps=limits["trial_steps"],
        episode_hash=None if certificate is None else certificate.episode_hash,
    )


def playable_test_set(env: TrialVectorEnv, name: str) -> TrialSet:
    """Return the test set that an environment can play.

    Raises:
        ValueError: Its settings are those of the test set of no id; the message says what differs for the nearest one.
            What is observed decides only between ids that are equally near.
    """
    sets = [find_test_set(row.id, name) for row in environments() if is_task_of(row, type(env.task))]
    if not sets:
        raise ValueError(f"test_set must be None for {type(env.task).__name__}, which has no id, got {name!r}")

    def distance(trials: TrialSet) -> tuple[int, ...]:
        return tuple(len(changed_settings(env, trials.settings, free)) for free in (trials.free_settings, ("threads",)))

    nearest = min(sets, key=distance)
    nearest.check_env(env)
    return nearest


def find_split(row: EnvironmentSpec) -> str | None:
    """Find the split to test in: the first of `SPLITS` that the task has.

    If it has none of them, its default.

    Returns:
        Its name; None if the task has no splits.
    """
    assert row.task is not None
    if "split" not in setting_names(row.task):
        return None
    for split in SPLITS:
        try:
            TrialVectorEnv(row.task, 1, **{**row.defaults, "split": split}).close()
        except (ValueError, TypeError):
            continue
        return split
    return None
