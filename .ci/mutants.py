"""Break a module on purpose, again and again, and see whether its tests fail.

This is mutation testing, with the operators of Cosmic Ray.

    make mutants MODULE=memenvs/resets.py
    python .ci/mutants.py MODULE [MODULE ...] [--tests TEST ...] [--every K [--offset J]]

Works in a copy of the tracked files below build/mutants. A first run of the tests records which of them reach which
line. Each change then runs only the tests of its line, in a fork of a process that has imported PyTorch and the like.
Prints the share of mutants that some test notices, and every mutant that none does. Changes that say nothing are left
out (`annotations`, `says_nothing`). Needs os.fork: Linux or macOS.

A run that was stopped goes on where it was. As long as the module does not change, another run tests again only what
survived: write a test, and run it again. `.ci/equivalent_mutants.tsv` lists changes that change nothing, with reasons.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as tests/conftest.py sets it; before torch is imported

import argparse
import ast
import contextlib
import difflib
import gc
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import cosmic_ray.plugins
import pytest
from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult
from coverage import Coverage
from mutant_tests import TESTS

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutants"
RECORD = "reached.json"
EQUIVALENT = ROOT / ".ci" / "equivalent_mutants.tsv"
#: Imported before the forks: a fork then starts its tests at once, where a new process would take seconds.
PRELOADED = (
    *("gymnasium", "numba", "PIL.Image", "torch.utils.tensorboard", "stable_baselines3", "sb3_contrib", "accelerate"),
    *("safetensors.torch", "scipy.ndimage", "scipy.stats", "matplotlib.pyplot", "hypothesis", "h5py", "rich.progress"),
    "torch.nn.attention.bias",  # imports the compiler of PyTorch
)
FAST = "not learning and not programs and not nightly"


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


def copy_tree(tree: Path) -> None:
    """Copy the tracked files, and link them as they are installed, as `make mapped` does."""
    compiled = [
        str(path.relative_to(ROOT)) for folder in ("memenvs", "agents") for path in (ROOT / folder).rglob("*.nb?")
    ]
    shutil.rmtree(tree, ignore_errors=True)
    for name in [*tracked_files(), *compiled]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)  # with its time, by which numba knows what it has compiled
    package = tree / "build" / "mapped" / "memenvs"
    package.mkdir(parents=True)
    for path in [*(tree / "memenvs").iterdir(), tree / "agents", tree / "wrappers"]:
        (package / path.name).symlink_to(path)


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


def says_nothing(mutation: MutationSpec, lines: list[str]) -> bool:
    """Return True for a change of a kind that tests need not notice.

    In place of arithmetic an operator on bits or a power (- for + says as much). In place of == or `is` anything
    but its opposite. The star before keyword-only arguments, which Cosmic Ray takes for a product.
    """
    kind, old, new = [*mutation.operator_name.split("/")[-1].split("_"), "", ""][:3]
    bits = {"LShift", "RShift", "BitOr", "BitAnd", "BitXor", "Pow"}
    row, column = mutation.start_pos
    if kind == "ReplaceBinaryOperator":
        return (new in bits and old not in bits) or lines[row - 1][column:].startswith(("*,", "**"))
    if kind == "ReplaceComparisonOperator":
        pairs = ({"Eq", "NotEq"}, {"Is", "IsNot"})
        return any((old in pair) != (new in pair) for pair in pairs)
    return False


def skip(database: WorkDB, tree: Path, module: str, every: int, offset: int) -> None:
    """Leave out mutants that say nothing, and of the others all but each `every`-th."""
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
    kept = -1 - offset
    unused = annotations(tree / module)
    lines = (tree / module).read_text(encoding="utf-8").splitlines()
    for item in database.work_items:
        mutation = item.mutations[0]
        is_kept = tuple(mutation.start_pos) not in unused and not says_nothing(mutation, lines)
        kept += is_kept
        if not is_kept or kept % every:
            database.set_result(item.job_id, skipped)


def compiled_users(tree: Path, module: str) -> list[Path]:
    """Find files whose compiled functions may contain the module's, which numba would not see."""
    paths = [path for folder in ("memenvs", "agents") for path in (tree / folder).rglob("*.py")]
    compiled = {path: text for path in paths if "jit" in (text := path.read_text(encoding="utf-8"))}
    found, waiting = {tree / module} & set(compiled), [tree / module] if tree / module in compiled else []
    while waiting:
        parts = waiting.pop().relative_to(tree).with_suffix("").parts
        package, stem = ".".join(parts[:-1]), parts[-1]
        imports = re.compile(rf"{re.escape(package)}\.{stem} import|{re.escape(package)} import .*\b{stem}\b")
        users = {path for path, text in compiled.items() if imports.search(text)} - found
        found |= users
        waiting += users
    return sorted(found - {tree / module})


