"""The board: scores on test sets, with the actions from which anyone can play them again."""
