"""TwoRooms: remember the colour of a box during a long stay in another room."""
