"""T5: the published formula, transformers where it is installed, published files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from memenvs.agents.verbalization.t5 import ALIASES, EOS, T5, T5Config, relative_buckets

CONFIG = T5Config(vocab_size=40, d_model=16, d_ff=24, d_kv=6, num_layers=2, num_heads=2)


def made(seed: int = 0, config: T5Config = CONFIG) -> T5:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return T5(config).eval()


def answers(
    model: T5, question: torch.Tensor, vectors: torch.Tensor, mask: torch.Tensor | None = None, most_tokens: int = 12
) -> torch.Tensor:
    return model.write(*model.join(model.encode(question), question != 0, vectors, mask), most_tokens)


def texts(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Questions and answers of different lengths, padded."""
    generator = torch.Generator().manual_seed(seed)
    question = torch.randint(2, 40, (3, 9), generator=generator)
    answer = torch.randint(2, 40, (3, 7), generator=generator)
    question[0, 5:], answer[1, 4:], answer[:, -1], answer[1, 3] = 0, 0, EOS, EOS
    answer[1, 4:] = 0
    return question, answer


def test_sizes_are_those_of_t5_small() -> None:
    with torch.device("meta"):
        model = T5(T5Config.small())
    assert sum(parameter.numel() for parameter in model.parameters()) == 60_506_624


def test_buckets_by_the_published_formula() -> None:
    """Raffel et al.: half of the buckets are exact, the others grow with the logarithm up to distance 128."""
    distances = range(-200, 201)
    for two_sided in (True, False):
        expected = []
        for distance in distances:  # key minus query
            count, first = (16, 16 * (distance > 0)) if two_sided else (32, 0)
            far = abs(distance) if two_sided else max(-distance, 0)
            half = count // 2
            rough = half + int(math.log(far / half) / math.log(128 / half) * (count - half)) if far >= half else far
            expected.append(first + min(rough, count - 1))
        assert relative_buckets(torch.tensor(distances), two_sided=two_sided).tolist() == expected


def test_answers_word_by_word_are_those_of_the_whole_and_end() -> None:
    """The cache of keys gives what reading the whole answer again gives; padding and absent vectors change nothing."""
    model = made()
    question, _ = texts()
    vectors = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True] * 5, [True, False] * 2 + [True], [False] * 5])
    written = answers(model, question, vectors, mask)
    before = written.new_zeros(3, 0)
    ended = torch.zeros(3, dtype=torch.bool)
    for step in range(written.shape[1]):
        logits = model(question, torch.cat([before, before.new_zeros(3, 1)], 1), vectors, mask)
        expected = torch.where(ended, 0, logits[:, -1].argmax(-1))
        assert written[:, step].tolist() == expected.tolist()
        ended |= expected == EOS
        before = written[:, : step + 1]
    changed = vectors.masked_fill(~mask[..., None], 9.0)
    padded = torch.cat([question, question.new_zeros(3, 4)], 1)
    assert torch.equal(answers(model, padded, changed, mask), written)
    assert not torch.equal(answers(model, question, vectors + 1, mask), written)
    # a token sees no later token of the answer
    _, answer = texts()
    late = answer.clone()
    late[:, 4] = 7
    torch.testing.assert_close(model(question, answer)[:, :5], model(question, late)[:, :5])


def test_learns_to_copy_a_vector_of_the_memory() -> None:
    """Only the memory says which of two words to answer."""
    model = made()
    question = torch.full((8, 2), 5)
    which = torch.arange(8) % 2
    vectors = torch.where(which[:, None, None] == 0, 1.0, -1.0).expand(8, 1, 8)
    answer = torch.stack([10 + which, torch.full((8,), EOS)], 1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(question, answer, vectors).flatten(0, 1), answer.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(answers(model, question, vectors), answer)


def published(folder: Path, model: T5, **changes: torch.Tensor | None) -> Path:
    """A folder in the layout of Hugging Face; `changes` replace tensors, None removes one."""
    folder.mkdir(exist_ok=True)
    config = {name: getattr(model.config, name) for name in model.config.__dataclass_fields__}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "t5", "decoder_start_token_id": 0}))
    tensors = {**model.state_dict(), **{name: model.shared.weight.detach().clone() for name in ALIASES}, **changes}
    save_file({name: value for name, value in tensors.items() if value is not None}, folder / "model.safetensors")
    return folder


def test_published_files_are_loaded_and_others_refused(tmp_path: Path) -> None:
    model, other = made(0), made(1)
    other.load_published(published(tmp_path / "a", model))
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
    name = "decoder.block.1.layer.1.EncDecAttention.q.weight"
    with pytest.raises(ValueError, match=r"missing tensors \['decoder.block.1.layer.1.EncDecAttention.q.weight'\]"):
        other.load_published(published(tmp_path / "a", model, **{name: None}))
    with pytest.raises(ValueError, match=r"unexpected tensors \['decoder.extra'\]"):
        other.load_published(published(tmp_path / "a", model, **{"decoder.extra": torch.zeros(1)}))
    wide = made(0, T5Config(vocab_size=40, d_model=16, d_ff=25, d_kv=6, num_layers=2, num_heads=2))
    with pytest.raises(ValueError, match="d_ff must be 25, got 24"):
        wide.load_published(published(tmp_path / "a", model))
    name = "decoder.final_layer_norm.weight"
    with pytest.raises(ValueError, match=rf"{name} must have the shape \(16,\), got \(15,\)"):
        other.load_published(published(tmp_path / "a", model, **{name: torch.zeros(15)}))
    with pytest.raises(ValueError, match="d_model must be a multiple of the width of memory vectors, 7, got 16"):
        model(*texts(), torch.zeros(3, 2, 7))


def test_broken_folders_are_named(tmp_path: Path) -> None:
    """A missing, cut or foreign file of published weights is refused by its name."""
    model = made()
    folder = published(tmp_path / "a", model)
    assert T5Config.read(folder) == CONFIG
    config = json.loads((folder / "config.json").read_text())
    for changes, message in (
        ({"feed_forward_proj": "gated-gelu"}, "config.json: feed_forward_proj must be 'relu', as in version 1.0 of T5"),
        ({"tie_word_embeddings": False}, "config.json: tie_word_embeddings must be True"),
        ({"num_decoder_layers": 3}, "config.json: num_decoder_layers must be num_layers, 2, got 3"),
        ({"d_ff": "wide"}, "config.json: d_ff must be"),
        ({"d_kv": None}, "config.json: d_kv is missing"),
    ):
        (folder / "config.json").write_text(json.dumps(config | changes))
        with pytest.raises(ValueError, match=message):
            model.load_published(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json: not JSON"):
        model.load_published(folder)
    (folder / "config.json").write_text(json.dumps(config))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        model.load_published(folder)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="no weights at"):
        model.load_published(folder)


def test_against_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra text")
    model = made()
    folder = published(tmp_path / "a", model)
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(folder).eval()
    question, answer = texts()
    with torch.no_grad():
        expected = theirs(input_ids=question, attention_mask=question != 0, labels=answer).logits
    got = model(question, answer)
    np.testing.assert_allclose(got.detach().numpy(), expected.numpy(), atol=2e-5)
