"""Random numbers by counter: number n of a key is found without drawing those before it.

So the noise of a step depends on the episode and the step alone, not on what the robot did before or on what it observes.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numba import njit

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
#: `QUANTILES` has 2^11 entries, picked by the 11 upper bits of 16.
_QUANTILE_SHIFT = np.uint64(5)
_SIXTEEN_BITS = np.uint64(0xFFFF)


def _quantiles(count: int) -> np.ndarray:
    """float32, (count,); equally likely values of a standard normal variable, scaled to a standard deviation of exactly 1."""
    values = np.array([NormalDist().inv_cdf((k + 0.5) / count) for k in range(count)])
    return (values / values.std()).astype(np.float32)


#: Normal noise that need not be finer than 1/1000 of its standard deviation is looked up here.
QUANTILES = _quantiles(2048)


def draw_keys(rng: np.random.Generator, count: int) -> np.ndarray:
    """Keys of independent streams, uint64, (count,)."""
    return rng.integers(2**64, size=count, dtype=np.uint64)


@njit(nogil=True, cache=True)
def random_word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """64 random bits.

    Args:
        key: Which stream.
        counter: Which of its numbers.

    Source:
        SplitMix64 (Steele, Lea and Flood, 2014), whose state after n steps is known at once.
    """
    word = key + (counter + np.uint64(1)) * _GAMMA
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, cache=True)
def normal_pair(key: np.uint64, counter: np.uint64) -> tuple[float, float]:
    """Two independent standard normal numbers (Box and Muller, 1958), from numbers 2 * counter and 2 * counter + 1 of a stream."""
    first = random_word(key, np.uint64(2) * counter)
    second = random_word(key, np.uint64(2) * counter + np.uint64(1))
    radius = math.sqrt(-2.0 * math.log((np.float64(first >> np.uint64(11)) + 0.5) * 2.0**-53))
    angle = 2.0 * math.pi * np.float64(second >> np.uint64(11)) * 2.0**-53
    return radius * math.cos(angle), radius * math.sin(angle)


@njit(nogil=True, cache=True)
def coarse_normals(key: np.uint64, counter: np.uint64, out: np.ndarray) -> None:
    """Fills `out`, float32, with independent values of `QUANTILES`, four for each number of a stream from `counter` on."""
    whole = len(out) // 4
    for group in range(whole):
        word, at = random_word(key, counter + np.uint64(group)), 4 * group
        out[at] = QUANTILES[(word & _SIXTEEN_BITS) >> _QUANTILE_SHIFT]
        out[at + 1] = QUANTILES[((word >> np.uint64(16)) & _SIXTEEN_BITS) >> _QUANTILE_SHIFT]
        out[at + 2] = QUANTILES[((word >> np.uint64(32)) & _SIXTEEN_BITS) >> _QUANTILE_SHIFT]
        out[at + 3] = QUANTILES[word >> np.uint64(53)]
    word = random_word(key, counter + np.uint64(whole))
    for at in range(4 * whole, len(out)):
        out[at] = QUANTILES[(word & _SIXTEEN_BITS) >> _QUANTILE_SHIFT]
        word >>= np.uint64(16)
