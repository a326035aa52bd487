"""Kohort's client beside confluent-kafka and aiokafka, on the same brokers, in the same run."""
