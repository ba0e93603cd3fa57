"""CPU time of `import memenvs` beyond that of `import gymnasium` alone.

Each is imported in fresh processes, alternately, after one round that is not counted. Prints median and range, then one
JSON line. Takes 20 seconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version

from _peer import commit

LIMIT = 0.1  # s of CPU time, beyond Gymnasium


def import_seconds(package: str) -> float:
    """CPU time that a fresh process needs to import a package, s."""
    code = f"import time; start = time.process_time(); import {package}; print(time.process_time() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="processes for each package (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="two processes for each package")
    args = parser.parse_args()
    repeats = 2 if args.smoke else args.repeats
    seconds: dict[str, list[float]] = {"gymnasium": [], "memenvs": []}
    for k in range(1 + repeats):
        for package, times in seconds.items():
            taken = import_seconds(package)
            if k > 0:  # the first round reads from disk
                times.append(taken)
    median = {package: statistics.median(times) for package, times in seconds.items()}
    for package, times in seconds.items():
        print(f"{package:10} {1e3 * median[package]:6.0f} ms ({1e3 * min(times):.0f} to {1e3 * max(times):.0f})")
    extra = median["memenvs"] - median["gymnasium"]
    print(f"memenvs takes {1e3 * extra:.0f} ms more; the limit is {1e3 * LIMIT:.0f} ms")
    document = {
        "benchmark": "import_time",
        "extra_seconds": extra,
        "median_seconds": median,
        "repeats": repeats,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "commit": commit(),
        "versions": {name: version(name) for name in ("gymnasium", "memenvs", "numpy")},
    }
    print(json.dumps(document))
    return int(extra >= LIMIT and not args.smoke)


if __name__ == "__main__":
    sys.exit(main())
