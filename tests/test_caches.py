"""Caches: the values that were used last, and none of them in a pickle."""

from __future__ import annotations

import pickle
from collections import Counter

from memenvs.caches import RecentlyUsed


def test_values_that_were_used_last_are_kept() -> None:
    cache: RecentlyUsed[int, str] = RecentlyUsed(2)
    made: Counter[int] = Counter()

    def value(key: int) -> str:
        def make() -> str:
            made[key] += 1
            return f"value {key}"

        return cache.get(key, make)

    for key in (0, 1, 0, 2, 0, 2):  # 2 in place of 1
        assert value(key) == f"value {key}"
    assert (len(cache), made) == (2, {0: 1, 1: 1, 2: 1})
    value(1)
    assert (len(cache), made[1]) == (2, 2)
    value(2)
    assert made[2] == 1  # 0 was used before it


def test_a_pickle_has_no_values() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(2)
    cache.get("a", lambda: 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (len(copy), copy.size, copy.get("a", lambda: 2), cache.get("a", lambda: 2)) == (0, 2, 2, 1)
