"""Bytes to messages and back: Kafka's wire protocol, without I/O."""
