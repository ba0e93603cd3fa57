"""Random numbers by key and counter (SplitMix64), for compiled code and for arrays.

Number n of a stream follows from the stream's key and n alone. So the noise of a step depends on the episode and the
step, never on how many numbers were drawn before or on what is observed.

Source:
    SplitMix64 (Steele, Lea and Flood, 2014). Its state after n steps is key + n * gamma, so that any number can be
    reached directly.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numba import njit

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
#: `NORMAL_TABLE` has 2^11 entries; the upper 11 of 16 random bits choose one.
_TABLE_SHIFT = np.uint64(5)
_SIXTEEN_BITS = np.uint64(0xFFFF)


def _normal_quantiles(count: int) -> np.ndarray:
    """float32, (count,); equally likely standard normal values, scaled to a standard deviation of exactly 1."""
    values = np.array([NormalDist().inv_cdf((k + 0.5) / count) for k in range(count)])
    return (values / values.std()).astype(np.float32)


#: Standard normal values for noise that need not be finer than 1/1000 of its standard deviation.
NORMAL_TABLE = _normal_quantiles(2048)


def draw_keys(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw the keys of independent streams, uint64, (count,)."""
    return rng.integers(2**64, size=count, dtype=np.uint64)


def random_words(keys: np.ndarray, count: int) -> np.ndarray:
    """Return the first numbers of each stream, those of `random_bits`.

    Args:
        keys: uint64, (B,); the streams.
        count: Numbers of each stream.

    Returns:
        uint64, (B, count).
    """
    word = keys[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, cache=True)
def random_bits(key: np.uint64, counter: np.uint64) -> np.uint64:  # pragma: no cover  (compiled)
    """Return 64 random bits: number `counter` of the stream `key`."""
    word = key + (counter + np.uint64(1)) * _GAMMA
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, cache=True)
def draw_below(states: np.ndarray, b: int, n: int) -> np.int64:  # pragma: no cover  (compiled)
    """Draw the next integer in 0 ... n - 1 of stream `b`, uniformly up to n / 2^32.

    Args:
        states: uint64, (B,); state of each stream, its key at first. Entry `b` moves on by one number.
        b: Index of the stream.
        n: Number of values, 1 ... 2^32.
    """
    bits = random_bits(states[b], np.uint64(0))
    states[b] += _GAMMA
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def normal_pair(key: np.uint64, counter: np.uint64) -> tuple[float, float]:  # pragma: no cover  (compiled)
    """Return two independent standard normal numbers.

    They are made of numbers 2 * counter and 2 * counter + 1 of the stream.

    Source:
        Box and Muller (1958).
    """
    first = random_bits(key, np.uint64(2) * counter)
    second = random_bits(key, np.uint64(2) * counter + np.uint64(1))
    # 53 bits each. Half a unit keeps the argument of the logarithm above 0.
    radius = math.sqrt(-2.0 * math.log((np.float64(first >> np.uint64(11)) + 0.5) * 2.0**-53))
    angle = 2.0 * math.pi * np.float64(second >> np.uint64(11)) * 2.0**-53
    return radius * math.cos(angle), radius * math.sin(angle)


@njit(nogil=True, cache=True)
def fill_table_normals(key: np.uint64, counter: np.uint64, out: np.ndarray) -> None:  # pragma: no cover  (compiled)
    """Fill an array with independent values of `NORMAL_TABLE`, four for each number of a stream.

    Args:
        key: The stream.
        counter: Its first number to use.
        out: float32, (K,); written.
    """
    groups = len(out) // 4
    for group in range(groups):
        bits, at = random_bits(key, counter + np.uint64(group)), 4 * group
        out[at] = NORMAL_TABLE[(bits & _SIXTEEN_BITS) >> _TABLE_SHIFT]
        out[at + 1] = NORMAL_TABLE[((bits >> np.uint64(16)) & _SIXTEEN_BITS) >> _TABLE_SHIFT]
        out[at + 2] = NORMAL_TABLE[((bits >> np.uint64(32)) & _SIXTEEN_BITS) >> _TABLE_SHIFT]
        out[at + 3] = NORMAL_TABLE[bits >> np.uint64(53)]
    bits = random_bits(key, counter + np.uint64(groups))
    for at in range(4 * groups, len(out)):
        out[at] = NORMAL_TABLE[(bits & _SIXTEEN_BITS) >> _TABLE_SHIFT]
        bits >>= np.uint64(16)
