"""The line: how Python workers on the executors ask the driver for work and for prior values, and report back."""
