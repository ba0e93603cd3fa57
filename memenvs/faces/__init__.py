"""FFHQ-world: see a picture patch by patch, then produce the patches of another path."""
