"""The pipeline under fire: `python -m tests.chaos`. Real instances are killed and paused while they work."""
