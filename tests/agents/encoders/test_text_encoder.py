"""Hashed words and pairs of words, by hand."""

import itertools
from hashlib import blake2b

import numpy as np
import pytest

from memenvs.agents.encoders import HashedEncoder
from memenvs.room_ballet.descriptions import load_descriptions


def test_hashed_words_by_hand() -> None:
    expected = np.zeros(64)
    words = ["who", "finished", "the", "walker's", "show"]
    for gram in (*words, *map(" ".join, itertools.pairwise(words))):
        digest = blake2b(gram.encode(), digest_size=8).digest()
        number = sum(byte << (8 * place) for place, byte in enumerate(digest))
        expected[number // 2 % 64] += 1 if number % 2 else -1
    vectors = HashedEncoder(64)(["Who finished the walker's show?", "who   FINISHED, the walker's (show)"])
    assert vectors.dtype == np.float32 and vectors.shape == (2, 64)
    np.testing.assert_allclose(vectors[0], expected / np.sqrt((expected**2).sum()), rtol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_descriptions_differ_as_vectors() -> None:
    encoder = HashedEncoder()
    texts = [text for descriptions in load_descriptions().texts for text in descriptions]
    vectors = encoder(texts)
    assert vectors.shape == (80, 1024) == (80, encoder.features_dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    assert (vectors @ vectors.T - np.eye(80)).max() < 0.95


def test_wrong_settings_and_texts_are_named() -> None:
    with pytest.raises(ValueError, match="features_dim must be an integer of at least 1, got 0"):
        HashedEncoder(0)
    with pytest.raises(ValueError, match=r"a text must have a word in it, got ' \?'"):
        HashedEncoder()(["fine", " ?"])
