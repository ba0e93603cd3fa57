"""The T5 text model, whose decoder reads a memory beside the question."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, check_int
from memenvs.json_records import read_json

PAD, EOS = 0, 1
"""Tokens of every T5 vocabulary; padding is the start of an answer too."""
BUCKETS, FAR = 32, 128
"""Number of relative positions that differ, and the distance from which on they are equal."""
ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
"""Tensors that published files repeat: they are the shared embedding."""


@dataclass(frozen=True, kw_only=True)
class T5Config:
    """Sizes of a T5; the defaults are those of a laptop, `T5Config.small()` those of T5-small.

    Attributes:
        vocab_size: Number of tokens; > 2.
        d_model: Width of token embeddings; >= 1.
        d_ff: Width of the hidden layer of a feed-forward block; >= 1.
        d_kv: Width of an attention head; >= 1.
        num_layers: Layers of the encoder, and of the decoder; >= 1.
        num_heads: Attention heads; >= 1.
        dropout_rate: Probability of dropout in learning, 0 to below 1; published weights were trained with 0.1.
    """

    vocab_size: int
    d_model: int = 128
    d_ff: int = 512
    d_kv: int = 32
    num_layers: int = 2
    num_heads: int = 4
    dropout_rate: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("d_model", "d_ff", "d_kv", "num_layers", "num_heads"):
            check_int(name, getattr(self, name))
        check_largest(vars(self))
        check_int("vocab_size", self.vocab_size, at_least=3)
        if not 0.0 <= self.dropout_rate < 1.0:
            raise ValueError(f"dropout_rate must be 0 to below 1, got {self.dropout_rate}")

    @classmethod
    def small(cls, vocab_size: int = 32_128) -> T5Config:
        """Sizes of T5-small, about 60 million parameters."""
        return cls(vocab_size=vocab_size, d_model=512, d_ff=2048, d_kv=64, num_layers=6, num_heads=8, dropout_rate=0.1)

    @classmethod
    def read(cls, folder: str | Path) -> T5Config:
        """Read the sizes of a published T5.

        Args:
            folder: Folder with config.json, as Hugging Face writes it.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is not of a T5 of version 1.0, or a size is missing or out of range.
        """
        record = read_json(Path(folder) / "config.json")
        for name, only in (("feed_forward_proj", "relu"), ("tie_word_embeddings", True)):
            found = record.get(name)
            if found is not None and found.value != only:
                raise found.error(f"{only!r}, as in version 1.0 of T5")
        rows = record.get("num_decoder_layers")
        if rows is not None and rows.value != record["num_layers"].value:
            raise rows.error(f"num_layers, {record['num_layers'].value!r}")
        try:
            return cls(**{each.name: record[each.name].value for each in fields(cls)})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{record.source}: {error}") from None


class T5(nn.Module):
    """Encoder and decoder of T5 version 1.0, with the names of parameters of published weights.

    The decoder attends to the vectors of a memory and to the encoded question. A memory vector of width H is repeated
    d_model / H times. Cross-attention has no positions, so the order of memory and question does not matter.

    Args:
        config: Sizes.

    Source:
        Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", JMLR 2020.
        The memory beside the question: Bärmann, Waibel and Asfour, "Deep Episodic Memory for Verbalization of Robot
        Experience", RA-L 2021.
    """

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = Stack(config, is_decoder=False)
        self.decoder = Stack(config, is_decoder=True)
        self._draw_weights()

    def _draw_weights(self) -> None:
        """Draw weights as T5 does: attention has no division by the root of the width, so queries start smaller."""
        config = self.config
        nn.init.normal_(self.shared.weight)
        for module in self.modules():
            if isinstance(module, T5Attention):
                nn.init.normal_(module.q.weight, std=(config.d_model * config.d_kv) ** -0.5)
                for linear in (module.k, module.v):
                    nn.init.normal_(linear.weight, std=config.d_model**-0.5)
                nn.init.normal_(module.o.weight, std=(config.num_heads * config.d_kv) ** -0.5)
                if module.has_bias:
                    nn.init.normal_(module.relative_attention_bias.weight, std=config.d_model**-0.5)
            elif isinstance(module, T5FeedForward):
                nn.init.normal_(module.wi.weight, std=config.d_model**-0.5)
                nn.init.normal_(module.wo.weight, std=config.d_ff**-0.5)

    def encode(self, question: Tensor) -> Tensor:
        """Encode a question.

        Args:
            question: int64, (B, Q); padded with 0.

        Returns:
            float, (B, Q, d_model).
        """
        return self.encoder(self.shared(question), question != PAD)

    def join(
        self, encoded: Tensor, valid: Tensor, vectors: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Join a memory and an encoded question.

        Args:
            encoded: float, (B, Q, d_model).
            valid: bool, (B, Q); False where the question is padded.
            vectors: float, (B, M, H); the memory; H must divide d_model. None for none.
            mask: bool, (B, M); which vectors exist. None for all.

        Returns:
            float, (B, M + Q, d_model), and bool, (B, M + Q): what the decoder attends to.

        Raises:
            ValueError: H does not divide d_model.
        """
        if vectors is None:
            return encoded, valid
        width = self.config.d_model
        check_tiles(width, vectors.shape[-1])
        if mask is None:
            mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        tiled = vectors.repeat(1, 1, width // vectors.shape[-1]).to(encoded.dtype)
        return torch.cat([tiled, encoded], 1), torch.cat([mask, valid], 1)

    def decode(self, answer: Tensor, context: Tensor, valid: Tensor) -> Tensor:
        """Predict each token of an answer from those before it.

        Args:
            answer: int64, (B, T); ends with 1, then padded with 0.
            context: float, (B, C, d_model); see `join`.
            valid: bool, (B, C).

        Returns:
            Logits, float, (B, T, vocab_size).
        """
        before = F.pad(answer[:, :-1], (1, 0), value=PAD)
        return self._logits(self.decoder(self.shared(before), None, context, valid))

    def forward(
        self, question: Tensor, answer: Tensor, vectors: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Encode a question, and predict each token of its answer; see `join` and `decode`.

        Args:
            question: int64, (B, Q); padded with 0.
            answer: int64, (B, T); ends with 1, then padded with 0.
            vectors: As in `join`, and so is `mask`.
            mask: See `vectors`.

        Returns:
            Logits, float, (B, T, vocab_size).
        """
        return self.decode(answer, *self.join(self.encode(question), question != PAD, vectors, mask))

    def _logits(self, decoded: Tensor) -> Tensor:
        """Score tokens; the embedding is tied, so it is scaled down."""
        return F.linear(decoded * self.config.d_model**-0.5, self.shared.weight)

    @torch.no_grad()
    def write(self, context: Tensor, valid: Tensor, most_tokens: int = 48) -> Tensor:
        """Write the most likely token again and again, until the end of the answer.

        Args:
            context: float, (B, C, d_model); see `join`.
            valid: bool, (B, C).
            most_tokens: Most tokens of an answer; >= 1.

        Returns:
            int64, (B, T), T <= most_tokens; padded with 0 after the end.
        """
        check_int("most_tokens", most_tokens)
        token = torch.full((len(context), 1), PAD, device=context.device)
        written: list[Tensor] = []
        running = torch.ones_like(token, dtype=torch.bool)
        cache: list[dict[str, Tensor]] = [{} for _ in range(self.config.num_layers)]
        for _ in range(most_tokens):
            decoded = self.decoder(self.shared(token), None, context, valid, cache)
            token = torch.where(running, self._logits(decoded).argmax(-1), PAD)
            written.append(token)
            running = running & (token != EOS)
            if not running.any():
                break
        return torch.cat(written, 1)

    def load_published(self, folder: str | Path) -> None:
        """Load weights from config.json and model.safetensors, as Hugging Face has them.

        Args:
            folder: The folder; nothing is downloaded.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: The sizes differ, the file is broken, or tensors are missing, unexpected or of other shapes.
        """
        published = T5Config.read(folder)
        for each in fields(T5Config):
            wanted, found = getattr(self.config, each.name), getattr(published, each.name)
            if each.name != "dropout_rate" and wanted != found:
                raise ValueError(f"{folder}/config.json: {each.name} must be {wanted}, got {found}")
        file = Path(folder) / "model.safetensors"
        if not file.is_file():
            raise FileNotFoundError(f"no weights at {file}")
        try:
            tensors = {name: value for name, value in load_file(file).items() if name not in ALIASES}
        except SafetensorError as error:
            raise ValueError(f"{file}: {error}") from None
        own = self.state_dict()
        missing, unexpected = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
        if missing or unexpected:
            raise ValueError(f"{file}: missing tensors {missing}, unexpected tensors {unexpected}")
        for name, value in own.items():
            if value.shape != tensors[name].shape:
                shapes = f"{tuple(value.shape)}, got {tuple(tensors[name].shape)}"
                raise ValueError(f"{file}: {name} must have the shape {shapes}")
        self.load_state_dict(tensors)


def check_tiles(d_model: int, width: int) -> None:
    """Raise a ValueError unless memory vectors of a width fill d_model by repetition."""
    if d_model % width:
        raise ValueError(f"d_model must be a multiple of the width of memory vectors, {width}, got {d_model}")


class Stack(nn.Module):
    """Encoder or decoder: layers, and one table of relative positions, in the first layer.

    Args:
        config: Sizes.
        is_decoder: Whether a token attends to no later token, and to a context.
    """

    def __init__(self, config: T5Config, is_decoder: bool) -> None:
        super().__init__()
        self.is_decoder = is_decoder
        self.block = nn.ModuleList(Block(config, is_decoder, has_bias=i == 0) for i in range(config.num_layers))
        self.final_layer_norm = RMSNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        context: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: list[dict[str, Tensor]] | None = None,
    ) -> Tensor:
        """Run all layers; with `cache`, on one new token after those that the cache holds."""
        x = self.dropout(x)
        seen = cache[0]["self_k"].shape[2] if cache and cache[0] else 0
        first: Any = self.block[0].layer[0]  # type: ignore[index]
        bias = first.SelfAttention.position_bias(x.shape[1], seen + x.shape[1], self.is_decoder)
        if mask is not None:
            bias = bias.masked_fill(~mask[:, None, None], -torch.inf)
        others = (
            None
            if context_mask is None
            else torch.zeros_like(context_mask, dtype=x.dtype).masked_fill(~context_mask, -torch.inf)[:, None, None]
        )
        for i, block in enumerate(self.block):
            x = block(x, bias, context, others, None if cache is None else cache[i])
        return self.dropout(self.final_layer_norm(x))


class Block(nn.Module):
    """Layer: self-attention, in a decoder attention to the context, feed-forward block."""

    def __init__(self, config: T5Config, is_decoder: bool, has_bias: bool) -> None:
        super().__init__()
        parts: list[nn.Module] = [SelfAttentionLayer(config, has_bias, is_decoder)]
        if is_decoder:
            parts.append(CrossAttentionLayer(config))
        self.layer = nn.ModuleList([*parts, FeedForwardLayer(config)])

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        context: Tensor | None,
        context_bias: Tensor | None,
        cache: dict[str, Tensor] | None,
    ) -> Tensor:
        """Run the parts in turn."""
        x = self.layer[0](x, bias, cache)
        if len(self.layer) == 3:
            x = self.layer[1](x, context, context_bias, cache)
        return self.layer[-1](x)


class SelfAttentionLayer(nn.Module):
    """Pre-norm self-attention with a residual path."""

    def __init__(self, config: T5Config, has_bias: bool, is_decoder: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(config, has_bias, is_decoder)
        self.layer_norm = RMSNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Tensor, bias: Tensor, cache: dict[str, Tensor] | None) -> Tensor:
        """Attend to the tokens themselves, and to those of the cache."""
        normed = self.layer_norm(x)
        k, v = self.SelfAttention.keys_and_values(normed)
        if cache is not None:
            if "self_k" in cache:
                k, v = torch.cat([cache["self_k"], k], 2), torch.cat([cache["self_v"], v], 2)
            cache["self_k"], cache["self_v"] = k, v
        return x + self.dropout(self.SelfAttention(normed, k, v, bias))


class CrossAttentionLayer(nn.Module):
    """Pre-norm attention to a context with a residual path."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.EncDecAttention = T5Attention(config, has_bias=False, is_decoder=True)
        self.layer_norm = RMSNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Tensor, context: Tensor, bias: Tensor, cache: dict[str, Tensor] | None) -> Tensor:
        """Attend to the context, whose keys and values are computed once."""
        if cache is not None and "cross_k" in cache:
            k, v = cache["cross_k"], cache["cross_v"]
        else:
            k, v = self.EncDecAttention.keys_and_values(context)
            if cache is not None:
                cache["cross_k"], cache["cross_v"] = k, v
        return x + self.dropout(self.EncDecAttention(self.layer_norm(x), k, v, bias))


class FeedForwardLayer(nn.Module):
    """Pre-norm feed-forward block with a residual path."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.DenseReluDense = T5FeedForward(config)
        self.layer_norm = RMSNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Tensor) -> Tensor:
        """Add the block's output."""
        return x + self.dropout(self.DenseReluDense(self.layer_norm(x)))


class T5Attention(nn.Module):
    """Attention without a scale; in the first layer of a stack with relative positions."""

    def __init__(self, config: T5Config, has_bias: bool, is_decoder: bool) -> None:
        super().__init__()
        inner = config.num_heads * config.d_kv
        self.heads, self.has_bias, self.is_decoder = config.num_heads, has_bias, is_decoder
        self.dropout_rate = config.dropout_rate
        self.q, self.k, self.v = (nn.Linear(config.d_model, inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, config.d_model, bias=False)
        if has_bias:
            self.relative_attention_bias = nn.Embedding(BUCKETS, config.num_heads)

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, (B, heads, M, d_kv) each."""
        return self._split(self.k(x)), self._split(self.v(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        """Attend with scores q k + bias."""
        dropout = self.dropout_rate if self.training else 0.0
        out = F.scaled_dot_product_attention(
            self._split(self.q(x)), k, v, attn_mask=bias.to(x.dtype), dropout_p=dropout, scale=1.0
        )
        return self.o(out.transpose(1, 2).flatten(2))

    def position_bias(self, queries: int, keys: int, causal: bool) -> Tensor:
        """Bias of the last `queries` of `keys` positions, float (1, heads, queries, keys)."""
        device = self.relative_attention_bias.weight.device
        i = torch.arange(keys - queries, keys, device=device)[:, None]
        distance = torch.arange(keys, device=device) - i  # of the key from the query: negative in the past
        bias = self.relative_attention_bias(relative_buckets(distance, two_sided=not self.is_decoder))
        bias = bias.permute(2, 0, 1)[None]
        return bias.masked_fill(distance > 0, -torch.inf) if causal else bias


class T5FeedForward(nn.Module):
    """Two layers without bias, with ReLU between."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Tensor) -> Tensor:
        """Run both layers."""
        return self.wo(self.dropout(self.wi(x).relu()))


class RMSNorm(nn.Module):
    """Division by the root mean square, without a mean and without bias."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis, in float32."""
        scale = x.float().pow(2).mean(-1, keepdim=True).add(self.eps).rsqrt()
        return self.weight * (x * scale).to(self.weight.dtype)


def relative_buckets(distance: Tensor, *, two_sided: bool) -> Tensor:
    """Number distances between keys and queries: exact when near, logarithmic when far.

    Args:
        distance: int64; position of the key minus that of the query.
        two_sided: Whether keys after the query have numbers of their own; else all of them have number 0.

    Returns:
        int64, of the same shape; 0 to `BUCKETS` - 1.
    """
    count = BUCKETS // 2 if two_sided else BUCKETS
    offset = (distance > 0).long() * count if two_sided else torch.zeros_like(distance)
    far = distance.abs() if two_sided else (-distance).clamp(min=0)
    exact = count // 2
    ratio = torch.log(far.clamp(min=1).float() / exact) / math.log(FAR / exact)
    rough = (exact + (ratio * (count - exact)).long()).clamp(max=count - 1)
    return offset + torch.where(far < exact, far, rough)
