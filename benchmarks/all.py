"""Run every benchmark, write one JSON file and one table, and compare two such files.

    python benchmarks/all.py [--out FILE.json] [--repeats 3] [--only NAME ...] [--smoke] [--json]
    python benchmarks/all.py --compare OLD.json NEW.json

Each benchmark runs `--repeats` times; a figure is the median of its runs, with their range. Ratios to a peer are by CPU
time where the benchmark measures it. Benchmarks that need a display get one from xvfb-run if there is none. One that
fails is named at the end, and the exit status is 1. All of them take hours of a free core: name some with `--only`.

`--compare` (`make bench-check OLD=... NEW=...`) refuses files of different machines, and exits with 1 if a figure is
lost: missing, or worse by more than 15 % beyond the spread, which is half the range over the median, of the run with
the wider one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _peer import machine

from memenvs.files import atomic_replace

FOLDER = Path(__file__).parent
#: Share of a figure that may be lost beyond the spread.
TOLERANCE = 0.15
#: What must be the same in two files that are compared.
SAME_MACHINE = ("machine", "processor", "processor_flags", "vector_width")

Document = dict[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Attributes:
        figures: Takes the benchmark's JSON document; returns its figures by name.
        arguments: Of its command.
        needs_display: Whether it draws with OpenGL.
        is_less_better: Whether smaller figures are better.
    """

    figures: Callable[[Document], dict[str, float]]
    arguments: list[str] = field(default_factory=list)
    needs_display: bool = False
    is_less_better: bool = False


def _ballet(document: Document) -> dict[str, float]:
    figures = {"training step, over a plain one": document["training_step"]["ratio"]}
    for row in document["chunked_read"]:
        times = row["milliseconds"]
        figures[f"read in chunks of {row['queries']} queries, over the gather"] = times["gather"] / times["ours"]
    return figures


def _env_steps(document: Document) -> dict[str, float]:
    env = document["env"]
    return {
        f"{env} steps, over Miniworld": document["cpu_ratio"],
        f"{env} steps, over as many processes of Miniworld as threads": document["equal_cores"]["cpu_ratio"],
    }


def _render(document: Document) -> dict[str, float]:
    rows = dict(document["rows"])
    figures = {"frames, two threads over one": rows.pop("two threads over one")["ratio"]}
    if "procedural over ProcTHOR" in rows:
        figures["frames, procedural over ProcTHOR"] = rows.pop("procedural over ProcTHOR")["cpu_ratio"]
    return {f"{name} frames, over Miniworld": row["cpu_ratio"] for name, row in rows.items()} | figures


#: Every benchmark, by the name of its script.
BENCHMARKS = {
    "answers": Benchmark(
        lambda document: {"16 questions sharing a memory, over one each": document["sharing"]["ratio"][0]}
    ),
    "ballet": Benchmark(_ballet),
    "decisions": Benchmark(
        lambda document: {
            f"{title}: {row['name']}": row["times_faster"] for title, rows in document["tables"].items() for row in rows
        }
    ),
    "env_steps": Benchmark(_env_steps, needs_display=True),
    "faces": Benchmark(
        lambda document: {
            f"episodes/s, batches of {size}": rate for size, rate in document["episodes_per_second"].items()
        }
    ),
    "import_time": Benchmark(
        lambda document: {
            "import memenvs over gymnasium": document["median_seconds"]["memenvs"]
            / document["median_seconds"]["gymnasium"]
        },
        is_less_better=True,
    ),
    "lstm": Benchmark(lambda document: {"LSTM over whole sequences, over their pieces": document["gain"]}),
    "learner": Benchmark(
        lambda document: {f"{memory}, over its peer": row["ratio"] for memory, row in document["memories"].items()}
    ),
    "memories": Benchmark(
        lambda document: {
            f"{row['what']}, T = {row['length']}: {row['memory']} over lstm": row["speed"] for row in document["rows"]
        }
    ),
    "learner_profile": Benchmark(
        lambda document: {
            f"{name}, {phase}, microseconds": row[phase]["microseconds"]
            for name, row in document["rows"].items()
            for phase in ("rollout", "update")
        },
        is_less_better=True,
    ),
    "long_context": Benchmark(
        lambda document: {
            f"operations, {row['scheme']}, {row['steps']} steps": row["reference_over_ours"]
            for row in document["counts"]
        },
        ["--count", "only"],
    ),
    "pictures": Benchmark(
        lambda document: {f"{row['case']}, over a plain step": row["ratio"] for row in document["training_step"]}
    ),
    "plain_ppo": Benchmark(
        lambda document: {f"steps/s, {name}": speed for name, speed in document["steps_per_second"].items()}
    ),
    "questions": Benchmark(
        lambda document: {
            f"questions/s, {count} a history": middle
            for count, (middle, *_) in document["questions_per_second"].items()
        }
    ),
    "recall": Benchmark(
        lambda document: {f"{name}/s": rate for name, rate in document.items() if isinstance(rate, float)}
    ),
    "render": Benchmark(_render, needs_display=True),
    "seeing": Benchmark(
        lambda document: {
            "steps with the small encoder, over the large one": document["encoders"]["cpu_ratio"],
            "steps of an agent with the small encoder, over random ones with the large": document["agent"]["cpu_ratio"],
        }
    ),
}


