"""Tests of the contract of a task, for environments of one's own.

`check_env("corridor/Corridor-v0")` raises a `ContractError` that names the first broken rule. `CHECKS` are its parts.
"""

from __future__ import annotations

from memenvs.testing.comparison import ContractError
from memenvs.testing.contract import CHECKS, check_env
from memenvs.testing.task_under_test import TaskUnderTest

__all__ = ["CHECKS", "ContractError", "TaskUnderTest", "check_env"]
