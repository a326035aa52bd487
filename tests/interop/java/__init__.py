"""Kafka's Java clients, server and tools: the Maven projects, and how Python runs what they build."""
