"""The command line itself: what it lists, and what it answers before torch is imported. What commands do is tested beside what they show."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import memenvs.agents
from memenvs.agents.__main__ import main
from memenvs.agents.presets import FAMILIES, PRESETS, find_preset, run_names


def names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["presets", *arguments, "--json"]) == 0
    return [row["name"] for row in json.loads(capsys.readouterr().out)]


def test_presets_are_listed_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys) == list(PRESETS)
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    families = [line for line in lines if not line.startswith(" ")]
    assert families[:-1] == list(FAMILIES) and "NAME:VARIANT" in families[-1]
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(PRESETS)


def test_presets_of_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "next") == [name for name in run_names() if "next" in name] != []
    assert names(capsys, "darkroom:*v0") == ["darkroom:sink-kv0"]  # and not relic-darkroom
    assert names(capsys, "ballet-ab?:sat-pm") == ["ballet-aba:sat-pm"]
    assert main(["presets", "next"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == names(capsys, "next")


def test_one_preset(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("darkroom", "darkroom:k1"):
        settings = find_preset(name).to_json()
        assert main(["presets", name, "--json"]) == 0  # part of other names too
        assert json.loads(capsys.readouterr().out) == settings
        assert main(["presets", name]) == 0
        out = capsys.readouterr().out
        assert json.loads(out[out.index("{") :]) == settings
        assert ("darkroom:trxl" in out) == (name == "darkroom")


def test_every_public_name_is_there() -> None:
    for name in memenvs.agents.__all__:
        assert getattr(memenvs.agents, name) is not None and name in dir(memenvs.agents)


def test_help_says_what_steps_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", "--help"])
    assert end.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "total_steps counts environment steps of all copies together where a preset learns with ppo or dqn, " in said
    assert "batches with supervised, updates with imitation" in said


def test_what_can_be_answered_without_torch_is() -> None:
    code = """
import contextlib, io, sys
from memenvs.agents.__main__ import main
refused = (
    ["train", "nope"], ["train", "demo", "--ppo.n_epoch", "2"], ["train", "demo", "--resume", "--out", "/no/run"], ["evaluate", "/no/run"],
    ["probe", "/no/run"], ["paths", "/no/run"], ["report", "/no/run"], ["presets", "nope"],
)
with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
    status = [main(each) for each in refused] + [main(["presets"]), main(["presets", "demo"])]
    for ended in (["nope"], ["report", "run", "--nope"], ["train", "--help"]):
        try:
            main(ended)
        except SystemExit as end:
            status.append(end.code)
print(status, [name for name in ("torch", "numba", "stable_baselines3", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{[2] * 8 + [0, 0] + [2, 2, 0]} []"


def test_a_reader_that_leaves_early() -> None:
    command = f"{sys.executable} -m memenvs.agents presets | true"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["evaluate", "run", "--trials", "0"],
            "evaluate: error: argument --trials: must be an integer of at least 1, got '0'",
        ),
        (
            ["evaluate", "run", "--demonstrations", "-1"],
            "argument --demonstrations: must be an integer of at least 0 and below",
        ),
        (["paths", "run", "--seed", "x"], "argument --seed: must be an integer of at least 0 and below 2^62, got 'x'"),
        (["probe", "run", "--count", "1.5"], "argument --count: must be an integer of at least 1, got '1.5'"),
        (["report"], "the following arguments are required: folder; see python -m memenvs.agents report --help"),
    ],
)
def test_wrong_numbers_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_wrong_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["tarin", "demo"])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("python -m memenvs.agents: error: argument COMMAND: invalid choice: 'tarin'")
    assert error.count("\n") == 1
