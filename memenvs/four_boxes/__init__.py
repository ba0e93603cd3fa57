"""Tasks in a room with coloured boxes (FourBoxes)."""
