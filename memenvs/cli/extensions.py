"""Scorers and policies that families of tasks add to the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy
from memenvs.progress import Progress

#: "module:name" of each `Extension`. These modules are imported by every command that names policies or scorers, so
#: they import what they need late.
EXTENSIONS = ("memenvs.vln.cli:EXTENSION", "memenvs.verbalization.cli:EXTENSION")

#: Metric -> "mean" and "stderr"; None where there is no number.
MetricTable = Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class ScriptedPolicy:
    """Maker of a policy for the environments of one family.

    Attributes:
        help: Half a sentence for `--help`.
        make: Makes the policy that plays an environment; the policy draws from the generator.
    """

    help: str
    make: Callable[[TrialEnv, np.random.Generator], EnvPolicy]


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """Scorer of a file of results, a task of `memenvs score`.

    Attributes:
        help: What FILE is.
        run: Scores it, prints the result and returns its JSON document; gets the arguments of `memenvs score`.
        needs_split: Whether --split names the episodes; otherwise FILE does.
    """

    help: str
    run: Callable[[argparse.Namespace], Any]
    needs_split: bool = False


@dataclass(frozen=True, kw_only=True)
class Extension:
    """Scorers and policies of one family.

    Attributes:
        family: As in the registry.
        scorers: Its tasks of `memenvs score`, by name.
        policies: Its policies of `rollout`, by name.
        exact_policies: Names of policies that `rollout --exact` evaluates in this family.
        evaluate_exactly: Function of an environment, one of these names and the progress. It returns the metrics over
            the whole split and the number of episodes in it.
    """

    family: str
    scorers: Mapping[str, Scorer] = field(default_factory=lambda: MappingProxyType({}))
    policies: Mapping[str, ScriptedPolicy] = field(default_factory=lambda: MappingProxyType({}))
    exact_policies: tuple[str, ...] = ()
    evaluate_exactly: Callable[[TrialEnv, str, Progress], tuple[MetricTable, int]] | None = None


@cache
def load_extensions() -> tuple[Extension, ...]:
    """Import the extensions of all families."""
    entries = (entry.partition(":") for entry in EXTENSIONS)
    return tuple(getattr(import_module(module), name) for module, _, name in entries)
