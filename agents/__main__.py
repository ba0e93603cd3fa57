"""`python -m memenvs.agents`, another name of `python -m memenvs`; see `memenvs.cli`."""

from __future__ import annotations

import sys

from memenvs.cli import main

if __name__ == "__main__":
    sys.exit(main())
