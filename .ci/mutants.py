"""Break a module on purpose, again and again, and see whether its tests fail.

This is mutation testing, with Cosmic Ray.

    make mutants MODULE=memenvs/resets.py
    python .ci/mutants.py MODULE [MODULE ...] [--tests TEST ...] [--every K]

Works in a copy of the tracked files below build/mutants. Changes in annotations are left out, as they change nothing.
Prints the share of mutants that some test notices, and every mutant that none does. A run that was stopped goes on
where it was.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutants"
#: Beginning of a module's path -> its tests; the longest beginning counts. Others have the tests of their own name.
CONTRACT = "tests/test_contract.py"
TESTS = {
    "memenvs/core": ["tests/test_core.py", CONTRACT, "-k", "not _v0 and not -v0 or Darkroom"],
    "memenvs/resets": ["tests/test_core.py", CONTRACT, "-k", "not -v0 or Darkroom"],
    "memenvs/task": ["tests/test_core.py", CONTRACT, "-k", "not -v0 or Darkroom"],
    "memenvs/darkroom": ["tests/darkroom", CONTRACT, "-k", "not -v0 or Darkroom"],
    "memenvs/four_boxes": ["tests/four_boxes", CONTRACT, "-k", "not -v0 or FourBoxes"],
    "memenvs/room_ballet": ["tests/room_ballet", CONTRACT, "-k", "not -v0 or FIFO or ShortStay"],
    "memenvs/objectnav": ["tests/objectnav", CONTRACT, "-k", "not -v0 or ExtObjNav"],
    "memenvs/exploration": ["tests/exploration", CONTRACT, "-k", "not -v0 or Coverage or Search"],
    "memenvs/vln": ["tests/vln", CONTRACT, "-k", "not -v0 or VLN"],
    "wrappers": ["tests/wrappers"],
    "agents/memory": ["tests/agents/memory"],
    "agents/algorithms": ["tests/agents/algorithms", "tests/agents/memory/test_baselines.py"],
}
CONFIG = """[cosmic-ray]
module-path = [{module!r}]
timeout = {timeout}
excluded-modules = []
test-command = {command!r}

[cosmic-ray.distributor]
name = "local"
"""


def find_tests(module: str) -> list[str]:
    """Find the arguments of pytest for a module: those of `TESTS`, or the file of its name."""
    beginnings = [path for path in TESTS if module.startswith(path)]
    if beginnings:
        return TESTS[max(beginnings, key=len)]
    path = Path("tests", *Path(module).parts[module.startswith("memenvs") :])
    test = path.with_name(f"test_{path.name}")
    if not (ROOT / test).is_file():
        raise SystemExit(f"no tests of {module} are known; name them: --tests")
    return [str(test)]


def tracked_files() -> list[str]:
    """Paths of the files in Git that are there, relative to the root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def copy_tree(tree: Path) -> dict[str, str]:
    """Copy the tracked files; return the environment variables that import the copy."""
    for name in tracked_files():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    package = tree / "build" / "mapped" / "memenvs"  # the import tree as links, as `make mapped` builds it
    package.mkdir(parents=True)
    for path in [*(tree / "memenvs").iterdir(), tree / "agents", tree / "wrappers"]:
        (package / path.name).symlink_to(path)
    return {**os.environ, "PYTHONPATH": str(package.parent)}


def hash_of(command: str, every: int) -> str:
    """Compute a hash of the tracked files and the arguments; a new one needs a new run."""
    sha = hashlib.sha256(f"{command} {every}".encode())
    for name in tracked_files():
        sha.update(name.encode() + (ROOT / name).read_bytes())
    return sha.hexdigest()


