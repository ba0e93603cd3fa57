"""T5 of `transformers`, whose decoder reads a memory and the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.papers.emv.config import T5Sizes
from memenvs.checks import check_int
from memenvs.verbalization.language.tokenizer import END, PAD

if TYPE_CHECKING:
    from transformers import T5ForConditionalGeneration

ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
"""Names that the shared embedding has besides "shared.weight"; checkpoints leave them out."""


class T5Writer(nn.Module):
    """Encoder and decoder of a T5 with new weights; the decoder attends to any context.

    Args:
        sizes: Sizes of the T5.
        vocab_size: Number of tokens of the tokenizer.

    Raises:
        ImportError: The extra `text` is not installed.

    Source:
        Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", JMLR 2020.
        The memory next to the question: Bärmann, Waibel and Asfour, "Deep Episodic Memory for Verbalization of Robot
        Experience", RA-L 2021.
    """

    def __init__(self, sizes: T5Sizes, vocab_size: int) -> None:
        super().__init__()
        self.model = make_t5(sizes, vocab_size)
        self.register_state_dict_post_hook(_drop_aliases)
        self.register_load_state_dict_pre_hook(_add_aliases)

    @property
    def d_model(self) -> int:
        """Width of the embedding of a token."""
        return int(self.model.config.d_model)

    @property
    def dropout_rate(self) -> float:
        """Probability of dropout in learning."""
        return float(self.model.config.dropout_rate)

    def encode(self, question: Tensor) -> Tensor:
        """Encode questions, int64 (B, Q), padded with 0; float (B, Q, d_model)."""
        encoded: Tensor = self.model.encoder(input_ids=question, attention_mask=question != PAD).last_hidden_state
        return encoded

    def decode(self, answer: Tensor, context: Tensor, valid: Tensor) -> Tensor:
        """Predict each token of an answer from those before it.

        Args:
            answer: int64, (B, T); ends with 1, then padded with 0.
            context: float, (B, C, d_model); what the decoder attends to. Attention has no positions, so its order does
                not matter.
            valid: bool, (B, C); which vectors of the context there are.

        Returns:
            Logits, float, (B, T, vocab_size).
        """
        before = F.pad(answer[:, :-1], (1, 0), value=PAD)
        logits: Tensor = self.model(
            encoder_outputs=(context,), attention_mask=valid, decoder_input_ids=before, use_cache=False
        ).logits
        return logits

    @torch.no_grad()
    def write(self, context: Tensor, valid: Tensor, most_tokens: int = 48) -> Tensor:
        """Write the most likely token again and again, until the end of the answer.

        Args:
            context: float, (B, C, d_model); see `decode`.
            valid: bool, (B, C).
            most_tokens: Most tokens of an answer; >= 1.

        Returns:
            int64, (B, T), T <= most_tokens; padded with 0 after the end.
        """
        check_int("most_tokens", most_tokens)
        from transformers.modeling_outputs import BaseModelOutput

        written: Tensor = self.model.generate(
            encoder_outputs=BaseModelOutput(context), attention_mask=valid, max_new_tokens=most_tokens, do_sample=False
        )
        return written[:, 1:]


def make_t5(sizes: T5Sizes, vocab_size: int) -> T5ForConditionalGeneration:
    """Make a T5 with new weights; see `T5Writer`."""
    try:
        from transformers import T5Config, T5ForConditionalGeneration
    except ImportError as error:
        raise ImportError('answers in words need transformers: pip install "memenvs[text]"') from error
    special: dict[str, Any] = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}
    return T5ForConditionalGeneration(T5Config(vocab_size=vocab_size, **vars(sizes), **special))


def _drop_aliases(module: nn.Module, state: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
    """Name weights as published files do, each once."""
    own = f"{prefix}model."
    for name in [name for name in state if name.startswith(own)]:
        value, short = state.pop(name), name.removeprefix(own)
        if short not in ALIASES:
            state[prefix + short] = value


def _add_aliases(module: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Name weights as `transformers` does; the inverse of `_drop_aliases`."""
    for name in [name for name in state if name.startswith(prefix)]:
        state[f"{prefix}model.{name.removeprefix(prefix)}"] = state.pop(name)
    if f"{prefix}model.shared.weight" in state:
        state |= {f"{prefix}model.{name}": state[f"{prefix}model.shared.weight"] for name in ALIASES}


def check_tiles(d_model: int, width: int) -> None:
    """Raise a ValueError unless memory vectors of a width fill d_model by repetition."""
    if d_model % width:
        raise ValueError(f"d_model must be a multiple of the width of memory vectors, {width}, got {d_model}")
