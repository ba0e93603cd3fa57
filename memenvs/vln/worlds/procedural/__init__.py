"""Generated graphs, instructions and dialogues."""
