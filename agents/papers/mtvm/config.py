"""Settings of MTVM's network, its sizes, and its learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, choices_for


@dataclass(frozen=True, kw_only=True)
class MTVMConfig:
    """Settings of MTVM's network.

    Attributes:
        dim: Width of text and views; even, and a multiple of `heads`.
        inner: Hidden width of the feed-forward layers.
        heads: Heads of every attention.
        text_layers: Layers of self-attention over the text; >= 0.
        cross_layers: Layers in which text and views attend to each other; >= 1.
        text_positions: Largest number of tokens of a text.
        vision_positions: Largest number of views in a decision: tokens of the memory bank, candidates and STOP.
        critic_dim: Width of the critic's hidden layer.
        two_way: Whether the text attends to the views too.
        history: Memory of an episode. "activation" stores the action head's activation of each action taken,
            "observation" the image feature of its candidate; "state" is one recurrent vector in place of a memory
            bank.
        bank: Largest number of actions in the memory bank, the newest ones; 0 for none, None for all. An "activation"
            was computed while attending to older tokens, so it carries information of actions that have left the
            bank. An "observation" does not.
        memory_angle: Direction stored with an action: "pose" (absolute direction of the camera after the action) or
            "option" (direction of the candidate, relative to the camera before the action).
        detach_memory: Whether to stop gradients through the memory.
        language: Whether the text is read; otherwise every text is the same single token.
        dropout: Dropout rate of attention and hidden layers, in [0, 1).
        image_dropout: Dropout rate of image features and stored activations, in [0, 1).
        critic_dropout: Dropout rate of the critic's hidden layer, in [0, 1).

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range or unknown.

    Source:
        Lin et al., "Multimodal Transformer with Variable-length Memory for Vision-and-Language Navigation", 2022, and
        its release.
    """

    dim: int = 768
    inner: int = 3072
    heads: int = 12
    text_layers: int = 9
    cross_layers: int = 4
    text_positions: int = 512
    vision_positions: int = 512
    critic_dim: int = 512
    two_way: bool = True
    history: Literal["activation", "observation", "state"] = "activation"
    bank: int | None = None
    memory_angle: Literal["pose", "option"] = "pose"
    detach_memory: bool = False
    language: bool = True
    dropout: float = 0.1
    image_dropout: float = 0.4
    critic_dropout: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("dim", "inner", "heads", "cross_layers", "text_positions", "vision_positions", "critic_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        check_largest(vars(self))
        if self.text_layers < 0:
            raise ValueError(f"text_layers must be at least 0, got {self.text_layers}")
        if self.dim % self.heads or self.dim % 2:
            raise ValueError(f"dim must be even and a multiple of heads ({self.heads}), got {self.dim}")
        if self.bank is not None and self.bank < 0:
            raise ValueError(f"bank must be at least 0 or None, got {self.bank}")
        if self.history == "state" and self.bank is not None:
            raise ValueError(f"bank must be None with history 'state', which has no memory bank, got {self.bank}")
        if self.history == "state" or self.bank == 0:
            nothing = "history 'state'" if self.history == "state" else "bank 0"
            if self.memory_angle != "pose":
                raise ValueError(
                    f"memory_angle must be left out with {nothing}, which stores no actions, got {self.memory_angle!r}"
                )
            if self.history == "observation":
                raise ValueError("history must be left out with bank 0, which stores no actions, got 'observation'")
        if self.detach_memory and (self.bank == 0 or self.history == "observation"):
            raise ValueError(
                f"detach_memory must be False with bank {self.bank} and history {self.history!r}: "
                "no gradient flows through this memory"
            )
        for name in ("dropout", "image_dropout", "critic_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")


#: Size -> settings that differ from the paper's. Image features of width 64, 64, 256 and 2048 suit these sizes.
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "dim": 64,
        "inner": 128,
        "heads": 2,
        "text_layers": 1,
        "cross_layers": 1,
        "text_positions": 48,
        "vision_positions": 48,
    },
    "laptop": {
        "dim": 128,
        "inner": 256,
        "heads": 8,
        "text_layers": 1,
        "cross_layers": 2,
        "critic_dim": 64,
        "vision_positions": 80,
        "two_way": False,
        "dropout": 0.0,
        "image_dropout": 0.1,
        "critic_dropout": 0.0,
    },
    "small": {
        "dim": 256,
        "inner": 1024,
        "heads": 4,
        "text_layers": 3,
        "cross_layers": 2,
        "text_positions": 80,
        "vision_positions": 80,
    },
    "paper": {},
}


def mtvm_config(size: str | None, **changes: Any) -> MTVMConfig:
    """Make the settings of a size, with changes.

    Args:
        size: Name in `SIZES`; None if `changes` has every setting.
        **changes: Settings that differ from the size's.

    Raises:
        ValueError: The size or a setting is unknown or out of range; or there is a size although `changes` has every
            setting.
    """
    if size is not None and size not in SIZES:
        raise ValueError(f"unknown size {size!r}; {choices_for(size, SIZES)}")
    names = MTVMConfig.__dataclass_fields__
    for name in changes:
        if name not in names:
            raise ValueError(f"unknown setting {name!r} of MTVM; {choices_for(name, names)}")
    if (size is None) != (set(changes) == set(names)):
        raise ValueError(f"size must be None where network has every setting, and only there, got {size!r}")
    return MTVMConfig(**{**({} if size is None else SIZES[size]), **changes})


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings of `ImitationA2C`; the defaults are those of MTVM with PREVALENT's weights.

    Attributes:
        learning_rate: Learning rate of AdamW, > 0.
        warmup_updates: Updates over which it first rises linearly; >= 0. Without PREVALENT's weights, 1000 with a
            learning rate of 1e-4.
        final_learning_rate: Learning rate at the end of `learn`, reached linearly; >= 0. None for no decay.
        weight_decay: Decoupled weight decay of AdamW, >= 0.
        imitation_updates: Updates at the beginning with the imitation loss only; >= 0.
        imitation_weight: Weight of the imitation loss, >= 0.
        random_bank: Largest size of the memory bank, >= 1, if each update draws a size from 0 to this, all equally
            likely. The trained network then plays with any `policy.network.bank.size`; without a change it is None, no
            limit. None for no draw.
        gamma: Discount of the sampled rollouts, in [0, 1].
        value_coef: Coefficient of the value loss, >= 0.
        entropy_coef: Coefficient of the entropy, >= 0.
        word_drop: Probability that a word is dropped in the second pass of the consistency loss, in [0, 1). There is no
            second pass if both of its weights are 0.
        text_consistency: Weight of the inconsistency of the encoded text, once for a rollout; >= 0.
        cross_consistency: Weight of the inconsistency of text and views after the cross layers, mean over decisions;
            >= 0.
        consistency_axis: Axis of the softmax in both: over tokens, for each channel, or over channels.
        max_grad_norm: Largest norm of all gradients, the critic's too, > 0; larger gradients are scaled down.
        precision: Precision of the network in learning; "bfloat16" is torch's autocast.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        MTVM, section on implementation, and its release. The consistency weights are 6 and 2, as in the paper's
        ablation and in the release; its text has 0.6 and 0.2, an error.
    """

    learning_rate: float = 5e-6
    warmup_updates: int = 0
    final_learning_rate: float | None = None
    weight_decay: float = 0.01
    imitation_updates: int = 0
    imitation_weight: float = 0.2
    random_bank: int | None = None
    gamma: float = 0.9
    value_coef: float = 0.5
    entropy_coef: float = 0.01
    word_drop: float = 0.5
    text_consistency: float = 6.0
    cross_consistency: float = 2.0
    consistency_axis: Literal["token", "channel"] = "token"
    max_grad_norm: float = 40.0
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in (
            "warmup_updates",
            "weight_decay",
            "imitation_updates",
            "imitation_weight",
            "value_coef",
            "entropy_coef",
            "text_consistency",
            "cross_consistency",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.random_bank is not None and self.random_bank < 1:
            raise ValueError(f"random_bank must be at least 1 or None, got {self.random_bank}")
        if self.final_learning_rate is not None and self.final_learning_rate < 0:
            raise ValueError(f"final_learning_rate must be >= 0 or None, got {self.final_learning_rate}")
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma must be in [0, 1], got {self.gamma}")
        if not 0.0 <= self.word_drop < 1.0:  # at 1 every text would stay whole, see `drop_words`
            raise ValueError(f"word_drop must be in [0, 1), got {self.word_drop}")
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    @property
    def drops_words(self) -> bool:
        """True if there is a consistency loss."""
        return self.text_consistency > 0 or self.cross_consistency > 0

    def learning_rate_at(self, update: int, total: int) -> float:
        """Learning rate of update number `update` (from 0) of `total` updates."""
        return linear_schedule(self.learning_rate, self.final_learning_rate, self.warmup_updates, update, total)
