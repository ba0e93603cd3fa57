"""The compiled renderer: colour, depth, class and instance images of a home."""
