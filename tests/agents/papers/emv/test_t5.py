"""T5: what the decoder sees, that it learns, and its checkpoints."""

import pytest
import torch

from memenvs.agents.papers.emv.config import T5Sizes
from memenvs.agents.papers.emv.t5 import ALIASES, T5Writer
from memenvs.verbalization.language.tokenizer import END

SIZES = T5Sizes(d_model=16, d_ff=24, d_kv=6, num_layers=2, num_heads=2)


def made(seed: int = 0) -> T5Writer:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return T5Writer(SIZES, 40).eval()


def test_answers_word_by_word_are_those_of_the_whole_and_end() -> None:
    """Padding and vectors that are not there change nothing; a token sees no later token of the answer."""
    model = made()
    generator = torch.Generator().manual_seed(0)
    question = torch.randint(2, 40, (3, 9), generator=generator)
    question[0, 5:] = 0
    vectors = torch.randn(3, 5, 16, generator=generator)
    mask = torch.tensor([[True] * 5, [True, False] * 2 + [True], [False] * 5])

    def context(question: torch.Tensor, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([vectors, model.encode(question)], 1), torch.cat([mask, question != 0], 1)

    read = context(question, vectors)
    written = model.write(*read, most_tokens=12)
    assert 0 < written.shape[1] <= 12
    ended = torch.zeros(3, dtype=torch.bool)
    logits = model.decode(written, *read)
    for step in range(written.shape[1]):
        likeliest = torch.where(ended, 0, logits[:, step].argmax(-1))
        assert written[:, step].tolist() == likeliest.tolist()
        ended |= likeliest == END
    padded = torch.cat([question, question.new_zeros(3, 4)], 1)
    assert torch.equal(model.write(*context(padded, vectors.masked_fill(~mask[..., None], 9.0)), 12), written)
    assert not torch.equal(model.write(*context(question, vectors + 1), 12), written)
    late = written.clone()
    late[:, 4] = 7
    torch.testing.assert_close(model.decode(late, *read)[:, :5], logits[:, :5])


def test_checkpoints_have_the_names_of_published_files_each_once() -> None:
    """So runs load that were made when the T5 was our own."""
    model, other = made(0), made(1)
    state = torch.nn.ModuleDict({"t5": model}).state_dict()
    attention, bias = "t5.decoder.block.1.layer.1.EncDecAttention.q.weight", "relative_attention_bias.weight"
    assert attention in state and f"t5.encoder.block.0.layer.0.SelfAttention.{bias}" in state
    assert "t5.shared.weight" in state and not [name for name in state if name.endswith(ALIASES)]
    torch.nn.ModuleDict({"t5": other}).load_state_dict(state)
    question = torch.tensor([[3, 4, 5]])
    assert torch.equal(model.encode(question), other.encode(question))
    assert other.model.lm_head.weight is other.model.shared.weight
    del state[attention]
    with pytest.raises(RuntimeError, match=r"Missing key.*EncDecAttention\.q\.weight"):
        torch.nn.ModuleDict({"t5": other}).load_state_dict(state)
