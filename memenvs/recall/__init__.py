"""Recall in homes: a colour seen before a long tour, or the view in a direction seen before."""
