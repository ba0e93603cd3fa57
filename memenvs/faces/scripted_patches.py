"""Answers of FFHQ-world: from the present view alone, and from all patches.

The second rule lays the patches since the start side by side.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from memenvs.faces.env import FFHQWorld
from memenvs.faces.episodes import GRID, MOVES, NO_ACTION, PATCH_PIXELS, PATCH_STRIDE
from memenvs.faces.observer import LinearPrediction
from memenvs.faces.pictures import open_pictures
from memenvs.rules import AnswerRule, RuleError
from memenvs.task import BatchTask, Observation

#: Training pictures of the linear prediction, and the directions of patches that predict and that are predicted. With
#: 300 pictures, 64 and 128 directions it takes several times as long and has an error lower by half a per cent.
_PICTURES, _INPUTS, _OUTPUTS = 150, 24, 48
#: A block is a quarter of a patch. The map of blocks reaches as far as any path can from its first patch, which is in
#: the middle.
_BLOCK = PATCH_STRIDE
_START = GRID - 1
_MAP = 2 * GRID


class PatchGuess(AnswerRule):
    """Answer with the best linear prediction from the patch where the query begins.

    The present view has this patch and all moves of the query, but not how many of them are done. So the answer is the
    mean over all moves that are the present one. Pixels that the patch shows itself are taken from it.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, FFHQWorld)
        super().__init__(task)
        self._linear = _linear_prediction(task.config.images)

    def _answer(self, i: int, observation: Observation) -> np.ndarray:
        moves = observation["moves"][i]
        done = np.flatnonzero(self._may_be_next(i, moves, observation["move"][i]))
        steps = np.cumsum(MOVES[moves], 0)  # from where the query begins: (Q, 2), columns and rows
        patch = self._patch(i, observation["query"][i], steps, done)
        return np.clip(2 * patch.ravel() - 1, -1, 1)

    def _may_be_next(self, i: int, moves: np.ndarray, move: np.integer) -> np.ndarray:
        """True for the moves of the query that can be the present one, bool, (Q,)."""
        return moves == move

    def _patch(self, i: int, start: np.ndarray, steps: np.ndarray, done: np.ndarray) -> np.ndarray:
        """Patch to answer, float, (16, 16, 3), 0 to 1; `done` has the possible numbers of the move."""
        return np.mean([self._predicted(start, steps[number]) for number in done], 0)

    def _predicted(self, start: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Predict the patch some columns to the right and rows below a patch, float, (16, 16, 3), 0 to 1."""
        dx, dy = step.tolist()
        patch = self._linear.predict_at(start, step[None])[0]
        if max(abs(dx), abs(dy)) <= 1:
            x, y = dx * PATCH_STRIDE, dy * PATCH_STRIDE
            old = slice(max(0, y), PATCH_PIXELS + min(0, y)), slice(max(0, x), PATCH_PIXELS + min(0, x))
            new = slice(max(0, -y), PATCH_PIXELS + min(0, -y)), slice(max(0, -x), PATCH_PIXELS + min(0, -x))
            patch[new] = start[old] / np.float32(255)
        return patch


class PatchObserver(PatchGuess):
    """Answer with the patches since `forget`, laid side by side by the moves between them.

    The query begins where its first patch fits onto the map of these: where it is the same in all pixels that the map
    has there, and these are as many as anywhere. If it fits in several places, the answer is the mean over them. Where
    the map ends, the prediction from the first patch of the query stands. `steps_back` counts the steps since the
    oldest part of the answer was last seen.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        assert isinstance(task, FFHQWorld)
        num_envs = task.num_envs
        self._blocks = np.zeros((num_envs, _MAP, _MAP, _BLOCK, _BLOCK, 3), np.uint8)
        self._seen_at = np.full((num_envs, _MAP, _MAP), -1)  # step at which each block was last seen; -1 for never
        self._cell = np.full((num_envs, 2), _START)  # column and row of the newest patch
        self._step = np.zeros(num_envs, np.int64)  # observations since `forget`
        self._watched = np.zeros(num_envs, bool)  # the observation before was no query
        # Moves of the query that can be the present one; before a query is observed, all.
        self._next = np.ones((num_envs, task.world.query_moves), bool)

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget all patches, and how much of the query is done; see `Rule`."""
        self._seen_at[env_mask] = -1
        self._cell[env_mask] = _START
        self._step[env_mask] = 0
        self._watched[env_mask] = False
        self._next[env_mask] = True

    def see(self, observation: Observation) -> None:
        """Lay the patch onto the map, or count the move of the query; see `Rule`."""
        watching, move = observation["phase"] == 0, observation["move"]
        begins = watching & (move == NO_ACTION)
        if begins.any():
            self.forget(begins)
        self._step += 1
        rows = np.flatnonzero(watching)
        if len(rows):
            follows = rows[(self._step[rows] > 1) & (move[rows] < NO_ACTION)]
            self._cell[follows] = np.clip(self._cell[follows] + MOVES[move[follows]], 0, 2 * _START)
            column, row = self._cell[rows].T
            for k in (0, 1):
                for j in (0, 1):
                    block = observation["rgb"][rows, _BLOCK * k : _BLOCK * (k + 1), _BLOCK * j : _BLOCK * (j + 1)]
                    self._blocks[rows, row + k, column + j] = block
                    self._seen_at[rows, row + k, column + j] = self._step[rows]
        for i in np.flatnonzero(~watching).tolist():
            if self._watched[i]:
                self._next[i] = np.arange(self._next.shape[1]) == 0
            else:  # the present one comes after that of the observation before
                self._next[i, 1:] = self._next[i, :-1] | (self._step[i] == 1)
                self._next[i, 0] = self._step[i] == 1
                self._next[i] &= observation["moves"][i] == move[i]
        self._watched = watching.copy()

    def _may_be_next(self, i: int, moves: np.ndarray, move: np.integer) -> np.ndarray:
        return self._next[i]

    def _patch(self, i: int, start: np.ndarray, steps: np.ndarray, done: np.ndarray) -> np.ndarray:
        places = self._starts(i, start, steps)
        if not len(places):
            return super()._patch(i, start, steps, done)
        patches = []
        for number in done:
            predicted = self._predicted(start, steps[number])
            patches += [self._completed(i, place, steps[number], predicted) for place in places]
        return np.mean(patches, 0)

    def _completed(self, i: int, place: np.ndarray, step: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Replace the quarters of a predicted patch that the map shows, for a query that begins at `place` on it."""
        patch = predicted.copy()
        for k in (0, 1):
            for j in (0, 1):
                from_start = step + np.array([j, k])
                column, row = place + from_start
                seen_at = self._seen_at[i, row, column]
                in_view = ((from_start == 0) | (from_start == 1)).all()
                if seen_at >= 0 and not in_view:
                    part = slice(_BLOCK * k, _BLOCK * (k + 1)), slice(_BLOCK * j, _BLOCK * (j + 1))
                    patch[part] = self._blocks[i, row, column] / np.float32(255)
                    self._steps_back[i] = max(self._steps_back[i], self._step[i] - seen_at)
        return patch

    def _starts(self, i: int, start: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Find where on the map a query can begin, int64, (P, 2), columns and rows; none where nothing is the same."""
        has_block = self._seen_at[i] >= 0
        if not has_block.any():
            return np.zeros((0, 2), np.int64)
        fits, overlap = np.ones((_MAP - 1, _MAP - 1), bool), np.zeros((_MAP - 1, _MAP - 1), np.int64)
        for k in (0, 1):
            for j in (0, 1):
                block = start[_BLOCK * k : _BLOCK * (k + 1), _BLOCK * j : _BLOCK * (j + 1)]
                part = slice(k, _MAP - 1 + k), slice(j, _MAP - 1 + j)
                same = (self._blocks[i][part] == block).all((2, 3, 4))
                fits &= same | ~has_block[part]
                overlap += has_block[part]
        # All cells that were observed and all of the query are in one picture.
        path = np.concatenate([[[0, 0]], steps])
        at = np.arange(_MAP - 1)
        for axis in (0, 1):
            blocks = np.flatnonzero(has_block.any(axis))
            least = np.minimum(at + path[:, axis].min(), blocks[0])
            most = np.maximum(at + path[:, axis].max(), blocks[-1] - 1)
            inside = most - least < GRID
            fits &= inside[None] if axis == 0 else inside[:, None]
        overlap = np.where(fits, overlap, 0)
        if not overlap.any():
            return np.zeros((0, 2), np.int64)
        return np.argwhere(overlap == overlap.max())[:, ::-1]


@lru_cache(4)
def _linear_prediction(images: str | None) -> LinearPrediction:
    """Fit the linear prediction to the first pictures of the training split."""
    try:
        pictures = open_pictures(images, "train")
    except ValueError as error:
        raise RuleError(f"images must have pictures of the split 'train' for this rule: {error}") from None
    stack = np.stack([pictures.read(int(number)) for number in pictures.numbers[:_PICTURES]])
    return LinearPrediction.fit(stack, knows_map=False, inputs=_INPUTS, outputs=_OUTPUTS)
