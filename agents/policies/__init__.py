"""Policies: encoder, memory and heads behind one interface."""
