"""Navigation graphs with their episodes: procedural, or Matterport3D."""
