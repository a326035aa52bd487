"""The demo's charts: the delays, and the work of the instances over time."""
