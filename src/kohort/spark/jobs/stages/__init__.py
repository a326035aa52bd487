"""What runs in Python workers on the executors: functions from Arrow batches to Arrow batches.

Spark pickles a stage by reference to its module and a small value, so nothing here may hold a Spark object.
"""
