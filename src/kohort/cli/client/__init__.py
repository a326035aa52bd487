"""Shared by the commands that are Kafka clients."""
