"""Network of MTVM: a decision attends to the text, the candidates and earlier decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor, nn

from memenvs.agents.memory import State
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.papers.mtvm.config import MTVMConfig
from memenvs.agents.papers.mtvm.layers import EPS, CrossLayer, Dropout, TextLayer
from memenvs.agents.papers.mtvm.memory_bank import MemoryBank
from memenvs.vln.features.base import ANGLE_SIZE

#: Keys and values of a text for each cross layer, float, (B, heads, L, dim / heads) each.
TextKeyValues = Sequence[tuple[Tensor, Tensor]]
#: Types of views: candidates of the current decision, and tokens of the memory bank.
CANDIDATE, MEMORY_TOKEN = 0, 1
#: Standard deviation of initial weights, word embeddings and word positions, as in BERT.
INIT_STD = 0.02
#: Root mean square of initial view positions. It is larger since views are normalised before the positions are added.
VIEW_POSITION_RMS = 0.3


@dataclass(frozen=True)
class EncodedViews:
    """Visual tokens of a decision: M tokens of the memory bank, then K candidates; V = M + K.

    Attributes:
        embedded: float, (B, V, dim); the tokens.
        mask: bool, (B, V); False for padding.
        available_actions: int64, (K,); actions that at least one row has, in ascending order.
        n_actions: Number A of actions of the environment.
    """

    embedded: Tensor
    mask: Tensor
    available_actions: Tensor
    n_actions: int


@dataclass(frozen=True)
class DecisionOutput:
    """Output of the network for one decision.

    Attributes:
        logits: float, (B, A); -inf for actions that a row does not have.
        value: float, (B,).
        activations: float, (B, K, image_dim); activations of the action head for `views.available_actions`. That of the
            action taken goes to the memory bank.
        vision: float, (B, V, dim); views after the cross layers.
        views: Views before the cross layers.
    """

    logits: Tensor
    value: Tensor
    activations: Tensor
    vision: Tensor
    views: EncodedViews


class MTVM(nn.Module):
    """Text encoder, cross-modal layers between text and views, action head and critic.

    A decision takes three steps:

    1. `observe` encodes the text at the start of an episode; later it adds the last action's token to the memory bank.
    2. `encode_views` and `forward` compute logits and value.
    3. `record_action` stores the token of the action that was taken, until the next `observe`.

    With `config.history` "state", one recurrent vector takes the place of the memory bank.

    Args:
        config: Sizes and switches.
        vocab_size: Number of tokens of the vocabulary.
        image_dim: Width of image features, and of the action head.

    Attributes:
        bank: Memory bank of past actions.

    Source:
        MTVM, section 3. The critic reads the mean over the text's tokens plus that over the views, without padding,
        so that a row does not depend on the others in its batch. (The release's mean includes padding, and its
        weighted sum needs texts of 80 tokens.)
    """

    def __init__(self, config: MTVMConfig, vocab_size: int, image_dim: int) -> None:
        super().__init__()
        self.config = config
        self.image_dim = image_dim
        dim, inner, heads = config.dim, config.inner, config.heads
        self.words = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.word_positions = nn.Embedding(config.text_positions, dim)
        self.word_types = nn.Embedding(2, dim)  # BERT has two; only the first is used here
        self.word_norm = nn.LayerNorm(dim, eps=EPS)
        self.text_layers = nn.ModuleList(
            TextLayer(dim, inner, heads, config.dropout) for _ in range(config.text_layers)
        )
        self.see = nn.Linear(image_dim + ANGLE_SIZE, dim)  # projection of views
        self.see_norm = nn.LayerNorm(dim, eps=EPS)
        self.view_positions = nn.Embedding(config.vision_positions, dim)
        self.view_types = nn.Embedding(2, dim)
        self.view_norm = nn.LayerNorm(dim, eps=EPS)
        self.cross_layers = nn.ModuleList(
            CrossLayer(dim, inner, heads, config.dropout, config.two_way) for _ in range(config.cross_layers)
        )
        self.pooler = nn.Linear(dim, dim)
        self.dropout = Dropout(config.dropout)
        self.image_dropout = Dropout(config.image_dropout)
        self._initialise_as_bert()
        # the action head and the critic keep PyTorch's initial weights
        self.act = nn.Linear(dim, image_dim)  # hidden layer of the action head
        self.choose = nn.Linear(image_dim, 1)  # score of a candidate
        self.critic = nn.Sequential(
            nn.Linear(dim, config.critic_dim),
            nn.ReLU(),
            Dropout(config.critic_dropout),
            nn.Linear(config.critic_dim, 1),
        )
        self.bank = MemoryBank(image_dim + ANGLE_SIZE, config.bank)

    @torch.no_grad()
    def _initialise_as_bert(self) -> None:
        """Initialise the layers made so far as BERT does, except for `see` and the positions."""
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INIT_STD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        # The candidate STOP is a row of zeros. With a zero bias, its layer normalisation would have gradients of 1e6.
        nn.init.normal_(self.see.bias, std=0.1)
        self.words.weight[0] = 0.0
        # Sinusoidal positions: what is learned at one position transfers to its neighbours, so to longer sequences.
        for positions, rms in ((self.word_positions, INIT_STD), (self.view_positions, VIEW_POSITION_RMS)):
            count, dim = positions.weight.shape
            # a sinusoid has a root mean square of 1 / sqrt(2)
            positions.weight.copy_(rms * math.sqrt(2.0) * sinusoid(torch.arange(count), dim))

    def instruction_tokens(self, observations: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the tokens of the texts of observations, without padding that all rows share.

        Returns:
            Tokens, int64, (B, L), and a mask, bool, (B, L), with L the length of the longest text. Without language,
            one blank token each.
        """
        tokens = observations["instruction"].long()
        mask = observations["instruction_mask"] > 0
        if not self.config.language:
            return torch.zeros_like(tokens[:, :1]), torch.ones_like(mask[:, :1])
        length = int(mask.any(0).nonzero().max()) + 1
        return tokens[:, :length], mask[:, :length]

    def encode_text(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Encode texts; once an episode.

        Args:
            tokens: int64, (B, L).
            mask: bool, (B, L); True for tokens that can be attended to. A masked token still attends to the others.

        Returns:
            float, (B, L, dim).
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.word_positions(positions) + self.word_types.weight[0]
        x = self.dropout(self.word_norm(x))  # (B, L, dim)
        for layer in self.text_layers:
            x = layer(x, mask)
        return x

    def text_keys_values(self, text: Tensor) -> TextKeyValues:
        """Compute keys and values of a text for all cross layers; once an episode.

        This is possible where the text does not attend to the views and so is the same in all layers and decisions.

        Args:
            text: float, (B, L, dim); from `encode_text`.

        Returns:
            One pair for each cross layer; an empty list if `config.two_way`.
        """
        if self.config.two_way:
            return []
        return [layer.cross.keys_values(text) for layer in self.cross_layers if isinstance(layer, CrossLayer)]

    def initial_state(self, batch_size: int) -> State:
        """Make a state without text and without past actions."""
        like = self.see.weight
        state = {
            "encoded_text": like.new_zeros(batch_size, 0, self.config.dim),
            "text_mask": torch.zeros(batch_size, 0, dtype=torch.bool, device=like.device),
        }
        if self.config.history == "state":
            return state | {"recurrent_state": like.new_zeros(batch_size, self.config.dim)}
        pending = {"pending_token": like.new_zeros(batch_size, self.bank.width)}
        return state | self.bank.initial_state(batch_size, like) | pending

    def observe(self, observations: dict[str, Tensor], state: State, episode_start: Tensor) -> State:
        """Update the state before a decision: the text of new episodes, else the last action.

        Args:
            observations: Observations of B environments.
            state: State from `initial_state` or `record_action`.
            episode_start: bool, (B,); there the text is encoded and past actions are dropped.

        Returns:
            The new state.
        """
        config = self.config
        state = dict(state)
        if bool(episode_start.any()):
            rows = episode_start.nonzero()[:, 0]
            tokens, mask = self.instruction_tokens(
                {key: observations[key][rows] for key in ("instruction", "instruction_mask")}
            )
            text = self.encode_text(tokens, mask)
            state["encoded_text"] = _replace_rows(state["encoded_text"], rows, text)
            state["text_mask"] = _replace_rows(state["text_mask"], rows, mask)
            if config.history == "state":
                initial = _masked_mean(text, mask)  # (R, dim)
                state["recurrent_state"] = state["recurrent_state"].to(initial.dtype).index_put((rows,), initial)
        if config.history != "state":
            token = state["pending_token"]
            if config.memory_angle == "pose":
                # Only now, after the action, is the direction known. Its 4 numbers are repeated to the width of angles.
                pose = observations["direction"].to(token.dtype).repeat(1, ANGLE_SIZE // 4)  # (B, 128)
                token = torch.cat([token[:, : self.image_dim], pose], 1)
            bank = {"tokens": state["tokens"].to(token.dtype), "count": state["count"]}
            state |= self.bank.step(token, episode_start, bank)
        return state

    def record_action(
        self, observations: dict[str, Tensor], output: DecisionOutput, actions: Tensor, state: State
    ) -> State:
        """Store the actions that were taken; the next `observe` moves them to the memory bank.

        Args:
            observations: Observations of the decision.
            output: Output of the decision.
            actions: int64, (B,).
            state: State from `observe`.

        Returns:
            The new state.
        """
        if self.config.history == "state":
            recurrent_state = output.vision[:, 0]  # the recurrent vector after the cross layers
            return state | {
                "recurrent_state": recurrent_state.detach() if self.config.detach_memory else recurrent_state
            }
        rows = torch.arange(len(actions), device=actions.device)
        option = observations["candidates"][rows, actions]  # (B, image_dim + 128)
        if self.config.history == "activation":
            column = torch.searchsorted(output.views.available_actions, actions)  # index of each action among the K
            image = output.activations[rows, column]
        else:
            image = option[:, : self.image_dim]
        token = torch.cat([image, option[:, self.image_dim :].to(image.dtype)], 1)  # (B, image_dim + 128)
        return state | {"pending_token": token.detach() if self.config.detach_memory else token}

    def encode_views(self, observations: dict[str, Tensor], state: State) -> EncodedViews:
        """Embed the tokens of the memory bank (or the recurrent state) and the candidates.

        Args:
            observations: With `candidates`, float, (B, A, image_dim + 128), and `candidate_mask`, (B, A).
            state: State from `observe`.

        Raises:
            ValueError: There are more views than `vision_positions`.
        """
        action_mask = observations["candidate_mask"] > 0
        available = action_mask.any(0).nonzero()[:, 0]  # (K,); the others are padding in all rows
        mask = action_mask[:, available]
        candidates = observations["candidates"][:, available]  # (B, K, image_dim + 128)
        batch = len(mask)
        if self.config.history == "state":
            embedded = self._embed(candidates)
            x = torch.cat([state["recurrent_state"][:, None].to(embedded.dtype), embedded], 1)
            count = torch.ones(batch, dtype=torch.int64, device=x.device)
        else:
            tokens = state["tokens"]
            x = self._embed(torch.cat([tokens, candidates.to(tokens.dtype)], 1))  # (B, V, dim)
            count = state["count"]
        # All A actions count, not only the K available ones, so that the limit depends on the environment alone.
        needed = int(count.max()) + action_mask.shape[1]
        if needed > self.config.vision_positions:
            raise ValueError(
                f"vision_positions must be at least {needed}, the tokens of the memory bank and the actions, "
                f"got {self.config.vision_positions}"
            )
        slots = torch.arange(x.shape[1] - len(available), device=x.device).expand(batch, -1)  # (B, M)
        # candidates follow the tokens of their own row, without gaps
        candidate_positions = count[:, None] + (mask.cumsum(1) - 1).clamp(min=0)  # (B, K)
        positions = torch.cat([slots, candidate_positions], 1)
        types = torch.cat([torch.full_like(slots, MEMORY_TOKEN), torch.full_like(candidate_positions, CANDIDATE)], 1)
        x = self.view_norm(x + self.view_positions(positions) + self.view_types(types))
        return EncodedViews(x, torch.cat([slots < count[:, None], mask], 1), available, action_mask.shape[1])

    def cross_attend(
        self, text: Tensor, text_mask: Tensor, views: EncodedViews, text_keys_values: TextKeyValues = ()
    ) -> tuple[Tensor, Tensor]:
        """Apply the cross-modal layers; args as in `forward`.

        Returns:
            Text, float, (B, L, dim), and views, float, (B, V, dim).
        """
        vision = views.embedded
        for layer, keys_values in zip_longest(self.cross_layers, text_keys_values):  # None if not computed before
            text, vision = layer(text, text_mask, vision, views.mask, keys_values)
        return text, vision

    def decide(self, text: Tensor, text_mask: Tensor, vision: Tensor, views: EncodedViews) -> DecisionOutput:
        """Apply the action head and the critic.

        Args:
            text: float, (B, L, dim); after the cross layers.
            text_mask: bool, (B, L); False for padding.
            vision: float, (B, V, dim); after the cross layers.
            views: Views before the cross layers.
        """
        count = len(views.available_actions)
        activations = torch.tanh(self.act(vision[:, -count:]))  # (B, K, image_dim)
        scores = self.choose(activations)[..., 0].masked_fill(~views.mask[:, -count:], -torch.inf)  # (B, K)
        logits = scores.new_full((len(scores), views.n_actions), -torch.inf)
        logits = logits.index_copy(1, views.available_actions, scores)  # (B, A)
        pooled = torch.tanh(self.pooler(_masked_mean(text, text_mask) + _masked_mean(vision, views.mask)))  # (B, dim)
        return DecisionOutput(logits, self.critic(pooled)[..., 0], activations, vision, views)

    def forward(
        self, text: Tensor, text_mask: Tensor, views: EncodedViews, text_keys_values: TextKeyValues = ()
    ) -> DecisionOutput:
        """Make a decision.

        Args:
            text: float, (B, L, dim); from `encode_text`.
            text_mask: bool, (B, L); False for padding.
            views: Views from `encode_views`.
            text_keys_values: Result of `text_keys_values(text)`; empty to compute it here.
        """
        text, vision = self.cross_attend(text, text_mask, views, text_keys_values)
        return self.decide(text, text_mask, vision, views)

    def word_attention(self, text: Tensor, text_mask: Tensor, views: EncodedViews) -> Tensor:
        """Compute the attention of views to words in the last cross layer; args as in `forward`.

        Returns:
            float, (B, V, L); mean over heads; sums to 1 over L.
        """
        *first, last = self.cross_layers
        vision = views.embedded
        for layer in first:
            text, vision = layer(text, text_mask, vision, views.mask)
        assert isinstance(last, CrossLayer)
        return last.cross.attention_weights(vision, text, text_mask)

    def _embed(self, tokens: Tensor) -> Tensor:
        """Project views, float, (B, V, image_dim + 128) -> (B, V, dim); the angles are never dropped."""
        tokens = torch.cat([self.image_dropout(tokens[..., : self.image_dim]), tokens[..., self.image_dim :]], -1)
        return self.dropout(self.see_norm(self.see(tokens)))


def _replace_rows(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """Replace some rows: (B, L, ...) and (R, K, ...) to (B, max(L, K), ...), zeros where a row is shorter."""
    if len(rows) == len(old):
        return new
    result = new.new_zeros(len(old), max(old.shape[1], new.shape[1]), *new.shape[2:])
    result[:, : old.shape[1]] = old
    result[rows] = 0
    result[rows, : new.shape[1]] = new
    return result


def _masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Average over unmasked entries of L, float, (B, L, D) -> (B, D)."""
    weights = mask.to(x.dtype)
    return (x * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)
