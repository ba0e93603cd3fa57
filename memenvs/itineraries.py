"""Itineraries: trials that lead through several layouts, and back to them."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, NamedTuple


class Visit(NamedTuple):
    """Episodes in a row in one layout.

    Attributes:
        letter: The layout.
        episodes: Indices of the episodes in the trial.
    """

    letter: str
    episodes: range


def visits(itinerary: str) -> tuple[Visit, ...]:
    """Split an itinerary into its visits.

    Args:
        itinerary: A letter for each episode of the trial.
    """
    starts = [e for e, letter in enumerate(itinerary) if e == 0 or itinerary[e - 1] != letter]
    return tuple(
        Visit(itinerary[start], range(start, end))
        for start, end in zip(starts, [*starts[1:], len(itinerary)], strict=True)
    )


def letter_number(letter: str) -> int:
    """Number of the layout of a letter: 0 for A, which is the layout of the trial."""
    return ascii_uppercase.index(letter)


def trial_limits(settings: Mapping[str, Any]) -> dict[str, int | None]:
    """The settings `trial_episodes` and `trial_steps`, which an itinerary overrides."""
    if settings.get("itinerary") is not None:
        return {"trial_episodes": len(settings["itinerary"]), "trial_steps": None}
    return {name: settings.get(name) for name in ("trial_episodes", "trial_steps")}


def check_itinerary(itinerary: Any, leg_flag: Any) -> None:
    """Check the settings `itinerary` and `leg_flag`.

    Raises:
        ValueError: The itinerary is no text of capital letters, or `leg_flag` is no bool or has nothing to show.
    """
    if itinerary is not None and (
        not isinstance(itinerary, str) or not itinerary or not set(itinerary) <= set(ascii_uppercase)
    ):
        raise ValueError(
            "itinerary must be None or capital letters, one for each episode of a trial, such as 'AAABBBAAA', "
            f"got {itinerary!r}"
        )
    if not isinstance(leg_flag, bool):
        raise ValueError(f"leg_flag must be True or False, got {leg_flag!r}")
    if leg_flag and len(set(itinerary or "")) < 2:
        raise ValueError(
            f"leg_flag must be False unless an itinerary has two different letters, got itinerary={itinerary!r}"
        )


def check_episode(episode: int | None, itinerary: str) -> None:
    """Raise a ValueError if the option `episode_index` is of no episode of an itinerary."""
    if episode is not None and episode >= len(itinerary):
        raise ValueError(
            f"option 'episode_index' must be in 0 ... {len(itinerary) - 1}, as itinerary {itinerary!r} has "
            f"{len(itinerary)} episodes, got {episode}"
        )


def check_homes(itinerary: str, homes: int) -> None:
    """Check that there is a home for each letter of an itinerary.

    Args:
        itinerary: The letters.
        homes: Number of homes, or of layouts where none is shared.

    Raises:
        ValueError: There are too few.
    """
    needed = letter_number(max(itinerary)) + 1
    if needed > homes:
        reason = f"up to {ascii_uppercase[homes - 1]}, as the split has {homes} homes or layouts"
        if homes == 1:
            reason = "A alone, as there is one home or layout"
        raise ValueError(f"itinerary must have letters {reason}, got {itinerary!r}")
