"""Studies: rows, settings, runs that are trained once, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Table, compact, grid, load_study, play_trials, read_rows, settings_hash
from memenvs.agents.work import run_study
from memenvs.cli import main
from tests.processes import SERVER

#: A study of three runs of seconds: the second begins with the weights of the first.
FILE = '''
"""A study."""
from dataclasses import replace
from matplotlib.figure import Figure
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Study, Table, grid, play_trials, shorten
from .words import TITLE

def count(played):
    return None if played.run is None else {"trials": len(played.play(eval_trials=8).layouts)}

STUDY = Study(
    title=TITLE,
    configs=grid(
        {"room": shorten(find_preset("ci-smoke"))},
        {"first": {}, "second one": {"encoder_from": "room-first-{seed}"}, "lstm": {"policy.memory": "lstm"}},
    ),
    seeds=(0, 1),
    scripted=("oracle",),
    evaluations={"evaluation": lambda played: play_trials(played, "return"), "count": count},
    tables=lambda rows: [Table("Scores", ["method"], [[row["method"]] for row in rows])],
    figures={"drawn": lambda rows: Figure(), "not_yet": lambda rows: None},
)
'''


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """Runs are forked from a server that has imported torch, since each would import it anew."""
    monkeypatch.setattr("multiprocessing.get_context", lambda method=None: SERVER)


@pytest.fixture
def file(tmp_path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "words.py").write_text('TITLE = "Own"\n')
    (tmp_path / "own" / "study.py").write_text(FILE)
    return tmp_path / "own" / "study.py"


def row(method: str, seed: int | None, means: list[float], task: str = "room") -> dict:
    results = {"evaluation": {"agent": {"metrics": {"return": {"mean": means}}}}}
    return {"task": task, "method": method, "seed": seed, "evaluations": results}


def test_rows_are_read_by_task_and_method():
    rows = Rows([row("a", 2, [3.0, 4.0, 5.0]), row("a", 0, [1.0, 2.0]), row("b", 0, [0.0]), row("a", 0, [9.0], "hall")])
    assert rows.means("room", "a", "return").tolist() == [[1, 2], [3, 4]]  # by seed, as many episodes as all have
    assert rows.means("room", "c", "return").shape == (0,) and rows.results("room", "a", "other") == []
    assert rows.methods("room") == ["a", "b"] and len(list(rows)) == 4
    assert ("room", "a", 2) in rows and ("room", "a", 1) not in rows
    with pytest.raises(KeyError, match="length"):
        rows.means("room", "a", "length")


def test_a_table_is_markdown():
    table = Table("Title", ["a", "b"], [["x", "1 +- 2"]])
    assert table.markdown() == "Title\n\n| a | b |\n| --- | --- |\n| x | 1 ± 2 |\n"
    assert Table("", ["a"], []).markdown() == "| a |\n| --- |\n"


def test_results_keep_what_tables_show():
    results = {"agent": {"metrics": {"return": {"mean": [1], "count": 3}, "length": {"mean": [2]}}, "trials": 4}}
    assert compact(results, ["return"]) == {"agent": {"metrics": {"return": {"mean": [1]}}, "trials": 4}}
    assert compact(results)["agent"]["metrics"]["length"] == {"mean": [2]}


def test_settings_of_a_run(file):
    study = load_study(file)
    assert load_study(file) is study
    config = study.config(("room", "second one", 1))
    assert (config.seed, config.encoder_from) == (1, "room-first-1")
    assert study.runnable(("room", "second one", 1), Path("runs")).encoder_from == "runs/room-first-1"
    assert study.name(("room", "second one", 1)) == "room-second-one-1"
    scripted = study.config(("room", "oracle", None))
    assert (scripted.env_kwargs, scripted.eval_trials, scripted.policy) == (config.env_kwargs, 4, {})
    assert study.cells((), ("oracle", "lstm"), (3,)) == [("room", "oracle", None), ("room", "lstm", 3)]
    with pytest.raises(ValueError, match="unknown scripted policy 'orcale'; did you mean"):
        replace(study, scripted=("orcale",)).cells((), (), (0,))
    for names, message in ((("hall",), "unknown task 'hall'"), ((), "unknown method 'smt'")):
        with pytest.raises(ValueError, match=message):
            study.cells(names, () if names else ("smt",), (0,))
    two = replace(study, configs={**study.configs, "hall": {"lstm": config}})
    assert two.cells((), ("first",), (0,)) == [("room", "first", 0)]
    with pytest.raises(ValueError, match=r"no task has one of the methods \['first'\]; .*: \{'hall': \['lstm'\]\}"):
        two.cells(("hall",), ("first",), (0,))


def test_the_hash_is_of_the_settings_alone():
    config = find_preset("demo")
    moved = [replace(config, encoder_from=f"{folder}/first-0") for folder in ("runs", "elsewhere")]
    assert settings_hash(moved[0]) == settings_hash(moved[1]) != settings_hash(config)
    assert settings_hash(replace(config, seed=1)) != settings_hash(config)
    none = replace(config, policy={**config.policy, "previous_action_dim": None})
    assert settings_hash(none) == settings_hash(config)


def test_a_grid_has_each_method_in_each_task():
    other = find_preset("coverage-laptop").learner
    configs = grid({"room": find_preset("demo")}, {"lstm": {"policy.memory": "lstm"}, "dqn": {"learner": other}})
    assert list(configs["room"]) == ["lstm", "dqn"]
    assert configs["room"]["lstm"].policy["memory"] == "lstm" and configs["room"]["dqn"].learner == other
    with pytest.raises(ValueError, match=r"unknown setting 'ppo\.epochs'"):
        grid({"room": find_preset("demo")}, {"a": {"ppo.epochs": 1}})


@pytest.mark.slow
def test_a_study_trains_what_is_missing_once(file, tmp_path, capsys):
    study, out, rows_file = load_study(file), tmp_path / "runs", file.with_name("rows.jsonl")
    cells = study.cells((), ("oracle", "first", "second one"), (0,))
    done = [cell for cell, _ in run_study(file, cells, out, rows_file)]
    assert sorted(done, key=cells.index) == cells
    rows = read_rows(rows_file)
    assert study.stale(rows) == [] and [len(rows.of("room", name)) for name in ("oracle", "first", "lstm")] == [1, 1, 0]
    assert rows.results("room", "first", "count") == [{"trials": 8}] and not rows.results("room", "oracle", "count")
    assert rows.means("room", "oracle", "return").shape[0] == 1
    with RunDirectory(out / "room-first-0") as run:
        again = play_trials(Played("room", "first", run.config, run), "return")
    assert again["agent"]["metrics"] == rows.results("room", "first")[0]["agent"]["metrics"]
    assert list(run_study(file, cells, out, rows_file)) == []  # nothing is done twice
    # without its row there, the second run still has it in its folder
    lines = rows_file.read_text().splitlines(keepends=True)
    rows_file.write_text("".join(line for line in lines if "second one" not in line))
    (out / "room-first-0" / "checkpoint.zip").unlink()
    assert [cell for cell, _ in run_study(file, cells, out, rows_file)] == [("room", "second one", 0)]
    # without both it is evaluated again, and the first needs its checkpoint for that alone
    rows_file.write_text("".join(line for line in lines if "second one" not in line))
    (out / "room-second-one-0" / "row.json").unlink()
    assert len(list(run_study(file, cells, out, rows_file))) == 2
    assert sorted(rows_file.read_text().splitlines())[0] == sorted(line.strip() for line in lines)[0]
    assert len(rows_file.read_text().splitlines()) == 3


@pytest.mark.slow
def test_the_command_trains_shows_and_draws(file, tmp_path, capsys, monkeypatch):
    """With a memory of one's own, whose module is imported in the process of each run too."""
    recurrent = "memenvs.agents.memory.recurrent"
    (tmp_path / "registers.py").write_text(
        "from memenvs.agents import register_memory\n"
        f"register_memory('own', '{recurrent}:GRUMemory', '{recurrent}:RecurrentConfig', 'of a test')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = '"own": {"policy.memory": "own", "policy.memory_kwargs": {}}'
    file.write_text(FILE.replace('"lstm": {"policy.memory": "lstm"}', own))
    arguments = ["study", str(file), "--out", str(tmp_path / "runs"), "--smoke", "--methods", "oracle", "own"]
    assert main([*arguments, "--import", "registers", "--draw", str(tmp_path / "drawn")]) == 0
    printed = capsys.readouterr().out
    assert "done: room-own-0, " in printed and "| oracle |\n| own |\n" in printed and "mean nothing" in printed
    assert [path.name for path in (tmp_path / "drawn").iterdir()] == ["drawn.png"]
    assert not file.with_name("rows.jsonl").exists()  # a smoke run has rows of its own
    rows = str(tmp_path / "runs" / "smoke" / "rows.jsonl")
    assert main(["study", str(file), "--show", "--rows", rows, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 2


def test_what_is_refused(file, tmp_path, capsys):
    for arguments, message in (
        ([str(file), "--show"], "no rows to show in"),
        ([str(file), "--methods", "smt"], "unknown method 'smt'"),
        (["nothing_here"], "no study 'nothing_here'"),
        ([str(file), "--jobs", "0"], "--jobs: "),
    ):
        try:
            status = main(["study", *arguments])
        except SystemExit as stopped:
            status = stopped.code
        assert status == 2 and message in capsys.readouterr().err
    rows_file = file.with_name("rows.jsonl")
    changed = {"task": "room", "method": "first", "seed": 0, "settings": "0", "evaluations": {"count": {}}}
    rows_file.write_text(json.dumps(changed) + "\n")
    study = load_study(file)
    assert study.stale(read_rows(rows_file)) == ["room-first-0"]
    with pytest.raises(ValueError, match="1 rows are of other settings than the study has now, such as that of room-f"):
        list(run_study(file, study.cells((), ("first",), (0,)), tmp_path / "runs", rows_file))
    rows_file.write_text('{"task": "room"}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 1: a row must have task, method, seed, settings"):
        read_rows(rows_file)
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(TypeError, match="must define STUDY = Study"):
        load_study(tmp_path / "empty.py")
    with pytest.raises(FileNotFoundError, match="no study"):
        load_study(tmp_path / "none.py")
    assert not (tmp_path / "runs").exists()


def test_two_studies_of_a_folder_have_rows_and_runs_of_their_own(file, monkeypatch, capsys):
    monkeypatch.chdir(file.parents[1])
    other = file.with_name("rates.py")
    other.write_text(FILE)
    used = []

    def run_study(file, cells, out, rows_file, **options):
        used.append((out, rows_file))
        return iter(())

    monkeypatch.setattr("memenvs.agents.work.run_study", run_study)
    for study in (file, other):
        assert main(["study", str(study)]) == 2
    rows = [file.with_name(name) for name in ("rows.jsonl", "rates.jsonl")]
    assert used == [(Path("runs/own"), rows[0]), (Path("runs/own_rates"), rows[1])]
    for path, method in zip(rows, ("first", "lstm"), strict=True):
        path.write_text(json.dumps({**row(method, 0, [1.0]), "settings": "0"}) + "\n")
    for study, method in ((file, "first"), (other, "lstm")):
        capsys.readouterr()
        assert main(["study", str(study), "--show", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["tables"][0]["lines"] == [[method]]


def test_a_smoke_run_removes_only_what_smoke_runs_wrote(file, tmp_path, monkeypatch):
    monkeypatch.setattr("memenvs.agents.work.run_study", lambda *arguments, **options: iter(()))
    smoke = tmp_path / "smoke"
    for name, content in (
        ("room-first-0", "config.json"),
        ("room-oracle-scripted", "row.json"),
        ("room-lstm-0", "thesis.tex"),
        ("photos", "config.json"),
    ):
        (smoke / name).mkdir(parents=True)
        (smoke / name / content).touch()
    assert main(["study", str(file), "--smoke", "--out", str(tmp_path)]) == 2  # no rows to show
    assert sorted(path.name for path in smoke.iterdir()) == ["photos", "room-lstm-0"]


def test_a_row_of_a_scripted_policy_depends_on_the_evaluation_alone(file):
    study = load_study(file)
    config = study.config(("room", "oracle", None))
    rows = Rows([{**row("oracle", None, [1.0]), "settings": settings_hash(config)}])
    first = study.configs["room"]["first"]
    for changed, is_stale in (
        (replace(first, policy={**first.policy, "memory": "lstm"}, total_steps=7), False),
        (replace(first, eval_steps=7), True),
        (replace(first, env_kwargs={**first.env_kwargs, "size": 3}), True),
    ):
        assert replace(study, configs={"room": {"first": changed}}).stale(rows) == ["room-oracle-scripted"] * is_stale
