"""Arguments and exit codes of all commands, and lists of presets and memories."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import memenvs.agents
from memenvs.agents.memory import memories
from memenvs.agents.presets import FAMILIES, PRESETS, find_preset
from memenvs.cli import main
from memenvs.cli.parser import Parser


def test_every_public_name_is_there() -> None:
    for name in memenvs.agents.__all__:
        assert getattr(memenvs.agents, name) is not None and name in dir(memenvs.agents)


def test_arguments_are_declared_by_their_help() -> None:
    parser = Parser(prog="some")
    parser.add_text("""
file FILE?: the file
--count N=3: how many, of which 95 %
    are shown
--kind a|b=a: one of two
--names METRIC+: names
--word TEXT*: a word
--out OUT_FILE!: the result
--quick: a flag

The end,
in two lines.
""")
    arguments = parser.parse_args(["--out", "x/y", "--names", "p", "q", "--word", "1", "--word", "2"])
    assert vars(arguments) == {
        "file": None, "count": 3, "kind": "a", "names": ["p", "q"], "word": ["1", "2"], "out": Path("x/y"),
        "quick": False, "settings": [],
    }  # fmt: skip
    assert vars(parser.parse_args(["z", "--out", "x", "--quick"]))["file"] == "z"
    assert " ".join(parser.format_help().split("--count")[-1].split()).startswith(
        "N how many, of which 95 % are shown (default: 3) --kind {a,b} one of two (default: a)"
    )
    assert parser.format_help().endswith("The end, in two lines.\n")
    for wrong in ([], ["--out", "x", "--count", "0"], ["--out", "x", "--kind", "c"], ["--out", "x", "--a.b", "1"]):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(wrong)


def test_mistakes_and_lists_need_no_torch(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    code = """
import contextlib, io, sys
from memenvs.cli import main
mistakes = (
    ["train", "demo", "--env", "memenvs/Darkrom-v0"], ["train", "demo", "--out", sys.argv[1]],
    ["train", "nope"], ["train", "demo", "--ppo.n_epoch", "2"],
    ["train", "demo", "--resume", "--out", sys.argv[1] + "/no/run"],
    ["evaluate", "/no/run"], ["ask", "/no/run"], ["answer", "/no/run", "/no/file"],
    ["record", "/no/run"], ["paths", "/no/run"], ["report", "/no/run"], ["presets", "nope"], ["push", "/no/run", "x"],
    ["dataset", "/no/run", "--out", "some-v0"],
)
with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
    status = [main(words) for words in mistakes] + [main(["presets"]), main(["presets", "demo"])]
    for ended in (["nope"], ["report", "run", "--nope"], ["train", "--help"]):
        try:
            main(ended)
        except SystemExit as end:
            status.append(end.code)
print(status, [name for name in ("torch", "numba", "stable_baselines3", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{[2] * 14 + [0, 0] + [2, 2, 0]} []"


def test_commands_name_the_extra_where_pytorch_is_missing(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["torch"] = None  # as if it were not installed
from memenvs.cli import main
assert main(["list", "Darkroom-v0"]) == main(["presets", "demo"]) == 0
for command in (["train", "ci-smoke"], ["certify", "Darkroom-v0", "--train", "65536"]):
    assert main(command) == 2
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    message = "error: needs torch; install it with: pip install 'memenvs[agents]'"
    assert done.stderr.splitlines() == [f"memenvs train: {message}", f"memenvs certify: {message}"]
    assert not any(tmp_path.iterdir())


def test_outputs_are_checked_before_anything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    run = str(tmp_path / "no-run")
    for command, kind in (
        (["train", "nope", "--out"], "folder"),
        (["paths", run, "--out"], "folder"),
        (["report", run, "--out"], "folder"),
        (["pull", "nope", "--out"], "folder"),
        (["trajectories", run, "--out"], "file"),
        (["record", run, "--out"], "file"),
        (["study", run, "--draw"], "folder"),
    ):
        for name, problem in (
            ("file/in/it", "file' is no folder"),
            ("file" if kind == "folder" else ".", "is no folder" if kind == "folder" else "it is a folder"),
            (os.fsdecode(b"bad\xff"), "a path must be UTF-8"),
        ):
            with pytest.raises(SystemExit):
                main([*command, str(tmp_path / name)])
            error = capsys.readouterr().err
            assert f"argument {command[-1]}: cannot write '" in error and problem in error


def names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["presets", *arguments, "--json"]) == 0
    return [row["name"] for row in json.loads(capsys.readouterr().out)]


def test_presets_are_listed_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys) == list(PRESETS)
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    families = [line for line in lines if not line.startswith(" ")]
    assert families[:-1] == list(FAMILIES) and "`train NAME` trains it" in families[-1]
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(PRESETS)


def test_presets_of_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "ballet") == [name for name in PRESETS if "ballet" in name] != []
    assert names(capsys, "demo*") == ["demo", "demo-gap"]
    assert names(capsys, "sat-pict??es") == ["sat-pictures"]
    assert main(["presets", "ballet"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == names(capsys, "ballet")


def test_one_preset(capsys: pytest.CaptureFixture[str]) -> None:
    settings = find_preset("demo").to_json()
    assert main(["presets", "demo", "--json"]) == 0  # part of another name too
    assert json.loads(capsys.readouterr().out) == settings
    assert main(["presets", "demo"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :]) == settings


def test_memories_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "--memories") == list(memories())
    assert main(["presets", "--memories"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "(needs" not in lines["lstm"]
    assert lines["smt"].endswith("(needs pose)") and lines["sat-pm"].endswith("(needs place)")
    assert main(["presets", "demo", "--memories"]) == 2
