"""Frozen encoder of sentences: hashed words and pairs of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from memenvs.checks import check_int

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
"""Letters and digits, with apostrophes inside."""


class HashedEncoder:
    """Feature hashing of words and pairs of neighbouring words.

    The hash of a word or pair chooses the entry of the vector that counts it, and the sign. Case and punctuation are
    ignored. Hashes are BLAKE2b of the UTF-8, so vectors are the same on any machine.

    Args:
        features_dim: Width of a vector; >= 1.

    Attributes:
        fingerprint: Name of the features and their number, which checkpoints hold.

    Source:
        Weinberger et al., "Feature hashing for large scale multitask learning", 2009.
    """

    def __init__(self, features_dim: int = 1024) -> None:
        check_int("features_dim", features_dim)
        self.features_dim = features_dim
        self.fingerprint = f"hashed-1-2-grams-{features_dim}"

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Encode B texts to unit vectors, float32, (B, features_dim).

        Raises:
            ValueError: A text contains no word.
        """
        vectors = np.zeros((len(texts), self.features_dim), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            words = WORD.findall(text.lower())
            if not words:
                raise ValueError(f"a text must have a word in it, got {text!r}")
            for gram in [*words, *map(" ".join, pairwise(words))]:
                hashed = int.from_bytes(blake2b(gram.encode(), digest_size=8).digest(), "little")
                vector[(hashed >> 1) % self.features_dim] += 1.0 if hashed & 1 else -1.0
            norm = np.linalg.norm(vector)
            vector /= norm if norm > 0 else 1.0  # signs may cancel out in a short vector
        return vectors
