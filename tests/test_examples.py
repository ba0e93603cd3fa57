"""Examples and benchmarks run with `--smoke` from any folder, and write to `--out` only."""

import json
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from memenvs.board.entry import read_entry
from memenvs.board.replay import check_replay
from tests.processes import run_python

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[1]
#: With tests of their own below.
KNOWN = ("board.py", "ppo_memory.py", "demo.py", "sb3.py")
BENCHMARKS = sorted(path.name for path in (ROOT / "benchmarks").glob("[!_]*.py"))
#: Arguments of benchmarks that take long with all that they measure.
ARGUMENTS = {
    "all.py": ["--only", "import_time"],
    "env_steps.py": ["--env", "Search-v0"],
    "learner.py": ["--memory", "none", "--seeds", "0"],
    "learner_profile.py": ["--only", "lstm"],
    "long_context.py": ["--updates", "4"],
    "memories.py": ["--only", "mingru"],
}
#: Compare with Miniworld, so they need a display.
WITH_DISPLAY = ("render.py", "env_steps.py")
#: Only nightly: those that take more than four seconds in a smoke test, and those with a display.
NIGHTLY = ("long_context.py", "recall.py", *WITH_DISPLAY)


def run(path: Path, folder: Path, *arguments: str) -> str:
    """Output of a script in a smoke test; without real houses, which take their time."""
    environ = {key: value for key, value in os.environ.items() if key != "MEMENVS_DATA"}
    done = run_python(str(path), *arguments, "--smoke", folder=folder, environ=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", WITH_DISPLAY)
def test_without_a_display_it_says_what_to_install(tmp_path, name):
    environ = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = run_python(str(ROOT / "benchmarks" / name), "--smoke", folder=tmp_path, environ=environ)
    assert done.returncode == 1 and "install" in done.stderr.splitlines()[-1], done.stderr


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_examples_are_few_and_short():
    assert len(EXAMPLES) <= 8
    lines = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES}
    assert lines.pop("ppo_memory.py") <= 350 and max(lines.values()) <= 122


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.name not in KNOWN], ids=lambda path: path.name)
def test_example(tmp_path, path):
    assert run(path, tmp_path, "--out", "out")
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("agent", [pytest.param("recurrent-ppo", marks=pytest.mark.nightly), "ppo-memory"])
def test_entries_of_agents_of_other_libraries(tmp_path, agent):
    about = [agent, "--author", "Ada", "--link", "https://example.org/agent", "--board", "out"]
    printed = run(ROOT / "examples" / "board.py", tmp_path, *about)
    folder = tmp_path / "out" / "Darkroom-Gap-v0_v0" / agent
    assert re.search(rf"^out/Darkroom-Gap-v0_v0/{agent}: \d\.\d\d", printed, re.MULTILINE)
    check_replay(read_entry(folder))


def printed_by_cells(notebook: Any) -> dict[str, str]:
    """Title of each section of the quick start, and what its cell prints."""
    texts, code = notebook.cells[1::2], notebook.cells[2::2]
    return {
        re.match(r"\*\*(.+?)\.\*\*", text.source)[1]: "".join(
            output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout"
        )
        for text, cell in zip(texts, code, strict=False)  # the last text says where next
    }


#: Parts of cells which take their time, and what the short form has instead of them.
FEWER = {"trials=32": "trials=2", "13 * rollout": "2 * rollout", "np.arange(1, 14)": "np.arange(1, 3)"}


@pytest.mark.parametrize("is_short", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_the_quick_start_runs_and_shows_what_it_prints(tmp_path, is_short):
    path = ROOT / "examples" / "quickstart.ipynb"
    kept = nbformat.read(path, 4)
    assert path.stat().st_size < 300_000
    run = nbformat.read(path, 4)
    for cell in run.cells:
        cell.outputs = []
    for part, fewer in FEWER.items() if is_short else ():
        (cell,) = (cell for cell in run.cells if part in cell.source)
        cell.source = cell.source.replace(part, fewer)
    NotebookClient(run, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed, before = printed_by_cells(run), printed_by_cells(kept)
    assert printed.pop("Install") == ""  # skipped, as its tag says
    first, later = map(float, re.findall(r"\d\.\d\d", printed.pop("A trained agent")))
    curves = re.findall(r"return (\d+\.\d) at first, (\d+\.\d) at the end", printed.pop("A learning curve"))
    (begin, search), (_, memory) = [tuple(map(float, curve)) for curve in curves]
    assert is_short or (later > first + 0.1 and search > 3 * begin and memory > 1.4 * search)
    # episodes are the same on any processor; what networks do in them need not be
    assert printed == {name: before[name] for name in ("A film", "An episode", "A certificate")}
    drawn, pictures = (
        {mime for cell in notebook.cells for output in cell.get("outputs", ()) for mime in output.get("data", ())}
        for notebook in (run, kept)
    )
    assert drawn == pictures and {"text/html", "image/png"} < pictures
    assert not any(tmp_path.iterdir())


def test_plain_stable_baselines3(tmp_path):
    printed = run(ROOT / "examples" / "sb3.py", tmp_path)
    assert re.search(r"^\| RecurrentPPO \| \d+\.\d \|$", printed, re.MULTILINE)


@pytest.mark.parametrize("encoder", ["cnn", "symbolic"])
def test_pretrained_encoders(tmp_path, encoder):
    printed = run(ROOT / "studies" / "ext_objnav_pictures" / "pretrain_encoder.py", tmp_path, encoder, "--out", "out")
    assert "macro-F1 in " in printed
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    files = {path.stem for path in (tmp_path / "out" / encoder).iterdir()}
    assert files >= {"train", "validation", "checkpoint", "weights"}


def test_demo(tmp_path):
    out = run(ROOT / "examples" / "demo.py", tmp_path, "--out", "out")
    assert f"report: {tmp_path / 'out' / 'smoke' / 'report.html'}" in out
    page = (tmp_path / "out" / "smoke" / "report.html").read_text()
    # Darkroom and homes twice: how it gets better, maps of two episodes; learning curve
    assert page.count("<img") == 10
    assert "Procedural homes of the test split: 4 trials of " in out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_pictures_of_homes(tmp_path):
    out = run(ROOT / "docs" / "homes.py", tmp_path, "--out", "pictures")
    drawn = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {line.split(":")[0].removeprefix("pictures/") for line in out.splitlines()} | {"map_1000.png"} == drawn
    assert len(drawn) >= 4
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name in NIGHTLY else name for name in BENCHMARKS]
)
def test_benchmarks_end_with_a_line_of_json(tmp_path, name, request):
    if name in WITH_DISPLAY:
        request.getfixturevalue("display")
    out = run(ROOT / "benchmarks" / name, tmp_path, *ARGUMENTS.get(name, []))
    assert {"machine", "python", "commit"} <= set(json.loads(out.splitlines()[-1]))
    assert not any(tmp_path.iterdir())
