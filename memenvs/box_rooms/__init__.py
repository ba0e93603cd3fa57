"""Plain rooms with boxes and balls, as those of Miniworld: drawn by our renderer, or by Miniworld itself."""
