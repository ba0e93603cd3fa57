"""Random numbers by key and counter."""

import math

import numpy as np
import pytest
from scipy import stats

from memenvs.random import (
    NORMAL_TABLE,
    draw_below,
    draw_keys,
    fill_table_normals,
    normal_pair,
    random_bits,
    random_words,
)


def test_bits_are_those_of_splitmix64():
    """The first numbers of the published generator from seed 0."""
    bits = [int(random_bits(np.uint64(0), np.uint64(k))) for k in range(3)]
    assert bits == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_words_are_the_bits_of_each_stream():
    keys = draw_keys(np.random.default_rng(1), 3)
    expected = [[int(random_bits(key, np.uint64(k))) for k in range(5)] for key in keys]
    assert random_words(keys, 5).tolist() == expected


def test_draw_below_takes_the_numbers_of_its_stream_in_turn():
    states = np.array([7, 0], np.uint64)
    drawn = [int(draw_below(states, 1, 1000)) for _ in range(3)]
    assert drawn == [(int(random_bits(np.uint64(0), np.uint64(k))) >> 32) * 1000 >> 32 for k in range(3)]
    assert states[0] == 7
    states = np.array([5], np.uint64)
    counts = np.bincount([draw_below(states, 0, 6) for _ in range(60_000)], minlength=6)
    assert stats.chisquare(counts).pvalue > 0.001
    states = np.array([3], np.uint64)
    assert draw_below(states, 0, 2**32) == int(random_bits(np.uint64(3), np.uint64(0))) >> 32


def test_keys_have_64_random_bits():
    keys = draw_keys(np.random.default_rng(0), 1000)
    assert keys.dtype == np.uint64 and len(set(keys.tolist())) == 1000
    shares = [((keys >> np.uint64(k)) & np.uint64(1)).mean() for k in range(64)]
    assert np.abs(np.array(shares) - 0.5).max() < 0.06


def test_normal_numbers_by_the_formula_of_box_and_muller():
    key = draw_keys(np.random.default_rng(5), 1)[0]
    for k in range(20):
        first, second = (int(random_bits(key, np.uint64(2 * k + j))) >> 11 for j in (0, 1))  # 53 bits
        radius, angle = math.sqrt(-2 * math.log((first + 0.5) / 2**53)), 2 * math.pi * second / 2**53
        expected = radius * math.cos(angle), radius * math.sin(angle)
        assert normal_pair(key, np.uint64(k)) == pytest.approx(expected, rel=1e-12)
    pairs = np.array([normal_pair(key, np.uint64(k)) for k in range(20_000)])
    assert stats.kstest(pairs.ravel(), "norm").pvalue > 0.001
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.02
    assert abs(np.corrcoef(pairs[:-1, 0], pairs[1:, 0])[0, 1]) < 0.02


def test_table_normal_numbers_are_quantiles_chosen_by_eleven_bits_of_sixteen():
    quantiles = stats.norm.ppf((np.arange(2048) + 0.5) / 2048)
    np.testing.assert_allclose(NORMAL_TABLE, quantiles / quantiles.std(), rtol=1e-6)
    assert NORMAL_TABLE.dtype == np.float32
    for length in (*range(10), 1001):  # four numbers are made of 64 bits
        numbers = np.zeros(length, np.float32)
        fill_table_normals(np.uint64(77), np.uint64(10), numbers)
        bits = [int(random_bits(np.uint64(77), np.uint64(10 + k // 4))) >> 16 * (k % 4) for k in range(length)]
        assert numbers.tolist() == [NORMAL_TABLE[(each & 0xFFFF) >> 5] for each in bits]
