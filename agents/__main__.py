"""`python -m memenvs.agents`; see `memenvs.agents.cli`."""

from __future__ import annotations

import sys

from memenvs.agents.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
