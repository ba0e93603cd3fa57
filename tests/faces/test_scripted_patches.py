"""Scripted answers of FFHQ-world, from the start of the query and from a window's patches."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memenvs.core import TrialVectorEnv
from memenvs.faces import scripted_patches
from memenvs.faces.env import FFHQWorldLongStay
from memenvs.faces.episodes import GRID, MOVES
from memenvs.faces.observer import LinearPrediction
from memenvs.faces.scripted_patches import PatchGuess, PatchObserver
from memenvs.rules import Rule, RuleError, Window
from memenvs.task import Observation

STEPS = (20, 30, 10)
QUERY = 32
#: A prediction that is the same grey everywhere, so that what is predicted is seen.
GREY = LinearPrediction(
    np.full((100, 768), 0.3, np.float32),
    np.zeros((768, 2), np.float32),
    {(dx, dy): np.zeros((2, 2), np.float32) for dx in range(1 - GRID, GRID) for dy in range(1 - GRID, GRID)},
)


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrialVectorEnv]:
    """Six environments with pictures of noise, so that no two patches share a quarter by chance."""
    monkeypatch.setattr(scripted_patches, "_linear_prediction", lambda images: GREY)
    rng = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(rng.integers(256, size=(88, 88, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    settings = {"images": str(tmp_path), "split": "all", "steps": STEPS}
    made = TrialVectorEnv(FFHQWorldLongStay, 6, autoreset_mode="Disabled", trial_episodes=1, **settings)
    yield made
    made.close()


def play(env: TrialVectorEnv, rule: Rule) -> tuple[np.ndarray, np.ndarray, list[Observation]]:
    """Answers, 0 to 1, (32, N, 16, 16, 3), steps back, (32, N), and observations of an episode."""
    observation, _ = env.reset(seed=0)
    rule.start(*np.ones((2, env.num_envs), bool))
    rows: list[Observation] = []
    answers, back = [], []
    for _ in range(sum(STEPS) + QUERY):
        rows.append({key: value.copy() for key, value in observation.items()})
        actions = rule.actions(observation)
        steps_back = rule.steps_back()
        answers.append((actions.reshape(-1, 16, 16, 3) + 1) / 2)
        back.append(np.zeros(env.num_envs) if steps_back is None else steps_back)
        observation, *_ = env.step(actions)
    return np.array(answers[-QUERY:]), np.array(back[-QUERY:]), rows


def patch_of(image: np.ndarray, cell: int) -> np.ndarray:
    """Pixels of a cell of an array (88, 88, ...)."""
    top, left = 8 * (cell // GRID), 8 * (cell % GRID)
    return image[top : top + 16, left : left + 16]


def test_answers_have_all_pixels_that_were_seen_and_no_others(env: TrialVectorEnv) -> None:
    """The truth, from the cells that only the environment knows, against answers from patches and moves."""
    answers, back, _ = play(env, PatchObserver(env.task))
    episodes, steps = env.task._episodes, sum(STEPS)
    placed = 0
    for i in range(env.num_envs):
        picture = env.task.world.pictures.read(int(episodes.picture[i])) / 255
        start, *targets = episodes.query_cell[i].tolist()
        newest = np.full((88, 88), -1)  # step at which each pixel was last observed
        for t, cell in enumerate(episodes.cell[i].tolist()):
            patch_of(newest, cell)[:] = t
        overlaps = bool((patch_of(newest, start) >= 0).any())
        placed += overlaps
        if not overlaps:  # it cannot know where the query begins
            newest[:] = -1
        patch_of(newest, start)[:] = 10**6
        for j, target in enumerate(targets):
            is_seen = patch_of(newest, target)[..., None] >= 0
            expected = np.where(is_seen, patch_of(picture, target), 0.3)
            np.testing.assert_allclose(answers[j, i], expected, atol=1e-5)
            ages = (steps + j - patch_of(newest, target))[is_seen[..., 0] & (patch_of(newest, target) < 10**6)]
            assert back[j, i] == ages.max(initial=0)
    assert 0 < placed < env.num_envs


def _guess(start: np.ndarray, moves: np.ndarray, number: int) -> np.ndarray:
    """The patch after a move of the query, grey where its first patch does not show it."""
    right, down = 80 + 8 * MOVES[moves[: number + 1]].sum(0)
    canvas = np.full((176, 176, 3), 0.3)
    canvas[80:96, 80:96] = start / 255
    return canvas[down : down + 16, right : right + 16]


def test_the_present_view_does_not_say_which_move_it_is(env: TrialVectorEnv) -> None:
    """Its answer is the mean over all moves that appear the same; a window of one observation is no better."""
    answers, _, rows = play(env, PatchGuess(env.task))
    for j, row in enumerate(rows[-QUERY:]):
        for i in range(env.num_envs):
            moves = row["moves"][i]
            expected = [_guess(row["query"][i], moves, number) for number in np.flatnonzero(moves == moves[j])]
            np.testing.assert_allclose(answers[j, i], np.mean(expected, 0), atol=1e-5)
    np.testing.assert_array_equal(play(env, Window(PatchObserver(env.task), 1))[0], answers)


def test_windows(env: TrialVectorEnv) -> None:
    """A window as long as the episode knows all; in the query, one of a few steps knows at most the number of the move.

    Its moves are compared with all places in the query where they can be.
    """
    blind, everything = (play(env, rule(env.task))[0] for rule in (PatchGuess, PatchObserver))
    np.testing.assert_array_equal(play(env, Window(PatchObserver(env.task), 92))[0], everything)
    window = 5
    answers, _, rows = play(env, Window(PatchObserver(env.task), window))
    for j in range(window, QUERY):
        for i in range(env.num_envs):
            moves = rows[-1]["moves"][i]
            last = moves[j + 1 - window : j + 1].tolist()
            ends = [k for k in range(window - 1, QUERY) if moves[k + 1 - window : k + 1].tolist() == last]
            expected = np.mean([_guess(rows[-1]["query"][i], moves, k) for k in ends], 0)
            np.testing.assert_allclose(answers[j, i], expected, atol=1e-5)
    assert np.abs(answers[window:] - blind[window:]).max() > 0.1


def test_an_episode_that_begins_clears_the_map(env: TrialVectorEnv) -> None:
    first = play(env, PatchObserver(env.task))
    rule = PatchObserver(env.task)
    rng = np.random.default_rng(1)
    seen = first[2][0]
    for _ in range(4):
        noise = rng.integers(256, size=seen["rgb"].shape, dtype=np.uint8)
        rule.see({**seen, "rgb": noise, "move": seen["move"] % 4})
    for row in first[2]:
        chosen = rule.actions(row)
    np.testing.assert_array_equal((chosen.reshape(-1, 16, 16, 3) + 1) / 2, first[0][-1])


def test_a_query_that_fits_twice_is_answered_with_the_mean(env: TrialVectorEnv) -> None:
    """A row of cells of which two show the same patch and have other cells to their right."""
    rule = PatchObserver(env.task)
    strip = np.random.default_rng(2).integers(256, size=(16, 88, 3), dtype=np.uint8)
    strip[:, 40:56] = strip[:, :16]
    strip[:, 64:72] = strip[:, :8]  # a third place, as far as it was observed
    nothing = np.zeros((6, 16, 16, 3), np.uint8)
    step = {"query": nothing, "phase": np.zeros(6, int), "moves": np.full((6, QUERY), 4)}
    for cell in range(8):
        patch = np.stack([strip[:, 8 * cell : 8 * cell + 16]] * 6)
        rule.see({**step, "rgb": patch, "move": np.full(6, 0 if cell else 4)})
    query = {"rgb": nothing, "query": np.stack([strip[:, :16]] * 6), "phase": np.ones(6, int), "move": np.zeros(6, int)}
    right, left = strip.astype(float), strip[:, 40:].astype(float)
    for moves, step, expected in (
        ([0, 1] * 16, 0, (right[:, 8:24] + left[:, 8:24]) / 2),  # a cell to the right of the start
        ([0, 0] + [1, 0] * 15, 1, (right[:, 16:32] + left[:, 16:32]) / 2),  # two cells
        # Nine cells to the right of the second one there is no room in a picture of ten.
        ([0] * 9 + [1, 0] * 11 + [1], 1, right[:, 16:32]),
    ):
        rule._next[:] = np.arange(QUERY) == step
        answer = rule.choose({**query, "moves": np.tile(moves, (6, 1))}).reshape(6, 16, 16, 3)[0]
        np.testing.assert_allclose((answer + 1) * 127.5, expected, atol=0.01)


def test_folders_without_training_pictures_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((88, 88, 3), np.uint8)).save(tmp_path / "one.png")
    env = TrialVectorEnv(FFHQWorldLongStay, 1, images=str(tmp_path), split="all")
    with pytest.raises(RuleError, match="images must have pictures of the split 'train' for this rule: split 'train'"):
        PatchGuess(env.task)
