"""Keys: numbers from which everything in an episode of a supervised task follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from memenvs.checks import check_generator, check_int, is_int
from memenvs.task import Options

E = TypeVar("E")
#: Keys are below this limit.
KEY_LIMIT = 2**63


def sample_keys(batch: int, rng: np.random.Generator, num_tasks: int = 1) -> np.ndarray:
    """Draw the keys of a batch of episodes, by one call of the generator.

    Args:
        batch: B, >= 1.
        rng: Source of the keys.
        num_tasks: Number of tasks of a multi-task batch, of which the remainder of a key chooses one. The batch has
            them in turn, starting with that of the first key.

    Returns:
        int64, (B,).

    Raises:
        ValueError: B is below 1.
        TypeError: `rng` is no generator.
    """
    check_int("batch", batch)
    check_generator("rng", rng)
    keys = rng.integers(KEY_LIMIT, size=batch)
    return keys - keys % num_tasks + (keys[0] % num_tasks + np.arange(batch)) % num_tasks


class KeyedEpisodes(ABC, Generic[E]):
    """Base of rules whose episodes each follow from one number, their key.

    Attributes:
        num_keyed_tasks: Number of tasks of which the remainder of a key chooses one.
    """

    num_keyed_tasks: int = 1

    @abstractmethod
    def make_episodes(self, keys: np.ndarray) -> E:
        """Make the episodes of these keys.

        Args:
            keys: int64, (B,), >= 0.

        Raises:
            ValueError: Keys have another type, shape or range.
        """

    def sample_batch(self, batch: int, rng: np.random.Generator) -> E:
        """Sample episodes, for instance for supervised training.

        The only draw is `rng.integers(2**63, size=batch)`, the keys of the episodes. So a batch equals as many batches
        of one, and `sample_batch(1, default_rng([seed, trial, 1 + episode]))` is that episode of the environment with
        this seed. A batch of several tasks has them in turn, starting with that of the first key.

        Args:
            batch: B, >= 1.
            rng: Source of the keys.

        Raises:
            ValueError: B is below 1.
            TypeError: `rng` is no generator.
        """
        return self.make_episodes(sample_keys(batch, rng, self.num_keyed_tasks))

    def with_query(self, episodes: E, query: np.ndarray) -> E:
        """Return the same episodes with other queries, int (B,), where queries can be chosen."""
        raise NotImplementedError(f"{type(self).__name__} does not define with_query, its queries")

    def draw_episode(self, rng: np.random.Generator, options: Options) -> E:
        """Draw the episode of a reset, or make that of its options `key` and `query`.

        Returns:
            A batch of one.

        Raises:
            ValueError: An option is not allowed, or `query` comes without `key`.
        """
        key, query = key_option(options), options.get("query")
        episode = self.sample_batch(1, rng) if key is None else self.make_episodes(np.array([key]))
        if query is None:
            return episode
        if key is None:
            raise ValueError(f"option 'query' must come with 'key', the number of the episode, got {query!r} alone")
        return self.with_query(episode, np.array([query]))


def check_keys(keys: np.ndarray) -> np.ndarray:
    """Check keys of episodes.

    Args:
        keys: Integers of any type, (B,).

    Returns:
        int64, (B,).

    Raises:
        ValueError: Keys have another type, shape or range.
    """
    keys = np.asarray(keys)
    if keys.ndim != 1 or keys.dtype.kind not in "iu" or (keys < 0).any() or (keys >= KEY_LIMIT).any():
        raise ValueError(f"keys must be integers (B,) in 0 ... 2^63 - 1, got {keys.dtype} {keys.shape}: {keys}")
    return keys.astype(np.int64)


def key_option(options: Options) -> int | None:
    """Read the reset option `key`; None without it.

    Raises:
        ValueError: The option is no key.
    """
    key = options.get("key")
    if key is None:
        return None
    if not is_int(key) or not 0 <= key < KEY_LIMIT:
        raise ValueError(f"option 'key' must be an integer in 0 ... {KEY_LIMIT - 1}, got {key!r}")
    return int(key)