def annotations(path: Path) -> set[tuple[int, int]]:
    """(line, column) of everything in annotations, which are never evaluated."""
    found: set[tuple[int, int]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts = (getattr(node, name, None) for name in ("annotation", "returns"))
        for part in (each for each in parts if isinstance(each, ast.expr)):
            assert part.end_lineno is not None and part.end_col_offset is not None
            for line in range(part.lineno, part.end_lineno + 1):
                first = part.col_offset if line == part.lineno else 0
                last = part.end_col_offset if line == part.end_lineno else 200
                found |= {(line, column) for column in range(first, last)}
    return found


def skip(session: Path, tree: Path, module: str, every: int) -> None:
    """Leave out mutants in annotations, and all but each `every`-th of the others."""
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
    with use_db(session) as database:
        kept = 0
        unused = annotations(tree / module)
        for item in database.work_items:
            mutation = item.mutations[0]
            if tuple(mutation.start_pos) in unused:
                database.set_result(item.job_id, skipped)
                continue
            if kept % every:
                database.set_result(item.job_id, skipped)
            kept += 1


def report(session: Path, module: str) -> None:
    """Print the share that was killed, and the others as changes of the text."""
    killed, survivors = 0, []
    items: dict[str, WorkItem] = {}
    with use_db(session) as database:
        items = {item.job_id: item for item in database.work_items}
        for job, result in database.results:
            if result.worker_outcome == WorkerOutcome.SKIPPED:
                continue
            if result.test_outcome == TestOutcome.SURVIVED:
                survivors.append((items[job].mutations[0], result.diff or ""))
            else:
                killed += 1
    for mutation, diff in sorted(survivors, key=lambda each: each[0].start_pos):
        changes = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        print(f"{module}:{mutation.start_pos[0]} survives\n    " + "\n    ".join(changes))
    count = killed + len(survivors)
    print(f"{module}: {killed} of {count} mutants killed ({100 * killed / max(count, 1):.1f} %)")


def cosmic_ray(*arguments: str, tree: Path, environ: dict[str, str]) -> None:
    """Run Cosmic Ray in the copy of the tree."""
    command = [sys.executable, "-m", "cosmic_ray.cli", *arguments]
    if subprocess.run(command, cwd=tree, env=environ, stdout=subprocess.DEVNULL).returncode:
        raise SystemExit(f"cosmic-ray {arguments[0]} failed in {tree}; do the tests pass there?")


def main() -> None:
    """Read the command line, and test each module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="path of a module, such as memenvs/resets.py")
    parser.add_argument("--tests", nargs="+", help="arguments of pytest instead of those of the module")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each K-th mutant (default: all)")
    options = parser.parse_args()
    for module in options.modules:
        if not (ROOT / module).is_file():
            raise SystemExit(f"no such module: {module}")
        folder = BUILD / module.removesuffix(".py").replace("/", ".")
        tree, session = folder / "tree", folder / "session.sqlite"
        pytest = ["-x", "-q", "-n0", "-p", "no:cacheprovider"]
        tests = [*pytest, "-m", "not learning and not programs and not nightly", *(options.tests or find_tests(module))]
        command = " ".join(f"'{each}'" if " " in each else each for each in [sys.executable, "-m", "pytest", *tests])

        wanted = hash_of(command, options.every)
        key = folder / "key"
        if not key.is_file() or key.read_text() != wanted:  # else a run that was stopped goes on
            shutil.rmtree(folder, ignore_errors=True)
            environ = copy_tree(tree)
            (folder / "config.toml").write_text(CONFIG.format(module=module, timeout=600.0, command=command))
            cosmic_ray("baseline", str(folder / "config.toml"), tree=tree, environ=environ)
            cosmic_ray("init", str(folder / "config.toml"), str(session), tree=tree, environ=environ)
            skip(session, tree, module, options.every)
            key.write_text(wanted)
        environ = {**os.environ, "PYTHONPATH": str(tree / "build" / "mapped")}
        cosmic_ray("exec", str(folder / "config.toml"), str(session), tree=tree, environ=environ)
        report(session, module)


if __name__ == "__main__":
    main()
