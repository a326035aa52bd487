"""Streams applications in PySpark."""
