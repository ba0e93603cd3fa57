"""Plain rooms with boxes and balls as in Miniworld, drawn by our renderer or by Miniworld."""
