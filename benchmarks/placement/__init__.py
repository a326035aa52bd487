"""Our assignors beside Kafka's."""
