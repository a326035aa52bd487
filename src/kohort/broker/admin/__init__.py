"""Shared by handlers of admin APIs: changes of configurations, loggers, replica assignments."""
