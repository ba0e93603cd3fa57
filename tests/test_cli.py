import builtins
import functools
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memenvs.checks import check_int
from memenvs.cli import main, make_parser, record
from memenvs.cli.caption import BAR
from memenvs.cli.common import lossy_streams, parse_settings, run_command
from memenvs.cli.record import Video, _write_gif
from memenvs.core import TrialEnv
from memenvs.registry import ENVIRONMENTS
from tests.certificates.cue import registered
from tests.houses.procthor.made_houses import two_rooms, write_houses

SMALL = '{"image_size": [12, 16], "max_episode_steps": 20}'


def call(capsys, *argv: str) -> str:
    """Run a command that succeeds; return what it printed."""
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert without_compiling(err) == ""
    return out


def without_compiling(err: str) -> str:
    """Standard error without the messages of a cold cache."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("memenvs: compiling"))


def document(capsys, *argv: str):
    """Run a command with --json; standard output must be one JSON document."""
    return json.loads(call(capsys, *argv, "--json"))


def process(*argv: str, **environ: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "memenvs", *argv]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True)


def refuse(capsys, *argv: str) -> str:
    """Run a command that is refused; return its one line."""
    try:
        code = main(argv)
    except SystemExit as end:  # as argparse ends
        code = end.code
    assert code == 2
    out, err = capsys.readouterr()
    err = without_compiling(err)
    assert out == ""
    assert err.startswith("memenvs")
    assert err.count("\n") == 1
    return err


def test_list(capsys):
    rows = document(capsys, "list")
    assert [row["id"] for row in rows] == [spec.id for spec in ENVIRONMENTS]
    keys = {"id", "family", "remembers", "needs", "answers_picture", "policies", "verdict"}
    assert all(set(row) == keys for row in rows)
    text = call(capsys, "list")
    assert all(spec.id in text and spec.remembers in text for spec in ENVIRONMENTS)
    marked = {line.split()[0] for line in text.splitlines() if line.endswith("prediction: the answer is a picture)")}
    names = ("ViewRecall-v0", "FFHQWorld-v0", "FFHQWorld-LongStay-v0", "Ballet3D-v0")
    assert marked == {f"memenvs/{name}" for name in names} == {row["id"] for row in rows if row["answers_picture"]}


def test_list_of_one_id(capsys):
    """The facts of its page, with the settings of the id."""
    text = call(capsys, "list", "Darkroom-Gap-v0")
    for line in (
        "A trial: 10 episodes; `trial_episodes` and `trial_steps` change it",
        "Settings of the id: `gap=20`, `size=5`, `max_episode_steps=40`",
        "Score: `return` in the `info` of the last step of an episode",
        "To report: test set `v0`: 200 trials, split `test`, actions drawn as in training (`evaluate`)",
        "  position = Box(0.0, 4.0, (2,), float32): float32, (2,); the cell (x, y), 0 ... size - 1.",
        "  size = 5: Cells along each side; 2 to 1000.",
        "memenvs/Darkroom-Gap-v0: long",
    ):
        assert line in text.splitlines()
    with registered():
        assert "Verdict: not certified yet" in call(capsys, "list", "toy/Cue-v0")
    data = document(capsys, "list", "memenvs/Ballet3D-v0")
    assert data["facts"]["Agents"].startswith("learn by prediction: the answer is a picture")
    assert (data["verdict"], data["action"]) == ("long", "Box(-1.0, 1.0, (127008,), float32)")
    assert set(data["observation"]) == {"phase", "rgb", "query", "task"}
    assert data["settings"]["world"]["value"] == "'builtin'"
    assert "must be a task of memenvs, got CartPole-v1" in refuse(capsys, "list", "CartPole-v1")
    assert "argument ID: unknown id 'Darkrom-v0'; did you mean" in refuse(capsys, "list", "Darkrom-v0")


def test_rollout_of_the_oracle(capsys):
    result = document(capsys, "rollout", "memenvs/Darkroom-v0", "--policy", "oracle", "--episodes", "20")
    assert (result["id"], result["policy"], result["episodes"]) == ("memenvs/Darkroom-v0", "oracle", 20)
    metrics = result["metrics"]
    assert set(metrics) == {"num_steps", "success", "return"}
    assert metrics["success"] == {"mean": 1.0, "stderr": 0.0}
    assert metrics["num_steps"]["mean"] == 100
    goals = []
    env = TrialEnv("memenvs.darkroom.env:Darkroom", trial_episodes=10)
    for trial in range(2):
        goals.append(env.reset(seed=0, options={"trial": trial})[1]["goal"].sum())
    returns = np.repeat(101.0 - np.array(goals), 10)
    assert metrics["return"]["mean"] == pytest.approx(returns.mean())
    assert metrics["return"]["stderr"] == pytest.approx(returns.std(ddof=1) / np.sqrt(20))


def test_settings_are_given_one_by_one_or_as_json(capsys):
    """As in `train` and `evaluate`, wherever they stand."""
    settings = '{"split": "test", "size": 4, "max_episode_steps": 6}'
    expected = document(capsys, "rollout", "Darkroom-v0", "--env_kwargs", settings)
    single = ["--env_kwargs.split", "test", "--env_kwargs.size=4", "--env_kwargs", '{"max_episode_steps": 6}']
    for arguments in (["Darkroom-v0", *single], [*single, "Darkroom-v0"], [*single[:2], "Darkroom-v0", *single[2:]]):
        assert document(capsys, "rollout", *arguments) == expected
    nested = ["--env_kwargs.a.b", "-1", "--env_kwargs.a.c.d", "x y", "--env_kwargs.a", '{"e": null}']
    parsed = make_parser().parse_args(["bench", *nested, "Darkroom-v0"])
    assert parse_settings(parsed.settings) == {"a": {"b": -1, "c": {"d": "x y"}, "e": None}}
    numbers = {".3": 0.3, "-.5": -0.5, "2.": 2.0, ".1e-2": 0.001, "1e5": 1e5, ".": ".", "v.5": "v.5", "1.2.3": "1.2.3"}
    for text, value in numbers.items():
        assert parse_settings([("env_kwargs.moves", text)]) == {"moves": value}
    for wrong, message in (("size",), "size: must have a value"), (("task", "x"), "must not contain 'task'"):
        assert message in refuse(capsys, "rollout", "Darkroom-v0", f"--env_kwargs.{wrong[0]}", *wrong[1:])


def test_rollout_depends_on_the_seed_alone(capsys):
    arguments = ("rollout", "Darkroom-v0", "--episodes", "12", "--env_kwargs", '{"split": "test"}', "--seed")
    first, again, other = (document(capsys, *arguments, seed) for seed in ("3", "3", "4"))
    assert first == again
    assert first["metrics"] != other["metrics"]


def test_rollout_of_one_episode_has_no_error(capsys):
    result = document(capsys, "rollout", "Darkroom-v0", "--episodes", "1")
    assert result["metrics"]["return"]["stderr"] is None
    assert "+- -" in call(capsys, "rollout", "Darkroom-v0", "--episodes", "1")


def test_rollout_in_a_home(capsys):
    result = document(capsys, "rollout", "ExtObjNav-v0", "--policy", "oracle", "--episodes", "2", "--env_kwargs", SMALL)
    assert {"success", "spl", "path_length", "return", "num_steps"} <= set(result["metrics"])
    assert not {"goal", "start", "layout_id", "scene_id", "place", "seed"} & set(result["metrics"])


def test_bench(capsys):
    result = document(capsys, "bench", "Darkroom-v0", "--num-envs", "3", "--seconds", "0.2")
    assert set(result) == {"id", "num_envs", "steps_per_second", "frames_per_second", "first_step_seconds"}
    assert result["num_envs"] == 3
    assert 0 < result["steps_per_second"] <= result["frames_per_second"]
    assert result["first_step_seconds"] > 0
    assert "steps/s" in call(capsys, "bench", "Darkroom-v0", "--seconds", "0.1")


@pytest.mark.slow
def test_house_of_a_seed(capsys, tmp_path):
    out = tmp_path / "map.png"
    pytest.importorskip("trimesh")
    facts = document(capsys, "house", "--seed", "1000", "--out", str(out))
    counts = {"rooms", "reachable_rooms", "doors", "furniture", "objects", "shapes"}
    assert set(facts) == counts | {"area_m2", "navigable_m2"}
    assert facts["rooms"] == facts["reachable_rooms"] and 0 < facts["navigable_m2"] < facts["area_m2"]
    with Image.open(out) as image:
        assert min(image.size) > 100
    assert [path.name for path in tmp_path.iterdir()] == ["map.png"]
    folder = tmp_path / "new" / "homes"
    out = call(capsys, "house", "--seed", "1000", "--habitat", str(folder))
    wrote = [line.removeprefix("wrote ") for line in out.splitlines() if line.startswith("wrote ")]
    assert sorted(wrote) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    assert str(folder / "homes.scene_dataset_config.json") in wrote
    assert call(capsys, "house", "--seed", "1000", "--world", "suncg_style").startswith("suncg_style-1000\n")


def test_house_of_a_file(capsys):
    data = os.environ.get("MEMENVS_DATA")
    file = Path(data or "") / "procthor" / "four_room.jsonl.gz"
    if not data or not file.is_file():
        pytest.skip("needs MEMENVS_DATA set to a folder with procthor/four_room.jsonl.gz")
    facts = document(capsys, "house", "--file", str(file), "--index", "2")
    assert facts["rooms"] == facts["reachable_rooms"] == 4
    err = refuse(capsys, "house", "--file", str(file), "--index", "999")
    assert "argument --index" in err and "has the houses 0 to 13, got 999" in err


def test_homes_of_a_file_that_cannot_be_played(capsys, tmp_path):
    file = str(write_houses(tmp_path, two_rooms(), {**two_rooms(), "objects": []}, {**two_rooms(), "doors": []}))
    checked = document(capsys, "house", "--file", file, "--check", "ExtObjNav-v0")
    assert (checked["id"], checked["homes"]) == ("memenvs/ExtObjNav-v0", 3)
    assert "home 'made-1' has none" in checked["unplayable"]["1"] and "line 3: doors" in checked["unplayable"]["2"]
    out = call(capsys, "house", "--file", file, "--check", "memenvs/Search-v0").splitlines()
    assert out[0] == "1 of 3 homes cannot be played in memenvs/Search-v0" and out[1].startswith("     2  ")
    for wrong, message in (
        (("--check", "Darkroom-v0"), "argument --check: must be a task in homes, got Darkroom-v0"),
        (("--check", "Darkroom-v1"), "argument --check: unknown id 'Darkroom-v1'"),
        (("--check", "Search-v0", "--index", "1"), "argument --index: must not be given with --check, got 1"),
        (("--check", "Search-v0", "--out", "map.png"), "argument --out: must not be given with --check, got map.png"),
    ):
        assert message in refuse(capsys, "house", "--file", file, *wrong)
    assert "argument --check: goes with --file" in refuse(capsys, "house", "--seed", "1", "--check", "Search-v0")


def test_record_gif(capsys, tmp_path):
    out = tmp_path / "video.gif"
    result = document(capsys, "record", "Darkroom-v0", "--policy", "oracle", "--out", str(out), "--steps", "12")
    expected = {"id": "memenvs/Darkroom-v0", "policy": "oracle", "episodes": 1, "seconds": 1.3, "file": str(out)}
    with Image.open(out) as video:
        assert video.size == (320, 320 + BAR)
        assert video.info["duration"] == 100
        assert result == {**expected, "frames": 13}
        assert video.n_frames == 13  # the oracle stands still on the goal; the line above it counts on
    assert [path.name for path in tmp_path.iterdir()] == ["video.gif"]


def test_the_line_of_a_video_has_goal_episode_step_and_return(monkeypatch, tmp_path):
    lines = []
    draw = record.add_caption
    monkeypatch.setattr(record, "add_caption", lambda picture, text: lines.append(text) or draw(picture, text))
    settings = json.dumps({"size": 2, "max_episode_steps": 3, "split": "all"})
    out = tmp_path / "video.gif"
    arguments = ["record", "Darkroom-v0", "--policy", "oracle", "--episodes", "2", "--seed", "1", "--out", str(out)]
    assert main([*arguments, "--env_kwargs", settings]) == 0
    goal = re.match(r"goal: \[[01], [01]\]   ", lines[0]).group()
    distance = int(goal[7]) + int(goal[10])
    for k in range(2):
        returns = [max(0, step - max(distance, 1) + 1) for step in range(4)]
        expected = [f"{goal}episode {k + 1}   step {step}   return {returns[step]}" for step in range(4)]
        expected[-1] += "   (end)"
        assert lines[4 * k : 4 * k + 4] == expected
    blank = np.zeros((10, 10, 3), np.uint8)
    pictures = {draw(blank, line).tobytes() for line in lines}
    assert len(pictures) == len(lines) == 8  # every line is readable in the picture


def test_gifs_have_the_frame_rate_of_the_argument(tmp_path):
    """Delays are hundredths of a second; equal frames are stored once and shown longer."""
    frames = [np.full((8, 8, 3), 20 * k, np.uint8) for k in range(12)]
    frames[5] = frames[4]
    frames[11] = frames[10]
    for fps in (0.3, 10.0, 29.97, 50.0):
        _write_gif(frames, tmp_path / "video.gif", fps)
        with Image.open(tmp_path / "video.gif") as video:
            delays = []
            for k in range(video.n_frames):
                video.seek(k)
                delays.append(video.info["duration"])
        assert video.n_frames == 10
        assert abs(sum(delays) - 1000 * len(frames) / fps) <= 5
        single = [delay for k, delay in enumerate(delays) if k not in (4, 9)]
        assert max(single) - min(single) in (0, 10)
        assert min(delays) >= 20


def test_film_has_the_first_and_the_last_step_and_evenly_spaced_ones_between():
    class Counter:
        step = -1

        def render(self) -> np.ndarray:
            return np.full((1, 1, 3), self.step)

    for max_frames, num_steps in itertools.product((None, 2, 3, 8), range(1, 40)):
        env = Counter()
        video = Video(env.render, max_frames)
        for env.step in range(num_steps):
            video.capture()
        steps = [int(frame[0, 0, 0]) for frame in video.frames()]
        assert (steps[0], steps[-1]) == (0, num_steps - 1)
        if max_frames is None:
            assert steps == list(range(num_steps))
        else:
            assert min(max_frames, num_steps) / 2 <= len(steps) <= max_frames
            assert len(set(np.diff(steps)[:-1].tolist())) <= 1


@pytest.mark.slow
def test_gif_of_many_steps_stays_small(capsys, tmp_path):
    out = tmp_path / "video.gif"
    home = {"max_episode_steps": 40, "modalities": ["pose"]}
    arguments = ("record", "Roaming-v0", "--env_kwargs", json.dumps(home), "--out", str(out))
    assert document(capsys, *arguments, "--frames", "10")["frames"] <= 10
    with Image.open(out) as video:
        assert video.size == (512, 256 + BAR)
    assert out.stat().st_size < 10 * 30_000  # a frame with its own palette and full size has 75,000 bytes


def test_gif_keeps_colours_of_few_pixels(tmp_path):
    rng = np.random.default_rng(0)
    frame = rng.integers(190, 250, (120, 160, 3), np.uint8)
    frame[50:52, 70:75] = 20, 160, 80
    _write_gif([frame] * 2, tmp_path / "video.gif", 10.0)
    with Image.open(tmp_path / "video.gif") as video:
        pixels = np.asarray(video.convert("RGB"))[50:52, 70:75].astype(int)
    assert np.abs(pixels - [20, 160, 80]).max() < 40


def test_record_mp4(capsys, tmp_path):
    pytest.importorskip("imageio")
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "video.mp4"
    document(capsys, "record", "Darkroom-v0", "--out", str(out), "--steps", "8")
    assert ffmpeg.count_frames_and_secs(str(out)) == (9, pytest.approx(0.9))
    assert [path.name for path in tmp_path.iterdir()] == ["video.mp4"]


def test_failed_film_keeps_the_old_file(capsys, tmp_path, monkeypatch):
    out = tmp_path / "video.gif"
    out.write_bytes(b"old")

    def fail(*_args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("memenvs.cli.record._write_gif", fail)
    assert "No space left" in refuse(capsys, "record", "Darkroom-v0", "--out", str(out), "--steps", "2")
    assert out.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [out]


def _without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def importer(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {package!r}", name=package)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importer)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)


def test_missing_extra_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for package, argv, extra in (
        ("pygame", ("play", "Darkroom-v0"), "memenvs[play]"),
        ("imageio", ("record", "Darkroom-v0", "--out", "video.mp4"), "memenvs[video]"),
        ("trimesh", ("house", "--seed", "3", "--out", "map.png", "--habitat", "homes"), "memenvs[export]"),
        ("minari", ("dataset", "Darkroom-v0", "--out", "some-v0"), "memenvs[minari]"),
        ("h5py", ("dataset", "Darkroom-v0", "--out", "some-v0"), "memenvs[minari]"),
    ):
        with monkeypatch.context() as patch:
            _without(patch, package)
            err = refuse(capsys, *argv)
        assert package in err and extra in err
        assert not list(tmp_path.iterdir())


PLAY = """
import sys, pygame
from memenvs.cli import main
keys = [pygame.K_RIGHT, pygame.K_2, pygame.K_UP, pygame.K_z, pygame.K_r, pygame.K_SPACE, pygame.K_n, pygame.K_RIGHT]
keys.append(pygame.K_ESCAPE)
waiting = [pygame.event.Event(pygame.KEYDOWN, key=key) for key in keys]
pygame.event.get = lambda: [waiting.pop(0)]
sys.exit(main(["play", "Darkroom-v0", "--json", "--env_kwargs", '{"max_episode_steps": 3}']))
"""


@pytest.mark.slow
def test_play():
    pytest.importorskip("pygame")
    environ = {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    code = "import contextlib, sys\nwith contextlib.redirect_stdout(sys.stderr):\n    import pygame\n" + PLAY
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"id": "memenvs/Darkroom-v0", "episodes": 1, "steps": 5, "return": 0.0}


def test_play_without_a_screen():
    pytest.importorskip("pygame")
    done = process("play", "Darkroom-v0", SDL_VIDEODRIVER="none-such")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("memenvs play: error: no window could be opened")


def test_wrong_arguments(capsys):
    for argv, parts in (
        ((), ("COMMAND", "see memenvs --help")),
        (("rollout",), ("ID", "see memenvs rollout --help")),
        (
            ("rollout", "VLN-R2R-v0", "--env_kwargs", '{"too_long":"error","max_tokens":9,"features":"none"}'),
            ("argument --env_kwargs", "episode '", "too_long='cut'"),
        ),
        (("rollout", "Lightroom-v0"), ("argument ID", "'Lightroom-v0'", "memenvs/Darkroom-v0")),
        (("rollout", "Darkroom-v0", "--policy", "best"), ("argument --policy", "'best'", "oracle")),
        (("rollout", "Darkroom-v0", "--episodes", "0"), ("argument --episodes", "at least 1", "'0'")),
        (("rollout", "Darkroom-v0", "--seed", "-1"), ("argument --seed", "at least 0")),
        (("rolout", "Darkroom-v0"), ("argument COMMAND: unknown 'rolout'", "did you mean 'rollout'?")),
        (("rollout", "Darkroom-v0", "--sede=3"), ("unknown option '--sede=3'", "did you mean '--seed'?")),
        (("rollout", "Darkroom-v0", "--env_kwargs", "{"), ("argument --env_kwargs", "JSON object", "'{'")),
        (
            ("rollout", "Darkroom-v0", "--env_kwargs", '{"split": "val"}'),
            ('error: memenvs/Darkroom-v0 with --env_kwargs {"split": "val"}: unknown split \'val\'', "'train'"),
        ),
        (("rollout", "Darkroom-v0", "--env_kwargs", '{"wall": 1}'), ("memenvs/Darkroom-v0 with", "'wall'", "'split'")),
        (("rollout", "Darkroom-v0", "--env_kwargs", '{"num_envs": 1}'), ("argument --env_kwargs", "'num_envs'")),
        (("bench", "Darkroom-v0", "--seconds", "0"), ("argument --seconds", "above 0", "'0'")),
        (("house",), ("--seed", "--file")),
        (("house", "--seed", "1", "--index", "2"), ("argument --index", "--file", "got 2")),
        (("house", "--file", "f.jsonl", "--world", "suncg_style"), ("argument --world", "--seed", "got suncg_style")),
        (("house", "--file", "none.jsonl"), ("argument --file", "none.jsonl")),
        (("house", "--seed", "1", "--out", "map.bmp"), ("argument --out", ".png", "'map.bmp'")),
        (("house", "--seed", "1", "--out", "no/such/map.png"), ("argument --out", "'no/such'")),
        (("house", "--seed", "1", "--habitat", f"{__file__}/homes"), ("argument --habitat", "is no folder")),
        (("house", "--seed", "1", "--out", os.fsdecode(b"\xff.png")), ("argument --out", "must be UTF-8")),
        (("record", "Darkroom-v0", "--out", "video.avi"), ("argument --out", ".gif or .mp4", "'video.avi'")),
        (("record", "Darkroom-v0", "--out", "video.gif", "--fps", "1e-9"), ("argument --fps", "0.1 to 50", "'1e-9'")),
        (("record", "Darkroom-v0", "--out", "video.gif", "--frames", "1"), ("argument --frames", "at least 2", "'1'")),
    ):
        err = refuse(capsys, *argv)
        assert [part for part in parts if part not in err] == [], err


FULL = "error: cannot write to standard output: [Errno 28] No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        ("list <&- >&- 2>&-", 0, ""),
        ("rollout Darkroom-v0 --episodes 1 2>&-", 0, ""),
        ("list | true", 0, ""),
        ("list >/dev/full", 2, f"memenvs: {FULL}\n"),
        ("--help >/dev/full", 2, f"memenvs: {FULL}\n"),
        ("record Darkroom-v0 --steps 2 --out video.gif >/dev/full 2>&1", 2, ""),
    ],
)
def test_closed_and_full_streams_stop_no_command(tmp_path: Path, arguments: str, status: int, error: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m memenvs {arguments}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, error)
    assert (tmp_path / "video.gif").exists() == ("--out" in arguments)


def test_letters_that_standard_output_lacks_are_escaped(tmp_path: Path) -> None:
    done = process("record", "Darkroom-v0", "--out", f"{tmp_path}/\xe9.gif", "--steps", "2", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "\\xe9.gif" in done.stdout, done.stderr


def test_output_that_is_lost_hides_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(ZeroDivisionError), lossy_streams("program"):
            print("lost", flush=True)
            raise ZeroDivisionError


def test_an_error_in_code_of_a_user_has_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise ValueError("boom")

    assert run_command("program", command) == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback") and 'raise ValueError("boom")' in error
    assert error.endswith("\nprogram: error: boom\n")
    assert run_command("program", functools.partial(check_int, "n", -1)) == 2
    assert capsys.readouterr().err == "program: error: n must be an integer of at least 1, got -1\n"
