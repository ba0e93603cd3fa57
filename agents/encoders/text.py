"""Frozen text encoders: hashed words, and a sentence transformer from a local folder."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b, sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from safetensors.torch import save

from memenvs.agents.devices import torch_device
from memenvs.checks import check_int, choices_for

Pooling = Literal["mean", "cls"]
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
"""Letters and digits, with apostrophes inside."""


class TextEncoder(ABC):
    """Maps sentences to unit vectors; not trained.

    Attributes:
        features_dim: Width of the vectors.
    """

    features_dim: int

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Name that differs between encoders with different vectors."""

    @abstractmethod
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Encode B texts to float32, (B, features_dim).

        Raises:
            ValueError: A text contains no word.
        """


class HashedEncoder(TextEncoder):
    """Feature hashing of words and pairs of neighbouring words.

    The hash of a word or pair chooses the entry of the vector that counts it, and the sign. Case and punctuation are
    ignored. Hashes are BLAKE2b of the UTF-8, so vectors are the same on any machine.

    Args:
        features_dim: Width of a vector; >= 1.

    Source:
        Weinberger et al., "Feature hashing for large scale multitask learning", 2009.
    """

    def __init__(self, features_dim: int = 1024) -> None:
        check_int("features_dim", features_dim)
        self.features_dim = features_dim

    @property
    def fingerprint(self) -> str:
        """Name of the features and their number."""
        return f"hashed-1-2-grams-{self.features_dim}"

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """See `TextEncoder`."""
        vectors = np.zeros((len(texts), self.features_dim), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            words = _words(text)
            for gram in [*words, *map(" ".join, pairwise(words))]:
                hashed = int.from_bytes(blake2b(gram.encode(), digest_size=8).digest(), "little")
                vector[(hashed >> 1) % self.features_dim] += 1.0 if hashed & 1 else -1.0
            norm = np.linalg.norm(vector)
            vector /= norm if norm > 0 else 1.0  # signs may cancel out in a short vector
        return vectors


class SentenceTransformer(TextEncoder):
    """A transformer from a local folder, as Hugging Face saves one.

    Nothing is downloaded, and no code in the folder is executed.

    Args:
        folder: Folder with `config.json`, `model.safetensors` and the files of its tokenizer.
        pooling: "mean" averages the last hidden states of the tokens, "cls" takes the first one. Use the one that the
            model was trained with.
        device: Device that it runs on; "auto" for a GPU if there is one.

    Raises:
        ImportError: The extra `text` is not installed.
        FileNotFoundError: There is no such folder.
        ValueError: A file in it cannot be used, or `pooling` is unknown.
    """

    def __init__(self, folder: str | Path, *, pooling: Pooling = "mean", device: torch.device | str = "auto") -> None:
        if pooling not in get_args(Pooling):
            raise ValueError(f"unknown pooling {pooling!r}; {choices_for(pooling, get_args(Pooling))}")
        path = Path(folder)
        if not path.is_dir():
            raise FileNotFoundError(f"no folder of a sentence encoder at {path}")
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise ImportError('a sentence transformer needs transformers: pip install "memenvs[text]"') from error
        local = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(path), **local)
            model = AutoModel.from_pretrained(str(path), use_safetensors=True, **local)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().splitlines()
            raise ValueError(
                f"{path}: must be a folder with config.json, model.safetensors and a tokenizer "
                f"({reason[0] if reason else error!r})"
            ) from None
        self._device = torch_device(device)
        self._model = model.to(self._device).eval().requires_grad_(False)
        self._pooling = pooling
        self.features_dim = int(model.config.hidden_size)

    @property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 of weights, vocabulary and pooling."""
        weights = {name: value.cpu().contiguous().clone() for name, value in self._model.state_dict().items()}
        words = repr((self._pooling, sorted(self._tokenizer.get_vocab().items())))
        return sha256(save(weights) + words.encode()).hexdigest()[:16]

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """See `TextEncoder`."""
        for text in texts:
            _words(text)  # raises if there is no word
        tokens = self._tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            states = self._model(**tokens).last_hidden_state.float()  # (B, L, features_dim)
        if self._pooling == "cls":
            vectors = states[:, 0]
        else:
            mask = tokens["attention_mask"][..., None]  # (B, L, 1)
            vectors = (states * mask).sum(1) / mask.sum(1)  # (B, features_dim)
        return torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()


#: Name -> class.
TEXT_ENCODERS: dict[str, Callable[..., TextEncoder]] = {"hashed": HashedEncoder, "transformer": SentenceTransformer}


def make_text_encoder(name: str = "hashed", **settings: Any) -> TextEncoder:
    """Make a frozen text encoder by name.

    Args:
        name: "hashed" (`HashedEncoder`, 1,024 features) or "transformer" (`SentenceTransformer`; needs `folder=...`
            and the extra `text`).
        **settings: Arguments of its class.

    Raises:
        ValueError: Unknown name or setting, a missing setting, or a folder that cannot be used.
        FileNotFoundError: The folder does not exist.
        ImportError: A package that it needs is not installed.
    """
    if name not in TEXT_ENCODERS:
        raise ValueError(f"unknown text encoder {name!r}; {choices_for(name, TEXT_ENCODERS)}")
    known = inspect.signature(TEXT_ENCODERS[name]).parameters
    for key in settings:
        if key not in known:
            raise ValueError(f"unknown setting {key!r} of the text encoder {name!r}; {choices_for(key, list(known))}")
    for key, setting in known.items():
        if setting.default is setting.empty and key not in settings:
            raise ValueError(f"the text encoder {name!r} needs the setting {key!r}")
    return TEXT_ENCODERS[name](**settings)


def check_text_encoder(encoder: TextEncoder, features_dim: int, fingerprint: str, where: str) -> None:
    """Refuse an encoder other than the one that a checkpoint was trained with.

    Args:
        encoder: Encoder to check.
        features_dim: Width of the encoder in training.
        fingerprint: Fingerprint of the encoder in training.
        where: Path of the checkpoint, for the message.

    Raises:
        ValueError: Width or fingerprint differ.
    """
    if encoder.features_dim != features_dim:
        raise ValueError(
            f"{where}: was trained on sentences of {features_dim} numbers (encoder {fingerprint}), "
            f"got an encoder of {encoder.features_dim} ({encoder.fingerprint})"
        )
    if encoder.fingerprint != fingerprint:
        raise ValueError(f"{where}: was trained on sentences of the encoder {fingerprint}, got {encoder.fingerprint}")


def _words(text: str) -> list[str]:
    """Split a text into its words, in lower case; a ValueError if it has none."""
    words = WORD.findall(text.lower())
    if not words:
        raise ValueError(f"a text must have a word in it, got {text!r}")
    return words
