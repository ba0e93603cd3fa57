"""Layers of imports: agents -> wrappers -> memenvs, without a circle.

Imports are read from the text of the modules, those inside of functions too. Imports for type checkers do not count.
"""

import ast
import json
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from memenvs.registry import ENVIRONMENTS
from tests.processes import Done, run_python

ROOT = Path(__file__).resolve().parents[1]
#: Folder -> package that it is imported as.
PACKAGES = {"memenvs": "memenvs", "agents": "memenvs.agents", "wrappers": "memenvs.wrappers"}
TASKS = sorted({spec.family for spec in ENVIRONMENTS})
#: Papers that are more than a memory.
PAPERS = ("memenvs.agents.papers",)


@cache
def syntax_trees() -> dict[str, ast.Module]:
    """Module -> its syntax tree."""
    trees = {}
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join([package, *(part for part in parts if part != "__init__")])
            trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


@cache
def import_graph() -> dict[str, set[str]]:
    """Module -> modules of ours that it imports."""
    trees = syntax_trees()
    return {name: find_imports(tree, set(trees)) for name, tree in trees.items()}


def find_imports(tree: ast.Module, modules: set[str]) -> set[str]:
    """Modules that a file imports, of those given; a name of an `__init__` is its package."""
    found = set()
    skipped = {id(node) for guard in ast.walk(tree) if is_type_guard(guard) for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in modules else str(node.module))
    return found & modules


def is_type_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def assert_none(importers: tuple[str, ...], imported: tuple[str, ...], *, but: tuple[str, ...] = ()) -> None:
    wrong = [
        f"{name} imports {other}"
        for name, others in import_graph().items()
        if within(name, *importers) and not within(name, *but)
        for other in sorted(others)
        if within(other, *imported)
    ]
    assert not wrong, "\n".join(wrong)


def test_there_is_no_circle() -> None:
    graph = import_graph()
    assert len(graph) > 200 and "memenvs.checks" in graph["memenvs.agents.experiments.config"]
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the modules


def folder_in(module: str, package: str) -> str:
    """The folder of a package that a module is in; each paper counts by itself."""
    first, *rest = module.removeprefix(package).split(".")
    return f"{first}.{rest[0]}" if first == "papers" and rest else first


def test_folders_are_in_no_circle() -> None:
    for package, user, used in (
        ("memenvs.agents.", "presets", "experiments"),
        ("memenvs.houses.", "procthor", "house"),
        ("memenvs.", "exploration", "houses"),
    ):
        graph: dict[str, set[str]] = {}
        for name, others in import_graph().items():
            if name.startswith(package):
                folder = folder_in(name, package)
                inside = {folder_in(other, package) for other in others if other.startswith(package)}
                graph.setdefault(folder, set()).update(inside - {folder})
        assert used in graph[user]
        TopologicalSorter(graph).prepare()


def test_a_class_name_has_one_meaning() -> None:
    defined = defaultdict(list)
    for module, tree in syntax_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(module)
    assert len(defined) > 500
    assert not {name: modules for name, modules in defined.items() if len(modules) > 1}


def test_environments_know_neither_agents_nor_wrappers() -> None:
    outer = ("memenvs.agents", "memenvs.wrappers")
    assert_none(("memenvs",), outer, but=outer)
    assert_none(("memenvs.wrappers",), ("memenvs.agents",))


def test_houses_know_no_task() -> None:
    assert_none(("memenvs.houses",), tuple(f"memenvs.{task}" for task in TASKS))


def test_agents_are_layers() -> None:
    runs = tuple(f"memenvs.agents.{part}" for part in ("experiments", "presets", "cli"))
    parts = tuple(f"memenvs.agents.{part}" for part in ("memory", "encoders", "policies", "vec_env"))
    algorithms = ("memenvs.agents.algorithms",)
    assert_none(("memenvs.agents.experiments",), PAPERS)
    assert_none(parts, (*algorithms, *runs, *PAPERS))
    assert_none(algorithms, (*runs, *PAPERS))


SCRIPT = """
import contextlib, importlib, io, json, pkgutil, sys, warnings

for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None  # from here on an import of it fails
warnings.filterwarnings("ignore", "only soft file lock is available")  # from filelock, which misses fcntl here

from memenvs.cli import main

with contextlib.redirect_stdout(io.StringIO()):
    status = main(["train", "ci-smoke", "--out", "run", "--total_steps", "1024", "--json"])
print(json.dumps(sorted(name for name in sys.modules if name.startswith("memenvs"))))

import memenvs, memenvs.agents, memenvs.wrappers

count = 0
for package in (memenvs, memenvs.agents, memenvs.wrappers):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:  # an optional package or a display is missing
                assert "halted" not in str(error), f"{module.name}: {error}"
            count += 1
assert count > 200, count
sys.exit(status)
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A process without the modules of POSIX, which trains and then imports every module."""
    return run_python("-c", SCRIPT, folder=tmp_path_factory.mktemp("layers"))


@pytest.mark.slow
def test_every_module_and_training_work_without_posix(done: Done) -> None:
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_training_loads_no_other_paper(done: Done) -> None:
    loaded = json.loads(done.stdout.splitlines()[0])
    memories = {name for name in loaded if within(name, "memenvs.agents.memory")}
    assert "memenvs.agents.memory.relic" in memories
    papers = [name for name in loaded if within(name, *PAPERS)]  # their packages, which register them, and no module
    assert papers and all((ROOT / name.removeprefix("memenvs.").replace(".", "/")).is_dir() for name in papers)
    assert not {f"memenvs.agents.memory.{other}" for other in ("dnc", "frmqn", "smt", "sat", "trxl")} & memories
    assert "memenvs.agents.algorithms.dqn" not in loaded
    assert not [name for name in loaded if within(name, *(f"memenvs.{task}" for task in TASKS if task != "darkroom"))]
