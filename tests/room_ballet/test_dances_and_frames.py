"""Frames against shapes drawn by hand, dances against the moves of the paper."""

import numpy as np

from memenvs.room_ballet.dances import DANCES, PERFORMANCE_CELLS
from memenvs.room_ballet.frames import COLOURS, SHAPES, empty_room, frame_table, sprites

#: Drawn by hand from the table of masks in the release; of some the upper half with the middle, which is mirrored.
BY_HAND = {
    "triangle": """
        ....#....
        ....#....
        ...###...
        ...###...
        ..#####..
        ..#####..
        .#######.
        .#######.
        #########""",
    "empty_square": "\n".join(["#########"] * 2 + ["##.....##"] * 5 + ["#########"] * 2),
    "ex": """
        ##.....##
        ###...###
        .###.###.
        ..#####..
        ...###...""",
    "circle": """
        ....#....
        ..#####..
        .#######.
        .#######.
        #########""",
    "empty_circle": """
        ..#####..
        .##...##.
        ##.....##
        #.......#
        #.......#""",
    "upside_down_tee": "\n".join(["...###..."] * 6 + ["#########"] * 3),
    "h": "\n".join(["###...###"] * 3 + ["#########"] * 3 + ["###...###"] * 3),
    "plus": "\n".join(["...###..."] * 3 + ["#########"] * 3 + ["...###..."] * 3),
    "u": "\n".join(["###...###"] * 6 + ["#########"] * 3),
    "vertical_stripes": "\n".join(["#.#.#.#.#"] * 9),
}


def test_sprites_by_hand():
    for name, drawing in BY_HAND.items():
        lines = drawing.split()
        mask = np.array([[pixel == "#" for pixel in line] for line in lines + lines[-2::-1] * (len(lines) == 5)])
        for colour in ("brown", "light_yellow"):
            sprite = sprites()[list(SHAPES).index(name) * 19 + list(COLOURS).index(colour)]
            np.testing.assert_array_equal(sprite, np.where(mask[..., None], COLOURS[colour], 0))


def test_complements_and_turned_shapes():
    red = {name: sprites()[k * 19, :, :, 0] > 0 for k, name in enumerate(SHAPES)}
    for name in ("plus", "ex"):
        assert (red[name] ^ red[f"inverse_{name}"]).all()
    for name in ("tee", "u"):
        np.testing.assert_array_equal(red[name][::-1], red[f"upside_down_{name}"])
    np.testing.assert_array_equal(red["vertical_stripes"].T, red["horizontal_stripes"])


def test_a_frame_is_walls_floor_and_one_dancer():
    triangle, teal, cell = 0, list(COLOURS).index("teal"), 5  # row 1, column 2
    frame = frame_table()[(triangle * 19 + teal) * 9 + cell]
    assert (frame.shape, frame.dtype) == ((45, 45, 3), np.uint8)
    inner = frame[9:36, 9:36].copy()
    np.testing.assert_array_equal(inner[9:18, 18:27], sprites()[triangle * 19 + teal])
    inner[9:18, 18:27] = 0
    assert (inner == 0).all()
    walls = np.ones((45, 45), bool)
    walls[9:36, 9:36] = False
    assert (frame[walls] == 40).all()
    empty = empty_room()
    assert (empty[walls] == 40).all() and (empty[~walls] == 0).all()


#: From the paper's appendix and its release, in the order of the labels; N is one row up.
MOVES = {
    "circle_cw": "N E S S W W N N E E S S W W N E",
    "circle_ccw": "N W S S E E N N W W S S E E N W",
    "up_and_down": "N S S N " * 4,
    "left_and_right": "E W W E " * 4,
    "diagonal_uldr": "NW SE SE NW " * 4,
    "diagonal_urdl": "NE SW SW NE " * 4,
    "plus_cw": "N S E W S N W E " * 2,
    "plus_ccw": "N S W E S N E W " * 2,
}


def test_every_dance_is_its_moves():
    assert list(DANCES) == list(MOVES)
    assert PERFORMANCE_CELLS.shape == (8, 32) and (PERFORMANCE_CELLS[:, :16] == 4).all()  # first it stands still
    for dance, moves in enumerate(MOVES.values()):
        row, column, cells = 1, 1, []
        for move in moves.split():
            row += move.count("S") - move.count("N")
            column += move.count("E") - move.count("W")
            cells.append(3 * row + column)
        assert PERFORMANCE_CELLS[dance, 16:].tolist() == cells
