"""What the commands that are Kafka clients have in common."""
