"""Queries of an instance's stores over HTTP, answered here or by the instance that has them."""
