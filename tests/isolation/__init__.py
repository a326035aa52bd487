"""Attacks on a broker by legal requests, and how long others wait beside them."""
