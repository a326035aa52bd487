"""Restoring state from a changelog, beside Kafka Streams: the same changelog, the same broker."""
