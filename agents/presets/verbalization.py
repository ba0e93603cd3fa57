"""Preset of question answering about a robot's days (episodic memory verbalization)."""

from __future__ import annotations

from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES, Preset, Variant

#: All kinds of questions; as in the environment, which is not imported here.
KINDS = ("clock", "action", "problems", "past_time", "location", "object", "duration", "summary", "how_often")
TEST_LENGTHS = (1, 2, 3, 5, 10)
#: Small enough that a history of five episodes, of about 10 key frames each, does not fit.
_QUEUES: dict[str, Any] = {"dim": 64, "layers": 2, "heads": 4, "mlp_dim": 128, **COMPRESSIVE_QUEUES}
_LSTM = SMALL["lstm-o1"]
_AUTO_ENCODER: dict[str, Any] = {"policy.reconstruction_weight": 0.2}
#: Three times as many batches, with a lower learning rate and a wider head, which were better in validation.
_LONGER: dict[str, Any] = {"total_steps": 9000, "questions.learning_rate": 2e-3, "policy.head_dim": 192}
#: For a GPU: these batches take hours of a core. Twice as many questions to draw from, as nothing is renamed in words.
_LONGER_TEXT: dict[str, Any] = {
    "total_steps": 1700,
    "questions.batch_size": 32,
    "questions.learning_rate": 1.5e-3,
    "policy.questions": 32,
    "policy.curriculum": [200, 400, 700],
    "env_kwargs.questions": 32,
}


def _memory(about: str, name: str, settings: dict[str, Any]) -> Variant:
    return Variant(about, {"policy.memory": name, "policy.memory_kwargs": settings})


def _lstm(about: str, name: str, **settings: int) -> Variant:
    """An LSTM, which learns far less at the rate of the other memories."""
    memory = {"policy.memory": name, "policy.memory_kwargs": {**_LSTM, **settings}}
    return Variant(about, {**memory, "questions.learning_rate": 2e-3})


def _text(about: str, changes: dict[str, Any]) -> Variant:
    """Answers in words, fewer in a batch, since each takes as long as many structured ones."""
    words = {
        "policy.answers": "text",
        "policy.questions": 8,
        "questions.batch_size": 16,
        "questions.learning_rate": 1e-3,
        "questions.validation_episodes": 50,
    }
    return Variant(f"answers in words; {about}", {**words, **changes})


_VARIANTS = {
    "text-only": _memory("the question alone", "none", {}),
    "lstm-o1": _lstm("the newest 21 outputs of an LSTM", "lstm-o1", capacity=21),
    "lstm-o1-26": _lstm("the newest 26 outputs of an LSTM", "lstm-o1", capacity=26),
    "lstm-on": _lstm("all outputs of an LSTM: no memory of constant size", "lstm-on"),
    "ct": _memory("without a long-term state, 20 vectors", "ct", _QUEUES),
    "ct-26": _memory("without a long-term state, 26 vectors", "ct", {**_QUEUES, "compressed_lengths": [10]}),
    "ct-lt-learned": _memory("a learned query for what is written, 21 vectors", "ct-lt-learned", _QUEUES),
    "ml-ct-lt": _memory(
        "two levels of compression, 21 vectors",
        "ml-ct-lt",
        {**_QUEUES, "compressed_lengths": [2, 2], "ratios": [4, 2]},
    ),
    "ct-slots": _memory("four long-term states that compete, 24 vectors", "ct-slots", _QUEUES),
    "ct-log": _memory("three levels of two vectors that merge, 26 vectors", "ct-log", _QUEUES),
    "auto-encoder": Variant("an episode auto-encoder is learned beside", _AUTO_ENCODER),
    "auto-encoder-first": Variant(
        "the auto-encoder is learned first, alone", {**_AUTO_ENCODER, "policy.pretraining_steps": 300}
    ),
    "auto-encoder-frozen": Variant(
        "the auto-encoder is learned first, then the answers with a memory that stays as it is for a while",
        {**_AUTO_ENCODER, "policy.pretraining_steps": 300, "policy.frozen_steps": 150},
    ),
    "bidirectional": Variant("steps of a block see each other", {"policy.memory_kwargs.causal": False}),
    "text": _text("a T5 with new weights reads memory and question", {}),
    **{
        f"text-{name}": _text(f"memory {name}", {"policy.memory": name, "policy.memory_kwargs": settings})
        for name, settings in (
            ("ct", _QUEUES),
            ("lstm-o1", {**_LSTM, "capacity": 21}),
            ("lstm-on", _LSTM),
            ("none", {}),
        )
    },
    "faithful-layers": Variant(
        "the layers of the thesis: normalised after them, ReLU, no positions; steps of a block see each other",
        {"policy.memory_kwargs.causal": False, "policy.memory_kwargs.style": "faithful"},
    ),
    "thesis-data": Variant("histories and questions as in the thesis", {"env_kwargs.preset": "faithful"}),
    "thesis-data-text-only": Variant(
        "histories and questions as in the thesis, the question alone",
        {"env_kwargs.preset": "faithful", "policy.memory": "none", "policy.memory_kwargs": {}},
    ),
    **{
        "only-" + "-".join(modalities): Variant(
            f"key frames have their date and {' and '.join(modalities)} alone",
            {"env_kwargs.modalities": ["date", *modalities]},
        )
        for modalities in (("symbols",), ("signals",), ("images",), ("signals", "images"))
    },
}


