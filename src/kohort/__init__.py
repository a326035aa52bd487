"""Kafka group coordination in Python, with the data pipeline on Spark."""

__version__ = "0.1.0"
