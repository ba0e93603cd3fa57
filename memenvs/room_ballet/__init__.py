"""Room Ballet: watch dancers in the rooms of a path, then answer a query about one of them."""