def _longer(name: str) -> Variant:
    """A variant, trained longer; "" is the preset itself."""
    known = _VARIANTS[name] if name else Variant("memory ct-lt, 21 vectors")
    changes = _LONGER_TEXT if known.overrides.get("policy.answers") == "text" else _LONGER
    if name.startswith("lstm"):
        changes = {**changes, "questions.learning_rate": 1e-3}  # the better one for an LSTM
    return Variant(f"trained longer; {known.about}", {**known.overrides, **changes})


_VARIANTS |= {
    f"longer-{name}".rstrip("-"): _longer(name)
    for name in ("", "ct", "ct-26", "ct-log", "lstm-o1", "text", "text-ct", "text-lstm-o1")
}

#: Vectors of twice as many numbers, and more long histories.
_WIDE: dict[str, Any] = {
    "total_steps": 5000,
    "questions.learning_rate": 1e-3,
    "policy.dim": 128,
    "policy.head_dim": 192,
    "policy.weight_by_length": True,
}
_WIDE_QUEUES: dict[str, Any] = {**_QUEUES, "dim": 128, "mlp_dim": 256}
_WIDE_MEMORIES: dict[str, dict[str, Any]] = {
    "": {"policy.memory": "ct-lt", "policy.memory_kwargs": _WIDE_QUEUES},
    "ct": {"policy.memory": "ct", "policy.memory_kwargs": _WIDE_QUEUES},
    "lstm-o1": {"policy.memory": "lstm-o1", "policy.memory_kwargs": {"dim": 128, "layers": 2, "capacity": 21}},
}


#: A head of twice the width: a batch takes about twice as long, so there are fewer. Long histories join earlier, too.
_WIDE_HEAD: dict[str, Any] = {"total_steps": 3200, "policy.head_dim": 384, "policy.curriculum": [80, 160, 280]}


def _wide(name: str) -> Variant:
    """Structured answers from wide vectors."""
    memory = _WIDE_MEMORIES[name]
    about = f"vectors of 128 dimensions, more long histories; memory {memory['policy.memory']}"
    return Variant(about, {**_WIDE, **memory})


def _wide_head(name: str) -> Variant:
    """Structured answers from wide vectors with a wide head."""
    known = _wide(name)
    return Variant(f"a head of 384 dimensions, 3,200 batches; {known.about}", {**known.overrides, **_WIDE_HEAD})


def _wide_text(name: str) -> Variant:
    """Answers in words: memory and head of a run with structured answers stay as they are, and a T5 reads them."""
    memory, first = _WIDE_MEMORIES[name], f"wide-{name}".rstrip("-")
    changes = {
        **_WIDE,
        "total_steps": 600,
        "questions.learning_rate": 2e-3,
        "policy.curriculum": [],
        "policy.freeze_memory": True,
        "policy.text": {"retrieval": True},
        "encoder_from": f"runs/episodic-qa-{first}-{{seed}}",
        **memory,
    }
    return _text(f"memory and head are those of {first}, which is trained first; the head retrieves", changes)


_VARIANTS |= {f"wide-{name}".rstrip("-"): _wide(name) for name in _WIDE_MEMORIES}
_VARIANTS |= {f"wide-head-{name}".rstrip("-"): _wide_head(name) for name in _WIDE_MEMORIES}
_VARIANTS |= {f"wide-text-{name}".rstrip("-"): _wide_text(name) for name in _WIDE_MEMORIES}

VERBALIZATION_PRESETS = {
    "episodic-qa": Preset(
        "questions about up to five episodes of a robot, memory ct-lt with 21 vectors; tested with up to ten episodes",
        RunConfig(
            env="memenvs/EpisodicQA-v0",
            env_kwargs={"kinds": list(KINDS), "scale": "study"},
            total_steps=3000,
            threads=1,
            device="cpu",
            learner=QuestionConfig(learning_rate=4e-3, warmup_steps=100, checkpoint_steps=500, validation_episodes=50),
            policy={"memory": "ct-lt", "memory_kwargs": _QUEUES, "curriculum": [300, 600, 1050]},
            eval_kwargs={"split": "test", "lengths": list(TEST_LENGTHS), "questions": 60},
            eval_trials=200,
            score="accuracy",
        ),
        _VARIANTS,
    ),
}
