"""Pipelines beside each other: Kohort, Structured Streaming, Kafka Streams, quixstreams, on the same flights."""
