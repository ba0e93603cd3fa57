"""Arguments and exit codes of all commands; mistakes are found without torch where possible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memenvs.agents
from memenvs.agents.__main__ import main
from memenvs.agents.cli.parser import make_parser
from memenvs.cli import make_parser as make_environments_parser


def test_every_public_name_is_there() -> None:
    for name in memenvs.agents.__all__:
        assert getattr(memenvs.agents, name) is not None and name in dir(memenvs.agents)


def test_help_explains_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "total_steps, which counts environment steps of all copies together where a preset learns with ppo or dqn, "
        in text
    )
    assert "batches with supervised, updates with imitation" in text


def test_options_of_several_values_leave_the_arguments_that_usage_prints_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(name).mkdir()
    runs = [Path("one"), Path("two")]
    for line in ("--policies agent random one two --maps 1", "--maps 1 one two --policies agent random"):
        options, rest = make_parser().parse_known_args(["paths", *line.split()])
        assert (options.folders, options.policies, options.maps, rest) == (runs, ["agent", "random"], 1, [])
    options, _ = make_parser().parse_known_args(["pack", "--out", "t", "--metrics", "return", "spl", "one", "two"])
    assert (options.metrics, options.folders) == (["return", "spl"], runs)
    for line in ("--lengths 1 2 q.json", "q.json --lengths 1 2", "--lengths 1 2 --split test q.json"):
        arguments = make_environments_parser().parse_args(["verbalization", "questions", *line.split()])
        assert (arguments.lengths, arguments.out) == ([1, 2], "q.json")
    with pytest.raises(SystemExit, match="2"):
        make_environments_parser().parse_args(["verbalization", "questions", "--lengths", "x", "q.json"])
    assert "argument --lengths: must be an integer of at least 1, got 'x'" in capsys.readouterr().err


def test_mistakes_and_lists_need_no_torch(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    code = """
import contextlib, io, sys
from memenvs.agents.__main__ import main
mistakes = (
    ["train", "demo", "--env", "memenvs/Darkrom-v0"], ["train", "demo", "--out", sys.argv[1]],
    ["train", "nope"], ["train", "demo", "--ppo.n_epoch", "2"],
    ["train", "demo", "--resume", "--out", sys.argv[1] + "/no/run"],
    ["evaluate", "/no/run"], ["probe", "/no/run"], ["ask", "/no/run"], ["answer", "/no/run", "/no/file"],
    ["record", "/no/run"], ["paths", "/no/run"], ["report", "/no/run"], ["presets", "nope"], ["push", "/no/run", "x"],
    ["dataset", "/no/run", "--out", "some-v0"],
)
with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
    status = [main(each) for each in mistakes] + [main(["presets"]), main(["presets", "demo"])]
    for ended in (["nope"], ["report", "run", "--nope"], ["train", "--help"]):
        try:
            main(ended)
        except SystemExit as end:
            status.append(end.code)
print(status, [name for name in ("torch", "numba", "stable_baselines3", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{[2] * 15 + [0, 0] + [2, 2, 0]} []"


def test_outputs_are_checked_before_anything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    run = str(tmp_path / "no-run")
    for command, kind in (
        (["train", "nope", "--out"], "folder"),
        (["probe", run, "--out"], "folder"),
        (["paths", run, "--out"], "folder"),
        (["report", run, "--out"], "folder"),
        (["pull", "nope", "--out"], "folder"),
        (["trajectories", run, "--out"], "file"),
        (["record", run, "--out"], "file"),
        (["pack", run, "--out"], "file"),
        (["ask", run, "--page"], "file"),
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


def test_a_reader_that_leaves_early() -> None:
    command = f"{sys.executable} -m memenvs.agents presets | true"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_wrong_arguments_are_named_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for command, message in {
        "evaluate run --trials 0": "evaluate: error: argument --trials: must be an integer of at least 1, got '0'",
        "evaluate run --demonstrations -1": "argument --demonstrations: must be an integer of at least 0, got '-1'",
        "paths run --seed x": "argument --seed: must be an integer of at least 0, got 'x'",
        "probe run --count 1.5": "argument --count: must be an integer of at least 1, got '1.5'",
        "report": "the following arguments are required: folder; see python -m memenvs.agents report --help",
        "tarin demo": "argument COMMAND: unknown 'tarin'; did you mean 'train'? Choose from ['train', ",
        "report run --ot x": "did you mean '--out'?",
        "presets demo darkroom": "python -m memenvs.agents: error: unknown arguments: darkroom",
        "report run --nope": "python -m memenvs.agents report: error: unknown option '--nope'; choose from ['-h', ",
    }.items():
        with pytest.raises(SystemExit) as end:
            main(command.split())
        assert end.value.code == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


def test_messages_name_the_program_that_was_called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, program in (
        ("/usr/bin/memenvs-agents", "memenvs-agents"),
        ("memenvs-agents.exe", "memenvs-agents"),
        ("/memenvs/agents/__main__.py", "python -m memenvs.agents"),
    ):
        monkeypatch.setattr(sys, "argv", [path])
        with pytest.raises(SystemExit):
            main(["report", "--help"])
        assert capsys.readouterr().out.startswith(f"usage: {program} report ")
        assert main(["presets", "nope"]) == 2
        assert capsys.readouterr().err.startswith(f"{program} presets: error: ")
