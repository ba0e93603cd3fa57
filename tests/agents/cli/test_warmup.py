"""`memenvs-agents warmup`: every compiled function of the agents is run."""

from __future__ import annotations

import json

import pytest
from numba.core.dispatcher import Dispatcher

from memenvs.agents.__main__ import main
from memenvs.agents.algorithms import rollout_buffer
from memenvs.agents.memory.kernels import frmqn_cpu


def test_every_function_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"compiled", "seconds"}
    for module in (rollout_buffer, frmqn_cpu):
        # `_dot` is compiled into those that call it
        kernels = [each for name, each in vars(module).items() if isinstance(each, Dispatcher) and name != "_dot"]
        assert kernels and all(kernel.signatures for kernel in kernels)
