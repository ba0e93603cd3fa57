"""MTVM: a transformer that lets every decision look at the text, at what can be chosen, and at all it chose before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor, nn

from memenvs.agents.memory import State
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.mtvm.config import MTVMConfig
from memenvs.agents.mtvm.layers import EPS, CrossLayer, Dropout, TextLayer
from memenvs.agents.mtvm.memory_bank import MemoryBank
from memenvs.vln.features.base import ANGLE_SIZE

TextKeyValues = Sequence[tuple[Tensor, Tensor]]
REMEMBERED, PRESENT = 1, 0
"""Types of what is looked at."""
WEIGHT_SIZE = 0.02
"""Of weights, words and positions of words when learning begins (root of the mean square), as in BERT."""
POSITION_SIZE = 0.3
"""Of the positions of views when learning begins, beside views of size 1."""


@dataclass(frozen=True)
class EncodedViews:
    """What an agent looks at in a decision, remembered things first; V = M + K.

    Attributes:
        embedded: float, (B, V, dim).
        mask: bool, (B, V); what there is.
        available_actions: int64, (K,); actions that at least one of the rows has, in order: the last K of the views.
        n_actions: Actions A that there can be.
    """

    embedded: Tensor
    mask: Tensor
    available_actions: Tensor
    n_actions: int


@dataclass(frozen=True)
class DecisionOutput:
    """What a decision gave.

    Attributes:
        logits: float, (B, A); -inf where there is no such action.
        value: float, (B,).
        activations: float, (B, K, image); of the action head for the actions `views.available_actions`, which is what is remembered.
        vision: float, (B, V, dim); the views after the cross layers.
        views: What was looked at.
    """

    logits: Tensor
    value: Tensor
    activations: Tensor
    vision: Tensor
    views: EncodedViews


class MTVM(nn.Module):
    """The network: text encoder, cross layers, action head, critic.

    Args:
        config: Sizes and switches.
        vocabulary: Tokens that there are.
        image: Width of image features, and so of the action head.

    Attributes:
        bank: What keeps tokens of moves.

    Source:
        Section 3 of the article. The value is of the mean over the text's tokens and over the views that there are, so that neither padding nor
        other rows change it (the release's mean counts padding, and its weighted sum needs texts of 80 tokens).
    """

    def __init__(self, config: MTVMConfig, vocabulary: int, image: int) -> None:
        super().__init__()
        self.config, self.image = config, image
        dim, inner, heads = config.dim, config.inner, config.heads
        self.words = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.word_positions = nn.Embedding(config.text_positions, dim)
        self.word_types = nn.Embedding(2, dim)  # BERT has two; ours are all 0
        self.word_norm = nn.LayerNorm(dim, eps=EPS)
        self.text_layers = nn.ModuleList(
            TextLayer(dim, inner, heads, config.dropout) for _ in range(config.text_layers)
        )
        self.see = nn.Linear(image + ANGLE_SIZE, dim)
        self.see_norm = nn.LayerNorm(dim, eps=EPS)
        self.view_positions = nn.Embedding(config.vision_positions, dim)
        self.view_types = nn.Embedding(2, dim)
        self.view_norm = nn.LayerNorm(dim, eps=EPS)
        self.cross_layers = nn.ModuleList(
            CrossLayer(dim, inner, heads, config.dropout, config.two_way) for _ in range(config.cross_layers)
        )
        self.pooler = nn.Linear(dim, dim)
        self.dropout, self.image_dropout = Dropout(config.dropout), Dropout(config.image_dropout)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=WEIGHT_SIZE)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        # stopping is a row of zeros: of a bias of zeros its normalisation would have gradients of 1e6
        nn.init.normal_(self.see.bias, std=0.1)
        with torch.no_grad():
            self.words.weight[0] = 0.0
            # what is learned of one place in a sequence then holds of its neighbours, to which longer texts and ways come
            for positions, size in ((self.word_positions, WEIGHT_SIZE), (self.view_positions, POSITION_SIZE)):
                positions.weight.copy_(size * math.sqrt(2.0) * sinusoid(torch.arange(len(positions.weight)), dim))
        self.act, self.choose = (
            nn.Linear(dim, image),
            nn.Linear(image, 1),
        )  # these and the critic begin as PyTorch has it
        self.critic = nn.Sequential(
            nn.Linear(dim, config.critic_dim),
            nn.ReLU(),
            Dropout(config.critic_dropout),
            nn.Linear(config.critic_dim, 1),
        )
        self.bank = MemoryBank(image + ANGLE_SIZE, config.bank)

    # ------------------------------------------------------------------ text

    def instruction_tokens(self, observations: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Tokens int64 (B, L) of observations, and bool (B, L) which there are; L is the longest text's; without language one blank token each."""
        tokens, mask = observations["instruction"].long(), observations["instruction_mask"] > 0
        if not self.config.language:
            return torch.zeros_like(tokens[:, :1]), torch.ones_like(mask[:, :1])
        length = int(mask.any(0).nonzero().max()) + 1
        return tokens[:, :length], mask[:, :length]

    def encode_text(self, tokens: Tensor, keys: Tensor) -> Tensor:
        """Reads texts, once for an episode.

        Args:
            tokens: int64, (B, L).
            keys: bool, (B, L); tokens that others can hear; a dropped one still hears them.

        Returns:
            float, (B, L, dim).
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.word_positions(positions) + self.word_types.weight[0]
        x = self.dropout(self.word_norm(x))
        for layer in self.text_layers:
            x = layer(x, keys)
        return x

    def text_keys_values(self, text: Tensor) -> TextKeyValues:
        """What the views of each layer hear of a text that does not hear them, prepared once for an episode; nothing where the text hears them too.

        Args:
            text: float, (B, L, dim); as `encode_text` gave it.

        Returns:
            For each layer keys and values, float (B, heads, L, dim / heads).
        """
        if self.config.two_way:
            return []
        return [layer.cross.keys_values(text) for layer in self.cross_layers if isinstance(layer, CrossLayer)]

    # ------------------------------------------------------------------ history

    def initial_state(self, batch_size: int) -> State:
        """Nothing read, nothing remembered."""
        like, config = self.see.weight, self.config
        state = {
            "encoded_text": like.new_zeros(batch_size, 0, config.dim),
            "text_mask": torch.zeros(batch_size, 0, dtype=torch.bool, device=like.device),
        }
        if config.history == "state":
            return state | {"recurrent_state": like.new_zeros(batch_size, config.dim)}
        return (
            state
            | self.bank.initial_state(batch_size, like)
            | {"pending_token": like.new_zeros(batch_size, self.bank.width)}
        )

    def observe(self, observations: dict[str, Tensor], state: State, episode_start: Tensor) -> State:
        """Takes in what came since the last decision: the move before, or a new text.

        Args:
            observations: Of B environments.
            state: From `initial_state` or `record_action`.
            episode_start: bool, (B,); where the text is read and the past is forgotten.
        """
        config, state = self.config, dict(state)
        if bool(episode_start.any()):
            rows = episode_start.nonzero()[:, 0]
            tokens, words = self.instruction_tokens(
                {key: observations[key][rows] for key in ("instruction", "instruction_mask")}
            )
            text = self.encode_text(tokens, words)
            state["encoded_text"] = _replaced(state["encoded_text"], rows, text)
            state["text_mask"] = _replaced(state["text_mask"], rows, words)
            if config.history == "state":
                first = _mean(text, words)
                state["recurrent_state"] = state["recurrent_state"].to(first.dtype).index_put((rows,), first)
        if config.history != "state":
            token = state["pending_token"]
            if config.memory_angle == "pose":
                pose = observations["direction"].to(token.dtype).repeat(1, ANGLE_SIZE // 4)
                token = torch.cat([token[:, : self.image], pose], 1)
            bank = {"tokens": state["tokens"].to(token.dtype), "count": state["count"]}
            state |= self.bank.step(token, episode_start, bank)
        return state

    def record_action(
        self, observations: dict[str, Tensor], output: DecisionOutput, actions: Tensor, state: State
    ) -> State:
        """The state with the move that was chosen.

        Args:
            observations: Those of the decision.
            output: What it gave.
            actions: int64, (B,).
            state: From `observe`.
        """
        if self.config.history == "state":
            after = output.vision[:, 0]
            return state | {"recurrent_state": after.detach() if self.config.detach_memory else after}
        rows = torch.arange(len(actions), device=actions.device)
        option = observations["candidates"][rows, actions]
        if self.config.history == "activation":
            seen = output.activations[rows, torch.searchsorted(output.views.available_actions, actions)]
        else:
            seen = option[:, : self.image]
        token = torch.cat([seen, option[:, self.image :].to(seen.dtype)], 1)
        return state | {"pending_token": token.detach() if self.config.detach_memory else token}

    # ------------------------------------------------------------------ deciding

    def encode_views(self, observations: dict[str, Tensor], state: State) -> EncodedViews:
        """What is remembered and what can be chosen, embedded.

        Args:
            observations: `candidates` float (B, A, image + 128), `candidate_mask` (B, A).
            state: From `observe`.

        Raises:
            ValueError: There is more to look at than `vision_positions`.
        """
        mask = observations["candidate_mask"] > 0
        available = mask.any(0).nonzero()[:, 0]  # the others are padding in all rows
        candidates = observations["candidates"][:, available]
        batch, present = len(mask), (mask[:, available].cumsum(1) - 1).clamp(min=0)  # each row counts its own
        if self.config.history == "state":
            seen = self._embedded(candidates)
            x = torch.cat([state["recurrent_state"][:, None].to(seen.dtype), seen], 1)
            count = torch.ones(batch, dtype=torch.int64, device=x.device)
        else:
            tokens = state["tokens"]
            x, count = self._embedded(torch.cat([tokens, candidates.to(tokens.dtype)], 1)), state["count"]
        remembered = torch.arange(x.shape[1] - len(available), device=x.device).expand(batch, -1)
        needed = int(count.max()) + mask.shape[1]
        if needed > self.config.vision_positions:
            raise ValueError(
                f"vision_positions must be at least {needed}, the moves remembered and the actions, got {self.config.vision_positions}"
            )
        positions = torch.cat([remembered, count[:, None] + present], 1)
        types = torch.cat([torch.full_like(remembered, REMEMBERED), torch.full_like(present, PRESENT)], 1)
        x = self.view_norm(x + self.view_positions(positions) + self.view_types(types))
        keys = torch.cat([remembered < count[:, None], mask[:, available]], 1)
        return EncodedViews(x, keys, available, mask.shape[1])

    def cross_attend(
        self, text: Tensor, text_mask: Tensor, views: EncodedViews, text_keys_values: TextKeyValues = ()
    ) -> tuple[Tensor, Tensor]:
        """Text, float (B, L, dim), and views, float (B, V, dim), after the cross layers; see `forward`."""
        vision = views.embedded
        for layer, known in zip_longest(self.cross_layers, text_keys_values):
            text, vision = layer(text, text_mask, vision, views.mask, known)
        return text, vision

    def decide(self, text: Tensor, words: Tensor, vision: Tensor, views: EncodedViews) -> DecisionOutput:
        """The decision that follows from what the cross layers gave.

        Args:
            text: float, (B, L, dim); after the cross layers.
            words: bool, (B, L); tokens that there are.
            vision: float, (B, V, dim); after the cross layers.
            views: What they started from.
        """
        count = len(views.available_actions)
        activations = torch.tanh(self.act(vision[:, -count:]))
        shown = self.choose(activations)[..., 0].masked_fill(~views.mask[:, -count:], -torch.inf)
        logits = shown.new_full((len(shown), views.n_actions), -torch.inf).index_copy(1, views.available_actions, shown)
        pooled = torch.tanh(self.pooler(_mean(text, words) + _mean(vision, views.mask)))
        return DecisionOutput(logits, self.critic(pooled)[..., 0], activations, vision, views)

    def forward(
        self, text: Tensor, words: Tensor, views: EncodedViews, text_keys_values: TextKeyValues = ()
    ) -> DecisionOutput:
        """Makes a decision with all words.

        Args:
            text: float, (B, L, dim); as `encode_text` gave it.
            words: bool, (B, L); tokens that there are.
            views: What is looked at.
            text_keys_values: `text_keys_values(text)` or, where that is not known, nothing.
        """
        text, vision = self.cross_attend(text, words, views, text_keys_values)
        return self.decide(text, words, vision, views)

    def word_attention(self, text: Tensor, words: Tensor, views: EncodedViews) -> Tensor:
        """How much each view hears of each word in the last cross layer, a mean over heads.

        Args:
            text: float, (B, L, dim); as `encode_text` gave it.
            words: bool, (B, L); tokens that there are.
            views: What is looked at.

        Returns:
            float, (B, V, L); adds up to 1 over L.
        """
        *first, last = self.cross_layers
        vision = views.embedded
        for layer in first:
            text, vision = layer(text, words, vision, views.mask)
        assert isinstance(last, CrossLayer)
        return last.cross.attention_weights(vision, text, words)

    def _embedded(self, tokens: Tensor) -> Tensor:
        """Views as vectors, float (B, V, image + 128) to (B, V, dim)."""
        tokens = torch.cat([self.image_dropout(tokens[..., : self.image]), tokens[..., self.image :]], -1)
        return self.dropout(self.see_norm(self.see(tokens)))


def _replaced(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """Some rows replaced by others: (B, L, ...) and (R, K, ...) to (B, max(L, K), ...), zeros where a row is shorter."""
    if len(rows) == len(old):
        return new
    found = new.new_zeros(len(old), max(old.shape[1], new.shape[1]), *new.shape[2:])
    found[:, : old.shape[1]] = old
    found[rows] = 0
    found[rows, : new.shape[1]] = new
    return found


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over those of L that there are, float (B, L, D) to (B, D)."""
    weights = mask.to(x.dtype)
    return (x * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)
