"""Compressive Transformers: blocks of steps in queues, and what becomes of the oldest.

`memory` has the memory, `config` its settings and forms, `layers` its attention, `queues` the queues through which
vectors move, `long_term` the states that receive what leaves the last queue.
"""
