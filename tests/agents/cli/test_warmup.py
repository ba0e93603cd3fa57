"""`memenvs warmup` runs every compiled function of the agents."""

from __future__ import annotations

import json

from tests.processes import run_python

#: Prints the compiled functions that the command has not run. In a process of its own: other tests compile them too.
SCRIPT = """
import json
from numba.core.dispatcher import Dispatcher
from memenvs.agents.cli.warmup import learn
from memenvs.agents.algorithms import rollout_buffer

learn()
compiled = {
    name: bool(function.signatures)
    for name, function in vars(rollout_buffer).items()
    if isinstance(function, Dispatcher)
}
print(json.dumps(compiled))
"""


def test_every_function_is_compiled() -> None:
    done = run_python("-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    compiled = json.loads(done.stdout)
    assert compiled and all(compiled.values()), compiled
