"""Streams groups (KIP-1071): the coordinator places the tasks of a Kafka Streams application, and members reconcile."""
