"""Runs a compiled program: an instance of the application, its tasks and their epochs."""
