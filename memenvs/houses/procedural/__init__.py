"""Houses generated from a seed: floor plan, placement, furniture, shapes."""
