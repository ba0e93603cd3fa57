"""Furnish houses by the programs of their rooms.

A house is filled in four rounds: essentials in all rooms, then usual pieces and extras until the house has enough
furniture, then decoration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memenvs.houses.procedural.finishes import draw_style
from memenvs.houses.procedural.placement import RoomPlacer
from memenvs.houses.procedural.room_programs import RoomProgram


def furnish(
    rng: np.random.Generator, placers: Sequence[RoomPlacer], count_range: tuple[int, int], *, must_be_complete: bool
) -> bool:
    """Furnish all rooms of a house.

    Args:
        rng: Random generator.
        placers: The rooms, still empty; changed in place.
        count_range: Fewest (if they fit) and most pieces of furniture in the house.
        must_be_complete: Whether to give up if a room lacks one of `room_programs.REQUIRED_CLASSES`.

    Returns:
        True if the house is furnished; False if it gave up, or if the essentials alone are too many pieces.
    """
    has_dining_room = any(placer.room.type == "dining_room" for placer in placers)
    programs = [
        RoomProgram(rng, placer, draw_style(rng), has_dining_room=has_dining_room, is_crowded=len(placers) > 10)
        for placer in placers
    ]
    for program in programs:
        program.hang_curtains()  # furniture then keeps clear of them
    fewest, most = count_range
    # Aim at 3.4 to 5.5 pieces per room, within the range and well above its lower end, because some pieces do not fit.
    limit = int(np.clip(round(rng.uniform(3.4, 5.5) * len(placers)), min(fewest + 8, most), most))

    def num_pieces() -> int:
        return sum(program.num_pieces for program in programs)

    for program in programs:
        for step in program.essentials:
            step()
        if must_be_complete and not program.is_complete:
            return False
    if num_pieces() > most:
        return False
    for program in programs:
        for step in program.usual:
            if num_pieces() < limit:
                step()
    extras = [step for program in programs for step in program.extras]
    for k in rng.permutation(len(extras)):
        if num_pieces() > limit - 5:  # an extra is up to 5 pieces
            break
        extras[k]()
    for program in programs:
        for step in program.decoration:
            step()
    return True
