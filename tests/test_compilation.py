"""Messages while numba compiles, and the command that compiles ahead."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numba
import pytest

import memenvs
from memenvs import compilation
from memenvs.cli import warmup
from memenvs.compilation import CompilationLog
from memenvs.registry import ENVIRONMENTS
from tests.test_cli import call, document, refuse

CODE = "def outer(x):\n    return inner(x) + 1\n\ndef inner(x):\n    return 2 * x\n"


def compile_two(module: str) -> None:
    """Compile and call two functions of a module."""
    names = {"__name__": module}
    exec(CODE, names)
    names["inner"] = numba.njit(names["inner"])
    assert numba.njit(names["outer"])(3) == 7


def test_compiling_is_announced_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.COMPILATION, "note", lambda module, is_start: None)  # other tests may listen
    begun = time.monotonic()
    log = CompilationLog()
    log.register()
    log.register()
    compile_two("another.library")
    assert capsys.readouterr().err == ""
    compile_two("memenvs.toy")
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("memenvs: compiling (once; about a minute")
    assert printed.err.count("\n") == 1 and log.num_functions == 2
    spent = log._seconds
    time.sleep(0.3)  # does not count
    monkeypatch.setattr(compilation, "MESSAGE_SECONDS", 0.0)
    compile_two("memenvs.toy2")
    assert capsys.readouterr().err.splitlines()[-1].endswith("4 functions so far")
    assert log._depth == 0 and spent < log._seconds < time.monotonic() - begun - 0.3


def test_warmup_plays_every_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    darkroom = next(spec for spec in ENVIRONMENTS if spec.name == "Darkroom-v0")
    missing = replace(darkroom, name="Missing-v0", task="memenvs.missing:Missing")
    monkeypatch.setattr(warmup, "ENVIRONMENTS", (darkroom, missing))
    assert list(document(capsys, "warmup")["skipped"]) == ["memenvs/Missing-v0"]
    assert re.search("memenvs/Missing-v0.*skipped: ", call(capsys, "warmup"))
    broken = replace(darkroom, defaults={"size": -1})
    monkeypatch.setattr(warmup, "ENVIRONMENTS", (broken,))
    assert "size must be an integer" in refuse(capsys, "warmup")  # a fault, not something to install
    assert set(warmup.SETTINGS) <= {spec.name for spec in ENVIRONMENTS}


def test_compiled_functions_are_stored_and_let_other_threads_run() -> None:
    root = Path(__file__).resolve().parents[1]
    found = set()
    for path in [path for folder in ("memenvs", "agents") for path in (root / folder).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "njit" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("njit", "numba.njit"):
                options = {each.arg: ast.unparse(each.value) for each in node.keywords}
                # of a vector width that somebody set, nothing is stored
                assert options.get("cache") in ("True", "WIDTH_VARIABLE not in os.environ"), path
                assert options.get("nogil") == "True" or "agents" in path.parts, path
                found.add(path.name)
            if isinstance(node, ast.FunctionDef):
                assert "njit" not in map(ast.unparse, node.decorator_list), path
                header = text.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
                assert node.decorator_list or "pragma: no cover  (compiled)" not in "".join(header), node.name
    assert {"random.py", "retention.py", "simd.py"} <= found


@pytest.mark.programs
def test_what_needs_the_compiler_says_so_without_it() -> None:
    for name, code in (("TwoRooms-v0", 2), ("ExtObjNav-v0", 2), ("Darkroom-v0", 0)):
        command = [sys.executable, "-m", "memenvs", "rollout", name, "--episodes", "1", "--json"]
        environ = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("NUMBA_DISABLE_JIT must be 0 or unset, got 1" in done.stderr) == (code == 2)


#: Plays two functions' worth of compiled code, with a folder of temporary files that may be no folder.
PLAY = """
import sys, tempfile
sys.path.insert(0, sys.argv[1])
tempfile.tempdir = sys.argv[2]
if "numba" in sys.argv:
    import numba
from memenvs.cli import main
sys.exit(main(["rollout", "RoomBallet-Next-v0", "--episodes", "1", "--json"]))
"""


@pytest.mark.programs
def test_code_is_kept_where_neither_installation_nor_home_can_be_written(tmp_path: Path) -> None:
    """A cold cache is announced and a warm one is not; what is played is the same."""
    installed = tmp_path / "installed" / "memenvs"
    package = Path(memenvs.__file__).parent
    for source, target in ((package, installed), (package.parent / "agents", installed / "agents")):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (installed, *(path for path in installed.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()  # a file: not even the superuser can make a folder there
    environ = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    temporary, working = tmp_path / "temporary", tmp_path / "working"
    for folder in (temporary, working):
        folder.mkdir()

    def play(home: str, *arguments: str) -> tuple[str, str]:
        command = [sys.executable, "-c", PLAY, str(installed.parent), *arguments]
        done = subprocess.run(command, cwd=working, env={**environ, "HOME": home}, capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout)["episodes"] == 1, done.stderr
        assert not list(working.iterdir())
        return done.stdout, done.stderr

    cold = play("nowhere", str(temporary))  # expanduser of a user without a name leaves a relative path
    assert cold[1].count("memenvs: compiling (once") == 1
    (kept,) = temporary.iterdir()
    assert kept.name == f"memenvs-{os.getuid()}" and kept.stat().st_mode & 0o777 == 0o700
    assert play("/dev/null", str(temporary), "numba") == (cold[0], "")
    kept.chmod(0o777)  # others may have put code there
    for home, folder in (("/dev/null", str(temporary)), ("nowhere", "/dev/null")):
        _, warned = play(home, folder)
        assert warned.count("no folder for compiled code can be written") == 1 and "NUMBA_CACHE_DIR" in warned
        assert "compiling" in warned
