"""The libraries, each doing the same work in its own best way."""
