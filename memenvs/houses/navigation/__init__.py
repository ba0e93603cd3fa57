"""Navigation: where a robot can be, how far it is to a goal, and how it moves."""
