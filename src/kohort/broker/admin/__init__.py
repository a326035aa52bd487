"""Shared by handlers of admin APIs: changes of configurations, and loggers."""
