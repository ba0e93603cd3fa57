"""`memenvs test-set`."""

from __future__ import annotations

import argparse
import json

from memenvs.certificates.test_sets import TEST_SETS, find_test_set
from memenvs.cli.common import as_user_error, environment_spec, print_json


def run(arguments: argparse.Namespace) -> None:
    """Print the test sets of an id."""
    spec = environment_spec(arguments.id)
    with as_user_error("ID", ValueError):
        found = [find_test_set(spec.id, name) for name in TEST_SETS]
    if arguments.json:
        print_json({"id": spec.id, "test_sets": [each.to_json() for each in found]})
        return
    for each in found:
        length = f"{each.trial_steps} steps" if each.episodes is None else f"{each.episodes} episodes"
        print(f"{each.id}, test set {each.name}: {each.trials} trials of {length}")
        print(f"  trial k: trial 0 of seed {each.first_seed} + k")
        print(f"  settings: {json.dumps(dict(each.settings))}")
        print(f"  hash: {each.hash}")
