"""FourBoxes: find the rewarded one of four coloured boxes, and return to it later."""
