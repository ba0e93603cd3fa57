"""Tasks on grids."""
