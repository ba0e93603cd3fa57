"""`memenvs doctor`: what works, why the rest does not, and the exit status."""

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from memenvs.cli import doctor, main
from memenvs.cli.doctor import EXTRAS, Part, Unavailable, in_own_process
from memenvs.houses.habitat import egl, package
from tests.side_files import put_side_files

ROOT = Path(__file__).resolve().parents[1]


def call(capsys, *argv: str) -> tuple[int, str]:
    """Exit status and output of `memenvs doctor`."""
    try:
        status = main(["doctor", *argv])
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    return status, out + err


def test_data_folders(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("MEMENVS_DATA", raising=False)
    status, text = call(capsys, "procthor", "vln")
    assert status == 1
    assert text.count("MEMENVS_DATA is not set") == 2
    monkeypatch.setenv("MEMENVS_DATA", str(tmp_path / "nowhere"))
    assert "there is no such folder" in call(capsys, "vln")[1]
    monkeypatch.setenv("MEMENVS_DATA", str(tmp_path))
    (tmp_path / "procthor").mkdir()
    (tmp_path / "procthor" / "four_room.jsonl.gz").touch()
    status, text = call(capsys, "procthor")
    assert status == 1
    assert str(tmp_path / "procthor" / "asset_sizes.json.gz") in text
    (tmp_path / "procthor" / "asset_sizes.json.gz").touch()
    assert call(capsys, "procthor")[0] == 0
    (tmp_path / "vln").mkdir()
    (tmp_path / "vln" / "R2R_train.json.gz").touch()
    put_side_files(tmp_path / "vln")
    status, text = call(capsys, "vln", "procthor", "--json")
    assert status == 0
    document = json.loads(text)
    assert document["works"] is True
    assert [part["name"] for part in document["parts"]] == ["procthor", "vln"]
    assert document["parts"][1]["detail"] == f"{tmp_path / 'vln'} with R2R_train"


def test_status_without_names_is_that_of_what_everything_needs(capsys, monkeypatch):
    def fail() -> str:
        raise Unavailable("no luck,\n  try again")

    parts = Part("core", "all", lambda: "fine", needed=True), Part("extra", "some", fail)
    monkeypatch.setattr(doctor, "PARTS", parts)
    status, text = call(capsys)
    assert status == 0
    assert text.splitlines()[2:] == ["works  core         fine", "no     extra        no luck, try again (for some)"]
    assert call(capsys, "extra")[0] == 1
    monkeypatch.setattr(doctor, "PARTS", (Part("core", "all", lambda: str(1 // 0), needed=True), parts[1]))
    status, text = call(capsys, "--json")
    assert status == 1
    document = json.loads(text)
    assert document["works"] is False
    assert document["parts"][0]["detail"] == "ZeroDivisionError: integer division or modulo by zero"
    assert call(capsys)[1].splitlines()[2].startswith("FAILS  core ")
    status, text = call(capsys, "exta")
    assert status == 2
    assert "unknown 'exta'" in text
    assert "extra" in text


def test_a_check_may_end_its_own_process(monkeypatch):
    assert in_own_process("platform:python_implementation")()
    for name, reason in [
        ("os:abort", "ends the process with SIGABRT"),
        ("sys:exit", "ends the process with status 0: no message"),
        ("sys:intern", "argument"),
        ("sys:nothing", "nothing"),
    ]:
        with pytest.raises(Unavailable, match=reason):
            in_own_process(name)()
    with monkeypatch.context() as patch:  # what our own progress says is no reason
        died = SimpleNamespace(returncode=-6, stdout="", stderr="no display\nmemenvs: starting habitat-sim\n")
        patch.setattr(doctor.subprocess, "run", lambda *_, **__: died)
        with pytest.raises(Unavailable, match="with SIGABRT: no display"):
            in_own_process("os:abort")()
    monkeypatch.setattr(doctor, "TIMEOUT", 0.3)
    with pytest.raises(Unavailable, match=re.escape("no answer within 0.3 s")):
        in_own_process("signal:pause")()


def test_extras_are_those_of_the_package():
    """Those that have a check of their own, or are for developers, are not looked up by name."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"play", "miniworld", "docs", "dev"}
    for extra, packages in EXTRAS.items():
        names = {re.split(r"[\[>=]", requirement)[0] for requirement in declared[extra]} - {"memenvs"}
        assert {name for _, name in packages} == names, extra


def test_without_the_library_of_a_driver(monkeypatch):
    monkeypatch.setattr(egl.ctypes.util, "find_library", lambda name: None)
    package.choose_gpu.cache_clear()
    with pytest.raises(ImportError, match=r"world 'habitat' draws with EGL: the library EGL .* apt-get install"):
        package.import_habitat()
