"""Random numbers by key and counter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from memenvs.random import NORMAL_TABLE, draw_below, draw_keys, fill_table_normals, normal_pair, random_bits


def test_bits_are_those_of_splitmix64():
    """The first numbers of the published generator from seed 0."""
    bits = [int(random_bits(np.uint64(0), np.uint64(k))) for k in range(3)]
    assert bits == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_draw_below_takes_the_numbers_of_its_stream_in_turn():
    states = np.array([7, 0], np.uint64)
    drawn = [int(draw_below(states, 1, 1000)) for _ in range(3)]
    assert drawn == [(int(random_bits(np.uint64(0), np.uint64(k))) >> 32) * 1000 >> 32 for k in range(3)]
    assert states[0] == 7
    states = np.array([5], np.uint64)
    counts = np.bincount([draw_below(states, 0, 6) for _ in range(60_000)], minlength=6)
    assert stats.chisquare(counts).pvalue > 0.001


def test_normal_numbers_are_normal():
    key = draw_keys(np.random.default_rng(5), 1)[0]
    pairs = np.array([normal_pair(key, np.uint64(k)) for k in range(50_000)])
    assert stats.kstest(pairs.ravel(), "norm").pvalue > 0.001
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.02
    assert abs(np.corrcoef(pairs[:-1, 0], pairs[1:, 0])[0, 1]) < 0.02


def test_table_normal_numbers_are_normal():
    assert NORMAL_TABLE.std() == pytest.approx(1.0, abs=1e-6)
    numbers = np.zeros(100_003, np.float32)
    fill_table_normals(np.uint64(77), np.uint64(10), numbers)
    assert stats.kstest(numbers, "norm").pvalue > 0.001
    assert numbers.std() == pytest.approx(1.0, abs=0.01)
    assert np.abs(np.corrcoef(numbers[:100_000].reshape(-1, 4).T) - np.eye(4)).max() < 0.02
    later = np.zeros(7, np.float32)
    fill_table_normals(np.uint64(77), np.uint64(12), later)
    assert (later == numbers[8:15]).all()
