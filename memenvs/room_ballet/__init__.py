"""Room Ballet: a walker goes from room to room, dancers dance, and then it is asked about one of them."""
