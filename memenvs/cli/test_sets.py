"""`memenvs test-set`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from memenvs.certificates.test_sets import TEST_SETS, find_test_set
from memenvs.cli.common import as_user_error, environment_spec

ARGUMENTS = """
id ID: as of `memenvs rollout`, with its default settings
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print the test sets of an id."""
    spec = environment_spec(arguments.id)
    with as_user_error("ID", ValueError):
        test_sets = [find_test_set(spec.id, name) for name in TEST_SETS]
    for trials in () if arguments.json else test_sets:
        length = f"{trials.trial_steps} steps" if trials.episodes is None else f"{trials.episodes} episodes"
        print(f"{trials.id}, test set {trials.name}: {trials.trials} trials of {length}")
        print(f"  trial k: trial 0 of seed {trials.first_seed} + k")
        print(f"  settings: {json.dumps(dict(trials.settings))}")
        print(f"  hash: {trials.hash}")
    return {"id": spec.id, "test_sets": [trials.to_json() for trials in test_sets]}