class Recorder:
    """Plugin of pytest that records which tests reach which lines, and their seconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.coverage = Coverage(data_file=None, include=[str(path)])
        self.coverage.start()
        self.seconds: dict[str, float] = {}

    def _within(self, context: str) -> Iterator[None]:
        self.coverage.switch_context(context)
        yield
        self.coverage.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Count what fixtures reach for all tests of the file: they may share them."""
        yield from self._within(item.nodeid.split("::")[0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Count the lines for this test."""
        yield from self._within(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of a test's set-up, call and teardown."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write both beside the tree."""
        self.coverage.stop()
        lines = self.coverage.get_data().contexts_by_lineno(str(self.path))
        Path("..", RECORD).write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


class Chosen:
    """Plugin of pytest that runs some tests only, quick files and tests first."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the chosen ones."""
        files: dict[Path, float] = {}
        items[:] = [item for item in items if item.nodeid in self.seconds]
        for item in items:
            files[item.path] = files.get(item.path, 0.0) + self.seconds[item.nodeid]
        items.sort(key=lambda item: (files[item.path], str(item.path), self.seconds[item.nodeid]))


def first_line(node: ast.stmt) -> int:
    """Return the line at which a statement begins, its decorators included."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])


class Reached:
    """Tests that reach the lines of a module, as a `Recorder` wrote them."""

    def __init__(self, record: Path, module: Path) -> None:
        content = json.loads(record.read_text())
        self.seconds: dict[str, float] = content["seconds"]
        self.lines = {int(line): set(contexts) for line, contexts in content["lines"].items()}
        self.statements = [
            node for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, ast.stmt)
        ]

    def tests(self, line: int) -> dict[str, float]:
        """Find the tests of the statement at a line, with seconds; all, if an import runs it."""
        around = [node for node in self.statements if first_line(node) <= line <= (node.end_lineno or node.lineno)]
        inner = max(around, key=first_line)
        body = getattr(inner, "body", None)
        last = max(inner.lineno, first_line(body[0]) - 1) if body else (inner.end_lineno or inner.lineno)
        lines = range(first_line(inner), last + 1)
        contexts: set[str] = set().union(*(self.lines.get(each, set()) for each in lines))
        functions = (node for node in around if isinstance(node, ast.FunctionDef))
        is_called = any(first_line(node.body[0]) <= line for node in functions)  # else it runs as a test imports it
        if "" in contexts or not contexts or not is_called:
            return self.seconds
        return {test: time for test, time in self.seconds.items() if {test, test.split("::")[0]} & contexts}


def run_tests(tree: Path, arguments: list[str], timeout: float, plugin: Recorder | Chosen | Path) -> str:
    """Run pytest in a fork of this process.

    Args:
        tree: Folder to run in; `build/mapped` below it is what the tests import.
        arguments: Arguments of pytest.
        timeout: Seconds after which it is killed.
        plugin: Which tests to run; or a module whose lines and tests are recorded.

    Returns:
        "passed", "failed" or "timeout".
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()  # so that what the tests start can be killed with them
            log = os.open(tree.parent / "tests.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(tree)
            sys.path[:0] = [str(tree / "build" / "mapped"), str(tree)]
            os.environ["PYTHONPATH"] = str(tree / "build" / "mapped")
            if isinstance(plugin, Path):
                plugin = Recorder(plugin)
            else:  # what is compiled of a changed module must not be stored
                sys.dont_write_bytecode = True
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            importlib.import_module("memenvs")  # the mapped one: pytest puts `tree` first, where it has no agents
            status = int(pytest.main(arguments, plugins=[plugin]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                if os.waitstatus_to_exitcode(status) == pytest.ExitCode.NO_TESTS_COLLECTED:
                    raise SystemExit(f"no test was run; see {tree.parent / 'tests.log'}")
                return "failed" if status else "passed"
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError):  # what the tests left running
            os.killpg(child, signal.SIGKILL)


def change_of(before: str, after: str) -> str:
    """Write the lines that differ in one line: those before, "->", those after."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[3:]
    old, new = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return f"{old} -> {new}".replace("\t", " ")


def test(mutation: MutationSpec, tree: Path, arguments: list[str], reached: Reached, users: list[Path]) -> WorkResult:
    """Apply one change to the copy, run the tests of its line, and take it back."""
    operator = cosmic_ray.plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    chosen = reached.tests(mutation.start_pos[0])
    files = sorted({name.split("::")[0] for name in chosen})
    with contextlib.ExitStack() as stack:
        try:
            change = use_mutation(tree / mutation.module_path, operator, mutation.occurrence)
            before, after = stack.enter_context(change)
        except AttributeError:  # of Cosmic Ray, which cannot replace a name with a dot, as in `except zlib.error`
            after = None
        if after is None:
            return WorkResult(worker_outcome=WorkerOutcome.NO_TEST)
        for path in users:
            path.touch()  # to numba, another file
        timeout = 60 + 5 * sum(chosen.values())
        is_noticed = run_tests(tree, [*arguments, *files], timeout, Chosen(chosen)) != "passed"
    outcome = TestOutcome.KILLED if is_noticed else TestOutcome.SURVIVED
    return WorkResult(worker_outcome=WorkerOutcome.NORMAL, test_outcome=outcome, diff=change_of(before, after))


def equivalent(module: str) -> set[str]:
    """Read the changes of a module that are known to change nothing, as `change_of` writes them."""
    if not EQUIVALENT.is_file():
        return set()
    rows = (line.split("\t") for line in EQUIVALENT.read_text(encoding="utf-8").splitlines())
    return {change for name, change, _ in rows if name == module}


def report(database: WorkDB, module: str) -> None:
    """Print the share that was killed, and the others as changes of the text."""
    mutations = {item.job_id: item.mutations[0] for item in database.work_items}
    known = equivalent(module)
    num_killed = num_equivalent = num_survivors = 0
    for job, result in sorted(database.results, key=lambda each: mutations[each[0]].start_pos):
        if result.worker_outcome != WorkerOutcome.NORMAL:
            continue
        num_killed += result.is_killed
        if not result.is_killed and result.diff in known:
            num_equivalent += 1
        elif not result.is_killed:
            num_survivors += 1
            print(f"{module}:{mutations[job].start_pos[0]}\t{result.diff}")
    share = 100 * num_killed / max(num_killed + num_survivors, 1)
    print(
        f"{module}: {num_killed} of {num_killed + num_survivors} mutants killed ({share:.1f} %), "
        f"{num_equivalent} equivalent",
        flush=True,
    )


def main() -> None:
    """Read the command line, and test each module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="path of a module, such as memenvs/resets.py")
    parser.add_argument("--tests", nargs="+", help="arguments of pytest instead of those of the module")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each K-th mutant (default: all)")
    parser.add_argument("--offset", type=int, default=0, metavar="J", help="the first one is the J-th, from 0")
    options = parser.parse_args()
    for module in options.modules:
        if not (ROOT / module).is_file():
            raise SystemExit(f"no such module: {module}")
    for name in PRELOADED:
        with contextlib.suppress(ImportError):  # of an extra
            importlib.import_module(name)
    gc.freeze()  # pytest collects garbage at its end, which in a fork would copy everything
    for module in options.modules:
        folder = BUILD / module.removesuffix(".py").replace("/", ".")
        tree, session, key = folder / "tree", folder / "session.sqlite", folder / "key"
        arguments = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:anyio", f"--basetemp={folder / 'tmp'}"]
        arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", FAST]
        # pytest puts this before all else; "." has a `memenvs` whose agents and wrappers would be those installed
        arguments += ["-o", "pythonpath=build/mapped"]
        tests = options.tests or find_tests(module)
        wanted = f"every {options.every} from {options.offset}\n{(ROOT / module).read_text(encoding='utf-8')}"
        is_known = key.is_file() and key.read_text(encoding="utf-8") == wanted
        if not is_known:
            shutil.rmtree(folder, ignore_errors=True)
        copy_tree(tree)
        if (result := run_tests(tree, [*arguments, *tests], 3600, tree / module)) != "passed":
            raise SystemExit(f"{module}: its tests {result} before any change; see {folder / 'tests.log'}")
        if not is_known:
            with use_db(session) as database:
                with contextlib.chdir(tree):
                    init([Path(module)], database, {})
                skip(database, tree, module, options.every, options.offset)
            key.write_text(wanted, encoding="utf-8")
        reached = Reached(folder / RECORD, tree / module)
        users = compiled_users(tree, module)
        with use_db(session) as database:
            waiting = list(database.pending_work_items)
            if is_known:
                known = equivalent(module)
                waiting += [
                    item
                    for item, result in database.completed_work_items
                    if result.test_outcome == TestOutcome.SURVIVED and result.diff not in known
                ]
            for item in waiting:
                database.set_result(item.job_id, test(item.mutations[0], tree, arguments, reached, users))
            report(database, module)


if __name__ == "__main__":
    main()
