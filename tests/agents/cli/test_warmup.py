"""`memenvs warmup` runs every compiled function of the agents."""

from __future__ import annotations

import json

from tests.processes import run_python

#: Prints the compiled functions that the command has not run. In a process of its own: other tests compile them too.
#: `_dot` is compiled into those that call it.
SCRIPT = """
import json
from numba.core.dispatcher import Dispatcher
from memenvs.agents.cli.warmup import learn
from memenvs.agents.algorithms import rollout_buffer
from memenvs.agents.memory.kernels import frmqn_cpu

learn()
compiled = {
    name: bool(function.signatures)
    for module in (rollout_buffer, frmqn_cpu)
    for name, function in vars(module).items()
    if isinstance(function, Dispatcher) and name != "_dot"
}
print(json.dumps(compiled))
"""


def test_every_function_is_compiled() -> None:
    done = run_python("-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    compiled = json.loads(done.stdout)
    assert len(compiled) >= 3 and all(compiled.values()), compiled
