"""Print the tables of the results pages from `results/`, and draw their figures.

Names are those of the pages; `memory` and `verdicts` are the tables of the README, `choices` is that of
docs/choosing.md. Without names all tables are printed.

    python docs/results.py [episodic_qa many_qa changes_qa words_qa thesis_qa memory verdicts choices]
        [--draw docs/images]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure
from result_pages import readme, verbalization

from memenvs.agents.experiments.report import small_png
from memenvs.files import write_file

TABLES: Mapping[str, Callable[[], None]] = {
    "episodic_qa": verbalization.print_episodic_qa,
    "many_qa": verbalization.print_many_qa,
    "changes_qa": verbalization.print_changes_qa,
    "words_qa": verbalization.print_words_qa,
    "thesis_qa": verbalization.print_thesis_qa,
    "memory": readme.print_memory,
    "verdicts": readme.print_verdicts,
    "choices": readme.print_choices,
}
FIGURES: Mapping[str, Callable[[], Figure]] = {
    "episodic_qa": verbalization.draw_episodic_qa,
}


def main() -> int:
    """Print the tables, and draw the figures where a folder is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLES)} (default all)")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="also draw the figures into this folder")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in TABLES]
    if unknown:
        parser.error(f"unknown {unknown[0]!r}; choose from {', '.join(TABLES)}")
    for name in options.names or TABLES:
        TABLES[name]()
        if options.draw is not None and name in FIGURES:
            write_file(options.draw / f"results_{name}.png", small_png(FIGURES[name]()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
