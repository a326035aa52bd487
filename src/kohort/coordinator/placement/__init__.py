"""Who gets which task: a model of a group, assignors that place its tasks, and what a placement is worth.

A library of its own: it knows nothing of coordinators, brokers or the wire.
"""
