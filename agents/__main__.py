"""`python -m agents`; see `agents.cli`."""

from __future__ import annotations

import sys

from agents.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
