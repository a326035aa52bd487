"""Hypothesis draws the same examples in every run, and takes the time it needs: the first example compiles."""

from hypothesis import Phase, settings

settings.register_profile(
    "kohort", deadline=None, derandomize=True, phases=[phase for phase in Phase if phase is not Phase.explain]
)
settings.load_profile("kohort")

pytest_plugins = ["tests.time_limits"]
