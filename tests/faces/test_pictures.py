"""Pictures of FFHQ-world: drawn faces, folders and what is wrong with them."""

import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from memenvs.faces.config import FacesConfig
from memenvs.faces.drawing import draw_face
from memenvs.faces.pictures import SPLITS, open_pictures
from tests.side_files import put_side_files


def save(path: Path, size: tuple[int, int] = (128, 128), mode: str = "RGB", seed: int = 0) -> Path:
    """Write a picture of random blocks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = np.random.default_rng(seed).integers(256, size=(8, 8, 3), dtype=np.uint8)
    Image.fromarray(blocks).resize(size).convert(mode).save(path)
    return path


def test_faces_are_drawn_by_their_number():
    faces = [draw_face(number) for number in (0, 1, 61_999, 62_000)]
    for face in faces:
        assert (face.shape, face.dtype) == ((88, 88, 3), np.uint8)
        assert face.std() > 15
    assert all((a != b).mean() > 0.5 for i, a in enumerate(faces) for b in faces[:i])
    np.testing.assert_array_equal(draw_face(1), faces[1])
    world = FacesConfig(split="test").make_world()
    assert world.pictures.numbers.tolist() == list(range(69_000, 70_000))
    drawn = world.pictures.read(69_000)
    np.testing.assert_array_equal(drawn, draw_face(69_000))
    with pytest.raises(ValueError, match="read-only"):
        drawn[0] = 0
    assert [len(numbers) for numbers in SPLITS.values()] == [62_000, 7_000, 1_000, 70_000]


def test_any_folder(tmp_path):
    for k in range(70):
        save(tmp_path / f"{'abc'[k % 3]}" / f"{k:03}.png", seed=k)
    wide = save(tmp_path / "wide.JPG", (300, 120))
    (tmp_path / "notes.txt").write_text("no picture")
    put_side_files(tmp_path)
    env = gym.make("memenvs/FFHQWorld-v0", images=str(tmp_path), split="all")
    _, info = env.reset(seed=0)
    world = env.unwrapped.task.world
    assert len(world.pictures.numbers) == 71 and info["picture"] in world.pictures.numbers
    # The middle square; pixels are means over the pixels that they span, weighted by a triangle.
    square = Image.open(wide).crop((90, 0, 210, 120)).resize((88, 88), Image.Resampling.BILINEAR)
    read = world.pictures.read(70)
    np.testing.assert_array_equal(read, np.asarray(square))
    with pytest.raises(ValueError, match="read-only"):
        read[0] = 0
    counts = {split: open_pictures(str(tmp_path), split).numbers for split in ("train", "validation", "test")}
    assert [(int(each[0]), len(each)) for each in counts.values()] == [(0, 62), (62, 7), (69, 2)]
    assert open_pictures(str(tmp_path), "validation", 2).numbers.tolist() == [62, 63]
    assert FacesConfig(images=tmp_path).images == str(tmp_path)  # settings are written as JSON


def test_thumbnails_of_ffhq_have_their_own_numbers(tmp_path):
    root = tmp_path / "thumbnails128x128"
    for number in (0, 7, 61_999, 62_000, 69_001):
        save(root / f"{number // 1000 * 1000:05}" / f"{number:05}.png", seed=number)
    (root / "LICENSE.txt").write_text("words")
    expected = {"train": [0, 7, 61_999], "validation": [62_000], "test": [69_001]}
    for folder in (tmp_path, root):
        found = {split: open_pictures(str(folder), split).numbers.tolist() for split in expected}
        assert found == expected
    seen = open_pictures(str(root), "test").read(69_001)
    with Image.open(root / "69000" / "69001.png") as image:
        np.testing.assert_array_equal(seen, np.asarray(image.resize((88, 88), Image.Resampling.BILINEAR)))


def test_what_is_wrong_with_a_folder_is_named(tmp_path):
    def refused(folder: str, message: str, error: type[Exception] = ValueError, **settings: object) -> None:
        with pytest.raises(error, match=message):
            gym.make("memenvs/FFHQWorld-v0", images=str(tmp_path / folder), **{"split": "all", **settings})

    refused("none", "images must be a folder of pictures, there is none at '.*none'", FileNotFoundError)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.txt").write_text("")
    refused("empty", r"images='.*empty' has no pictures \(\.png, ")
    (tmp_path / "thousands" / "00000").mkdir(parents=True)
    refused("thousands", "images='.*thousands' has no pictures")
    save(tmp_path / "one" / "a.png")
    refused("one", "split 'train' of images='.*one' has none of its 1 pictures; split 'all' has all", split="train")
    refused("one", "num_images must be at most 1, the pictures of split 'all', got 2", num_images=2)
    refused("one/a.png", "images must be a folder of pictures, there is none at", FileNotFoundError)
    for name, mode in (("grey", "L"), ("clear", "RGBA"), ("palette", "P"), ("print", "CMYK")):
        bad = save(tmp_path / name / ("bad.jpg" if mode == "CMYK" else "bad.png"), mode=mode)
        save(tmp_path / name / "fine.png")
        refused(name, f"picture '.*{bad.name}' must be RGB, got one of mode '{mode}'; convert it")
    save(tmp_path / "tiny" / "b.png", (200, 87))
    refused("tiny", "picture '.*b.png' must be at least 88 x 88 pixels, got 200 x 87")
    (tmp_path / "broken").mkdir()
    for content in (b"", b"no picture", b"\x89PNG\r\n\x1a\n" + bytes(40)):
        (tmp_path / "broken" / "c.png").write_bytes(content)
        refused("broken", "picture '.*c.png' cannot be read")
    whole = save(tmp_path / "cut" / "d.png").read_bytes()
    save(tmp_path / "cut" / "a.png")
    (tmp_path / "cut" / "d.png").write_bytes(whole[: len(whole) // 2])  # its header is fine
    pictures = open_pictures(str(tmp_path / "cut"), "all")
    assert pictures.read(0).any()
    with pytest.raises(ValueError, match=r"picture '.*d\.png' cannot be read"):
        pictures.read(1)
    save(tmp_path / "cut" / "d.png")  # repaired: the error is not kept
    assert pictures.read(1).any()


def test_a_file_that_changes_is_read_again(tmp_path):
    """By its modification time, and by its size where the time is the same."""
    file = save(tmp_path / "a.bmp", (88, 88), seed=1)
    pictures = open_pictures(str(tmp_path), "all")
    for seed, size, changed in ((1, 88, 0), (2, 88, 10**9), (3, 90, 10**9), (4, 90, 2 * 10**9)):
        save(file, (size, size), seed=seed)
        os.utime(file, ns=(changed, changed))
        with Image.open(file) as image:
            expected = np.asarray(image.resize((88, 88), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(pictures.read(0), expected)
    assert pictures.read(0) is pictures.read(0)
    save(file, (90, 90), mode="L")
    for read in (lambda: pictures.read(0), lambda: open_pictures(str(tmp_path), "all")):
        with pytest.raises(ValueError, match=r"picture '.*a\.bmp' must be RGB, got one of mode 'L'"):
            read()
    file.unlink()
    with pytest.raises(ValueError, match=r"picture '.*a\.bmp' cannot be read: .*No such file"):
        pictures.read(0)
