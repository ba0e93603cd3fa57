"""Text encoders: hashed words, and a transformer with random weights from a folder."""

from __future__ import annotations

import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from memenvs.agents.encoders import make_text_encoder
from memenvs.agents.encoders.text import HashedEncoder, SentenceTransformer, check_text_encoder
from memenvs.room_ballet.descriptions import load_descriptions

TEXTS = ["Remember the last dancer of every room.", "Who finished?", "Bear in mind the walker's favourite room"]


def test_hashed_words_by_hand() -> None:
    expected = np.zeros(64)
    for gram in (
        "who",
        "finished",
        "the",
        "walker's",
        "show",
        "who finished",
        "finished the",
        "the walker's",
        "walker's show",
    ):
        digest = blake2b(gram.encode(), digest_size=8).digest()
        number = sum(byte << (8 * place) for place, byte in enumerate(digest))
        expected[number // 2 % 64] += 1 if number % 2 else -1
    vectors = HashedEncoder(64)(["Who finished the walker's show?", "who   FINISHED, the walker's (show)"])
    assert vectors.dtype == np.float32 and vectors.shape == (2, 64)
    np.testing.assert_allclose(vectors[0], expected / np.sqrt((expected**2).sum()), rtol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_descriptions_differ_as_vectors() -> None:
    encoder = make_text_encoder()
    texts = [text for each in load_descriptions().texts for text in each]
    vectors = encoder(texts)
    assert vectors.shape == (80, 1024) == (80, encoder.features_dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    assert (vectors @ vectors.T - np.eye(80)).max() < 0.95


def test_wrong_settings_and_texts_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown text encoder 'hash'; did you mean 'hashed'\? Choose from \['hashed', 'transformer'\]",
    ):
        make_text_encoder("hash")
    with pytest.raises(ValueError, match=r"unknown setting 'kind' of the text encoder 'hashed'; .*'features_dim'"):
        make_text_encoder("hashed", kind="x")
    with pytest.raises(ValueError, match="the text encoder 'transformer' needs the setting 'folder'"):
        make_text_encoder("transformer")
    with pytest.raises(ValueError, match="features_dim must be an integer of at least 1, got 0"):
        HashedEncoder(0)
    with pytest.raises(ValueError, match=r"a text must have a word in it, got ' \?'"):
        HashedEncoder()(["fine", " ?"])
    with pytest.raises(FileNotFoundError, match="no folder of a sentence encoder at"):
        make_text_encoder("transformer", folder=tmp_path / "missing")
    with pytest.raises(ValueError, match=r"unknown pooling 'max'; choose from \['mean', 'cls'\]"):
        make_text_encoder("transformer", folder=tmp_path, pooling="max")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"memenvs\[text\]"):
        make_text_encoder("transformer", folder=tmp_path)


def test_an_encoder_other_than_in_training_is_refused() -> None:
    trained = HashedEncoder(1024)
    check_text_encoder(HashedEncoder(1024), trained.features_dim, trained.fingerprint, "run/checkpoint.zip")
    message = (
        r"run/checkpoint.zip: was trained on sentences of 1024 numbers \(encoder hashed-1-2-grams-1024\), "
        r"got an encoder of 512 \(hashed-1-2-grams-512\)"
    )
    with pytest.raises(ValueError, match=message):
        check_text_encoder(HashedEncoder(512), trained.features_dim, trained.fingerprint, "run/checkpoint.zip")
    with pytest.raises(ValueError, match="of the encoder 0123456789abcdef, got hashed-1-2-grams-1024"):
        check_text_encoder(HashedEncoder(1024), 1024, "0123456789abcdef", "run/checkpoint.zip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two narrow layers with random weights; its vocabulary is the words of `TEXTS`."""
    transformers = pytest.importorskip("transformers", reason="a sentence transformer needs the extra text")
    path = tmp_path_factory.mktemp("encoder")
    words = sorted({word for text in TEXTS for word in text.lower().replace("'", " ' ").strip("?.").split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ".", *words]
    (path / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"))
    tokenizer.save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(path)
    return path


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_sentence_transformer_equals_one_sentence_at_a_time(
    folder: Path, pooling: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError(f"a connection was opened: {arguments}")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    transformers = pytest.importorskip("transformers")
    encoder = make_text_encoder("transformer", folder=folder, pooling=pooling, device="cpu")
    vectors = encoder(TEXTS)
    assert vectors.shape == (3, 12) == (3, encoder.features_dim) and vectors.dtype == np.float32
    model = transformers.BertModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder, local_files_only=True)
    for text, vector in zip(TEXTS, vectors, strict=True):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        expected = states.mean(0) if pooling == "mean" else states[0]
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


def test_fingerprints_depend_on_weights_and_pooling(folder: Path) -> None:
    one, same = (SentenceTransformer(folder, device="cpu") for _ in range(2))
    assert one.fingerprint == same.fingerprint and len(one.fingerprint) == 16
    assert SentenceTransformer(folder, pooling="cls", device="cpu").fingerprint != one.fingerprint
    with torch.no_grad():
        same._model.get_input_embeddings().weight[0, 0] += 1.0
    assert same.fingerprint != one.fingerprint


def test_folders_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be a folder with config.json, model.safetensors and a tokenizer"):
        SentenceTransformer(tmp_path)
    for name in ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists():
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle would be executed")
    with pytest.raises(ValueError, match=r"must be a folder with config.json, model.safetensors"):
        SentenceTransformer(tmp_path)