def run(name: str, smoke: bool) -> Document:
    """Run a benchmark once; the JSON document of its last line.

    Raises:
        RuntimeError: It failed.
    """
    benchmark = BENCHMARKS[name]
    command = [sys.executable, str(FOLDER / f"{name}.py"), *benchmark.arguments, *(["--smoke"] if smoke else [])]
    if benchmark.needs_display and not os.environ.get("DISPLAY") and shutil.which("xvfb-run"):
        command = ["xvfb-run", "-a", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    try:
        document: Document = json.loads(lines[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
        raise RuntimeError(f"exit status {done.returncode}: {last}") from None
    return document


def summary(name: str, documents: list[Document]) -> dict[str, Document]:
    """Median and range of each figure of a benchmark over its runs."""
    benchmark = BENCHMARKS[name]
    runs = [benchmark.figures(document) for document in documents]
    return {
        f"{name}: {figure}": {
            "median": statistics.median(figures[figure] for figures in runs),
            "low": min(figures[figure] for figures in runs),
            "high": max(figures[figure] for figures in runs),
            "is_less_better": benchmark.is_less_better,
        }
        for figure in runs[0]
    }


def table(figures: dict[str, Document]) -> str:
    """The figures as a Markdown table."""
    rows = [
        f"| {name} | {row['median']:.4g} | {row['low']:.4g} to {row['high']:.4g} |" for name, row in figures.items()
    ]
    return "\n".join(["| figure | median | range |", "|---|---|---|", *rows])


def read(path: Path) -> Document:
    """Read a file that this program has written.

    Raises:
        SystemExit: It is no such file, or was made with `--smoke`.
    """
    try:
        document: Document = json.loads(path.read_text())
        for row in document["figures"].values():
            assert 0 < row["low"] <= row["median"] <= row["high"] and isinstance(row["is_less_better"], bool)
        missing = [key for key in (*SAME_MACHINE, "smoke") if key not in document]
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
        sys.exit(f"{path}: not a file of benchmarks/all.py")
    if missing:
        sys.exit(f"{path}: has no {missing[0]!r}")
    if document["smoke"]:
        sys.exit(f"{path}: made with --smoke, which measures nothing")
    return document


def losses(old: Document, new: Document) -> list[str]:
    """List what is lost from one document of this program to another, a line each."""
    lines = []
    for name, before in old["figures"].items():
        after = new["figures"].get(name)
        if after is None:
            lines.append(f"{name}: missing")
            continue
        kept = after["median"] / before["median"]
        lost = 1 - (1 / kept if before["is_less_better"] else kept)
        spread = max((row["high"] - row["low"]) / 2 / row["median"] for row in (before, after))
        if lost > TOLERANCE + spread:
            lines.append(
                f"{name}: {before['median']:.4g} -> {after['median']:.4g}, {lost:.0%} lost, the spread is {spread:.0%}"
            )
    return lines


def compare(old: Path, new: Path) -> int:
    """Compare two files; the exit status."""
    before, after = read(old), read(new)
    for key in SAME_MACHINE:
        if before[key] != after[key]:
            sys.exit(f"{old} and {new} are of different machines: {key} is {before[key]!r} and {after[key]!r}")
    lines = losses(before, after)
    print("\n".join(lines) if lines else f"nothing lost in {len(before['figures'])} figures")
    return int(bool(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to write (default: the document is printed alone)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each benchmark (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="each once and as short as can be, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the JSON document alone")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="compare two files instead")
    args = parser.parse_args()
    if args.compare:
        return compare(*args.compare)
    if args.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {args.repeats}")
    if args.out and not args.out.parent.is_dir():
        parser.error(f"--out must be in a folder that exists, got {args.out}")
    figures: dict[str, Document] = {}
    documents: dict[str, list[Document]] = {}
    failed: dict[str, str] = {}
    for name in args.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            documents[name] = [run(name, args.smoke) for _ in range(1 if args.smoke else args.repeats)]
            figures |= summary(name, documents[name])
        except (RuntimeError, KeyError) as error:
            failed[name] = str(error)
    result = {
        "figures": figures,
        "failed": failed,
        "documents": documents,
        "smoke": args.smoke,
        "repeats": args.repeats,
        **machine(),
    }
    if args.out:
        with atomic_replace(args.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1))
    if not args.json:
        print(table(figures))
        for name, error in failed.items():
            print(f"failed: {name}: {error}")
    print(json.dumps(result))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
