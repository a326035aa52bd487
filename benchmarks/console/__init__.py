"""The console on a large cluster."""
