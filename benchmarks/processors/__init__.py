"""Functions that keep state by key, beside Spark's own."""
