"""Presets of agents that follow instructions: MTVM as published, small ones, and its ablations."""

from __future__ import annotations

from typing import Any

from agents.imitation_config import ImitationConfig
from agents.run_config import RunConfig, with_overrides

#: What every run on the real graphs shares; all episodes of a split are played once in an evaluation.
_REAL: dict[str, Any] = {"n_envs": 16, "eval_all_layouts": True, "checkpoint_rollouts": 100, "threads": 1}
#: From scratch: no pretrained weights, so a larger step, a warm-up, and imitation alone at first.
_SCRATCH = ImitationConfig(learning_rate=1e-4, warmup_updates=1000, imitation_updates=1000)


def _r2r(features: int, tokens: int, split: str, episodes: int, tokenizer: str = "words") -> dict[str, Any]:
    """R2R on the real graphs without image features; the user names a file of them with `env_kwargs.features`."""
    return {
        "env": "memenvs/VLN-R2R-v0",
        "env_kwargs": {
            "world": "mp3d",
            "split": "train",
            "features": "none",
            "feature_size": features,
            "tokenizer": tokenizer,
            "max_tokens": tokens,
        },
        "eval_kwargs": {"split": split},
        "eval_steps": 15,
        "eval_trials": episodes,
        "score": "spl",
        **_REAL,
    }


#: Change to the network -> what the agent then is: MTVM's studies of history and memory.
ABLATIONS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "last1": ("remembers the last move only", [("policy.network.bank", 1)]),
    "last3": ("remembers the last 3 moves", [("policy.network.bank", 3)]),
    "no-memory": ("remembers nothing", [("policy.network.bank", 0)]),
    "observations": ("remembers what the options looked like", [("policy.network.history", "observation")]),
    "recurrent": ("one recurrent state", [("policy.network.history", "state")]),
    "one-way": ("the text does not hear the views", [("policy.network.two_way", False)]),
    "no-language": ("does not read the text", [("policy.network.language", False)]),
    "no-consistency": (
        "without the consistency loss",
        [("imitation.text_consistency", 0.0), ("imitation.cross_consistency", 0.0)],
    ),
}


def _family(base: str, what: str, config: RunConfig) -> dict[str, tuple[str, RunConfig]]:
    """A preset and its ablations."""
    changed = {
        f"{base}-{name}": (f"{base}: {line}", with_overrides(config, changes))
        for name, (line, changes) in ABLATIONS.items()
    }
    return {base: (what, config)} | changed


VLN_PRESETS: dict[str, tuple[str, RunConfig]] = {
    "vln-r2r-paper": (
        "MTVM as published, on the real graphs; needs image features and, with encoder_from, PREVALENT's weights",
        RunConfig(
            **{**_r2r(2048, 80, "val_unseen", 2349, tokenizer="wordpiece"), "threads": 0},
            total_steps=10_000,
            imitation=ImitationConfig(),
            policy={"size": "paper"},
        ),
    ),
    **_family(
        "vln-r2r-small",
        "small MTVM on the real graphs from scratch, directions only",
        RunConfig(
            **_r2r(256, 80, "val_unseen", 2349), total_steps=10_000, imitation=_SCRATCH, policy={"size": "small"}
        ),
    ),
}  # fmt: skip
