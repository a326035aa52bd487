"""Hypothesis draws the same examples in every run, and takes the time it needs: the first example compiles."""

from hypothesis import settings

settings.register_profile("kohort", deadline=None, derandomize=True)
settings.load_profile("kohort")

pytest_plugins = ["tests.time_limits"]
