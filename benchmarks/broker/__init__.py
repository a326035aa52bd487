"""Kohort's server beside Apache Kafka's, on the same machine, in the same run, under the same load."""
